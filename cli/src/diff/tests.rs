//! The whole comparison, on reports that carry their names.

use super::*;
use crate::options::Weight;
use serde_json::Value;
use thermalloc_format::{Frame, Module, Name, Site};

fn options(format: DiffFormat) -> DiffOptions {
    DiffOptions {
        old: "old.json".into(),
        new: "new.json".into(),
        format,
        by: Weight::Accesses,
        relative: false,
        threshold: 5,
        n: None,
        output: None,
        symbols: Vec::new(),
    }
}

/// One site for each (function, line, reads), called by `main`; addresses depend on `base`.
fn report(base: u64, functions: &[(&str, u32, u64)]) -> Report<Skipped> {
    let name = |function: &str, line| {
        vec![Name { function: function.into(), file: format!("/build/{base}/src/{function}.c"), line }]
    };
    let frame = |at: usize| Frame { ip: base + at as u64, module: Some(0), offset: at as u64 };
    let mut report = Report::<Skipped> {
        modules: vec![Module { path: "/bin/prog".into(), base, build_id: format!("{base:x}") }],
        frames: (0..=functions.len()).map(frame).collect(),
        names: functions.iter().map(|(function, line, _)| name(function, *line)).collect(),
        ..Report::default()
    };
    report.names.push(name("main", base as u32));
    let main = functions.len() as u32;
    let site = |(index, (_, _, reads)): (usize, &(&str, u32, u64))| Site {
        id: index as u32 + 7,
        frames: vec![index as u32, main],
        allocs: 1,
        bytes: 100,
        reads: *reads,
        ..Site::default()
    };
    report.sites = functions.iter().enumerate().map(site).collect();
    report
}

fn runs() -> (Report<Skipped>, Report<Skipped>) {
    let old = [("grow", 1, 100), ("shrink", 2, 100), ("stay", 3, 100), ("gone", 4, 50), ("split", 5, 10)];
    // Another build, in another order and another place, with other lines; one function calls malloc at two places now.
    let new = [
        ("fresh", 9, 5),
        ("stay", 13, 104),
        ("shrink", 12, 20),
        ("grow", 11, 300),
        ("split", 15, 4),
        ("split", 16, 6),
    ];
    (report(0x1000, &old), report(0x7000, &new))
}

#[test]
fn sites_are_matched_across_builds() {
    let (old, new) = runs();
    let comparison = Comparison::new(&old, &new, &options(DiffFormat::Text));
    let of = |kind| {
        let names = comparison.of(kind).map(|change| change.shown.as_ref().unwrap().name.clone());
        names.collect::<Vec<String>>()
    };
    assert_eq!(of(compare::Kind::Hotter), ["grow"]);
    assert_eq!(of(compare::Kind::Colder), ["shrink"]);
    assert_eq!(of(compare::Kind::Appeared), ["fresh"]);
    assert_eq!(of(compare::Kind::Went), ["gone"]);
    assert_eq!(of(compare::Kind::Unchanged), ["stay", "split"]);
    assert_eq!(comparison.changes[0].difference(), 200.0);
    assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
}

#[test]
fn shares_do_not_depend_on_the_length_of_a_run() {
    let old = report(0x1000, &[("a", 1, 10), ("b", 2, 30)]);
    let new = report(0x2000, &[("a", 1, 1000), ("b", 2, 3000)]);
    let relative = DiffOptions { relative: true, ..options(DiffFormat::Text) };
    let comparison = Comparison::new(&old, &new, &relative);
    assert_eq!(comparison.of(compare::Kind::Unchanged).count(), 2);
    let comparison = Comparison::new(&old, &new, &options(DiffFormat::Text));
    assert_eq!(comparison.of(compare::Kind::Hotter).count(), 2);
}

#[test]
fn code_without_names_matches_in_the_same_build_alone() {
    let strip = |mut report: Report<Skipped>| {
        report.names.clear();
        report
    };
    let (old, new) = runs();
    let (same, other) = (strip(old.clone()), strip(new));
    let comparison = Comparison::new(&strip(old), &same, &options(DiffFormat::Text));
    assert_eq!(comparison.of(compare::Kind::Unchanged).count(), 5);
    let comparison = Comparison::new(&same, &other, &options(DiffFormat::Text));
    assert_eq!(
        (comparison.of(compare::Kind::Went).count(), comparison.of(compare::Kind::Appeared).count()),
        (5, 6)
    );
    assert!(comparison.notes[0].contains("100 % of the accesses of old.json"), "{:?}", comparison.notes);
}

#[test]
fn text_fits_and_json_adds_up() {
    let (old, new) = runs();
    for width in [40, 80, 160] {
        let text = show(&old, &new, &options(DiffFormat::Text), width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    }
    let json: Value = serde_json::from_str(&show(&old, &new, &options(DiffFormat::Json), 80)).unwrap();
    let sites = json["sites"].as_array().unwrap();
    let sum = |side: &str| sites.iter().filter_map(|site| site[side]["reads"].as_u64()).sum::<u64>();
    assert_eq!((sum("old"), sum("new")), (360, 439));
    assert_eq!((json["old"]["sum"].as_u64(), json["new"]["sum"].as_u64()), (Some(360), Some(439)));
    assert_eq!(sites[0]["stack"][1]["function"], "main");
    assert_eq!(json["counts"]["unchanged"], 2);
}

#[test]
fn names_are_text_on_the_page() {
    let evil = "</script><img src=x onerror=alert(1)>\"'&";
    let (old, new) = (report(0x1000, &[(evil, 1, 5)]), report(0x2000, &[("b", 1, 7)]));
    let page = show(&old, &new, &options(DiffFormat::Html), 80);
    assert!(!page.contains("<img"), "{page}");
    assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"), "{page}");
    assert_eq!(page.matches("</script>").count(), 1);
}
