//! Reading good, bad and hostile files.

use proptest::prelude::*;
use std::path::PathBuf;
use thermalloc_format::read::{Problem, parse};
use thermalloc_format::{End, Heat, Object, Report, Site, Summary, read, read_summary};

fn sample() -> Report {
    let mut report = Report { format: "thermalloc-heat".into(), version: 1, ..Report::default() };
    report.program.cmdline = vec!["a \"b\"\n".into(), "ü".into()];
    report.program.end = End::Signal;
    report.totals.reads = u64::MAX;
    report.sites.push(Site { id: 3, frames: vec![0, 2], ..Site::default() });
    report.objects.push(Object {
        addr: 0x7000_0000_0010,
        free_ns: Some(9),
        heat: Heat { granule: 16, reads: vec![1, 0, 7], writes: vec![0, 0, 2] },
        ..Object::default()
    });
    report
}

fn problem(text: &str) -> Problem {
    parse::<Heat>(text.as_bytes()).expect_err("must be refused")
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("thermalloc-format-{}-{name}", std::process::id()))
}

#[test]
fn a_written_report_reads_back_equal() {
    let text = serde_json::to_vec(&sample()).unwrap();
    assert_eq!(parse::<Heat>(&text).unwrap(), sample());
}

#[test]
fn the_summary_is_the_report_without_heat_arrays() {
    let path = scratch("summary.json");
    std::fs::write(&path, serde_json::to_vec(&sample()).unwrap()).unwrap();
    let (full, summary): (Report, Summary) = (read(&path).unwrap(), read_summary(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(full, sample());
    assert_eq!(summary.sites, full.sites);
    assert_eq!(summary.objects[0].addr, full.objects[0].addr);
    assert_eq!(summary.objects[0].free_ns, Some(9));
}

#[test]
fn unknown_keys_are_skipped_and_missing_ones_defaulted() {
    let text = r#"{"format":"thermalloc-heat","version":1,"new":{"a":[1,{"b":null}]},
        "program":{"end":"teleport","colour":1},"totals":{"reads":5,"gamma":2},"objects":[{"addr":1}]}"#;
    let report: Report = parse(text.as_bytes()).unwrap();
    assert_eq!((report.totals.reads, report.totals.writes), (5, 0));
    assert_eq!(report.program.end, End::Unknown);
    assert_eq!(report.objects[0].free_ns, None);
}

#[test]
fn each_kind_of_bad_input_has_its_own_error() {
    assert!(matches!(problem(""), Problem::Empty));
    assert!(matches!(problem(" \n"), Problem::Empty));
    assert!(matches!(problem("hello"), Problem::NotJson(_)));
    assert!(matches!(problem("\u{1f}\u{8b}"), Problem::NotJson(_)));
    assert!(matches!(problem("{} trailing"), Problem::NotJson(_)));
    for json in
        ["[]", "3", "null", "\"thermalloc-heat\"", "{}", r#"{"version":1}"#, r#"{"format":7,"version":1}"#]
    {
        assert!(matches!(problem(json), Problem::NotReport), "{json}");
    }
    assert!(matches!(problem(r#"{"format":"thermalloc-heat","version":2}"#), Problem::Version(Some(2))));
    assert!(matches!(problem(r#"{"format":"thermalloc-heat","version":"x"}"#), Problem::Version(None)));
    assert!(matches!(problem(r#"{"format":"thermalloc-heat"}"#), Problem::Version(None)));
    // A later version may give a known key another type.
    let later = r#"{"totals":"none","format":"thermalloc-heat","version":2}"#;
    assert!(matches!(problem(later), Problem::Version(Some(2))));
    let damaged = r#"{"format":"thermalloc-heat","version":1,"totals":{"reads":-1}}"#;
    assert!(matches!(problem(damaged), Problem::Malformed(_)));
    let twice = r#"{"format":"thermalloc-heat","version":1,"version":1}"#;
    assert!(parse::<Heat>(twice.as_bytes()).is_err());
}

#[test]
fn every_proper_prefix_of_a_report_is_truncated() {
    let text = serde_json::to_string(&sample()).unwrap();
    for (cut, _) in text.char_indices().skip(1) {
        let found = problem(&text[..cut]);
        assert!(matches!(found, Problem::Truncated), "{found:?} at {}", &text[..cut]);
    }
}

#[test]
fn deep_nesting_is_refused_not_followed() {
    let deep = format!("{{\"x\":{}", "[".repeat(1_000_000));
    assert!(matches!(problem(&deep), Problem::Truncated));
    let known = format!("{{\"program\":{}", "[".repeat(1_000_000));
    assert!(matches!(problem(&known), Problem::Truncated));
}

#[test]
fn errors_name_the_file_on_one_line() {
    let directory = std::env::temp_dir();
    for path in [PathBuf::from("/nonexistent/heat.json"), directory.clone()] {
        let error = read(&path).unwrap_err();
        assert!(matches!(error.problem, Problem::Io(_)));
        let line = error.to_string();
        assert!(line.starts_with(path.to_str().unwrap()) && !line.contains('\n'), "{line}");
    }
    let path = scratch("bad.json");
    std::fs::write(
        &path,
        "{\"format\":\"thermalloc-heat\",\"version\":1,\n\n\"program\":{\"pid\":\"a\\nb\"}}",
    )
    .unwrap();
    let line = read(&path).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(line.contains("damaged") && line.contains("line 3") && !line.contains('\n'), "{line}");
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(parse::<Heat>(&bytes).is_err());
    }

    #[test]
    fn a_flipped_byte_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = serde_json::to_vec(&sample()).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        match parse::<Heat>(&bytes) {
            Ok(report) => prop_assert_eq!(report.version, 1),
            Err(problem) => {
                let line = thermalloc_format::ReadError { path: "p".into(), problem }.to_string();
                prop_assert!(!line.contains('\n'));
            }
        }
    }
}
