//! The whole of `top`, on good and on mutilated reports.

use super::*;
use crate::hostile::{hostile, pointers};
use crate::options::{By, Sort};
use crate::table::LEAST_WIDTH;
use proptest::prelude::*;
use serde_json::{Value, json};

const BY: [By; 3] = [By::Site, By::Class, By::Object];
const SORTS: [Sort; 5] = [Sort::Accesses, Sort::Reads, Sort::Writes, Sort::Bytes, Sort::Heat];

fn options(by: By, sort: Sort, n: usize) -> TopOptions {
    TopOptions { path: None, pid: None, by, sort, n, stacks: true }
}

fn sample() -> Value {
    let object = |addr: u64, size: u64, site: u32, reads: u64| {
        json!({"addr": addr, "size": size, "class": 1, "site": site, "alloc_ns": 5, "free_ns": null, "reads": reads,
            "writes": 3, "read_bytes": 8 * reads, "write_bytes": 24, "threads": 1, "first_access_ns": 6,
            "last_access_ns": 7, "heat": {"granule": 16, "reads": [reads, 0, 0, 1], "writes": [3, 0]}})
    };
    let distribution = json!({"count": 2, "min": 1, "mean": 2.5, "p50": 2, "p90": 3, "p99": 3, "max": 4,
        "hdr_v2_base64": "HISTFAAAAA=="});
    json!({
        "format": "thermalloc-heat", "version": 1,
        "program": {"cmdline": ["prog", "-x"], "exe": "/bin/prog", "pid": 17, "ppid": 1, "start_unix_ns": 1,
            "elapsed_ns": 1_500_000_000u64, "end": "exit", "status": 0},
        "config": {"mode": "mpk", "access": "rw", "watch": "", "granule": 16, "depth": 8, "interval_ms": 0,
            "view": "alias"},
        "host": {"cpu": "x", "kernel": "6.1", "pku": true, "pkeys": 15, "sud": true},
        "totals": {"allocs": 3, "frees": 1, "bytes": 4096, "live_bytes": 64, "peak_live_bytes": 4096, "reads": 500,
            "writes": 6, "read_bytes": 4000, "write_bytes": 48, "kernel_reads": 1, "kernel_writes": 2,
            "unattributed": 4, "faults": 500, "steps": 500, "emulated": 0, "patched_sites": 0, "syscalls": 9},
        "warnings": ["a warning of the runtime"],
        "classes": [{"id": 1, "chunk_size": 64, "per_slab": 16384, "slabs": 1, "allocs": 3, "frees": 1, "reads": 500,
            "writes": 6, "accesses_per_object": distribution}],
        "sites": [
            {"id": 1, "frames": [0, 1], "allocs": 2, "frees": 1, "bytes": 4032, "live_bytes": 0,
                "peak_live_bytes": 4032, "reads": 400, "writes": 3, "read_bytes": 3200, "write_bytes": 24,
                "max_threads": 1, "accesses_per_object": distribution, "lifetime_ns": distribution},
            {"id": 2, "frames": [1], "allocs": 1, "frees": 0, "bytes": 64, "live_bytes": 64, "peak_live_bytes": 64,
                "reads": 100, "writes": 3, "read_bytes": 800, "write_bytes": 24, "max_threads": 2,
                "accesses_per_object": distribution, "lifetime_ns": distribution}],
        "objects": [object(0x1000, 4032, 1, 400), object(0x2000, 64, 2, 100)],
        "objects_omitted": 1,
        "timeline": {"interval_ns": 1000, "t_ns": [0], "sites": [{"site": 1, "reads": [400], "writes": [3]}]},
        "frames": [{"ip": 0x5000, "module": 0, "offset": 0x500}, {"ip": 0x6000, "module": null, "offset": 0}],
        "modules": [{"path": "/nowhere/prog", "base": 0x4b00, "build_id": "ab"}],
    })
}

fn show(text: &str, options: &TopOptions, width: usize) -> serde_json::Result<String> {
    Ok(render(&load::parse(text.as_bytes(), options)?, options, width))
}

#[test]
fn each_sort_has_its_own_first_line() {
    let text = sample().to_string();
    let first = |by, sort| {
        let output = show(&text, &options(by, sort, 1), 160).unwrap();
        let lines: Vec<&str> = output.split("\n\n").nth(1).unwrap().lines().collect();
        lines[1].to_owned()
    };
    assert!(first(By::Site, Sort::Reads).contains("prog+0x500"));
    assert!(first(By::Site, Sort::Bytes).contains("prog+0x500"));
    assert!(first(By::Site, Sort::Heat).contains("0x6000"));
    assert!(first(By::Object, Sort::Accesses).starts_with("0x1000"));
    assert!(first(By::Object, Sort::Heat).starts_with("0x2000"));
}

#[test]
fn the_header_says_what_the_numbers_do_not() {
    let mut report = sample();
    report["config"]["watch"] = "sample=1/10".into();
    report["config"]["access"] = "w".into();
    report["config"]["mode"] = "pp".into();
    let output = show(&report.to_string(), &options(By::Object, Sort::Reads, 5), 200).unwrap();
    for part in [
        "[17] prog -x",
        "with status 0 after 1.50 s",
        "mode pp, writes only, view alias",
        "500 reads of 4000 B",
        "a warning of the runtime",
        "only a sample",
        "reads were not watched",
        "misses what other threads access",
        "4 accesses hit no live object",
        "1 objects are counted",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
}

#[test]
fn key_order_does_not_matter_and_unknown_keys_are_skipped() {
    let sample = sample();
    let mut parts: Vec<String> =
        sample.as_object().unwrap().iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    parts.reverse();
    parts.insert(3, "\"novelty\": {\"deep\": [1, {}]}".into());
    let reversed = format!("{{{}}}", parts.join(", "));
    for by in BY {
        let options = options(by, Sort::Accesses, 10);
        let straight = show(&sample.to_string(), &options, 100).unwrap();
        assert_eq!(straight, show(&reversed, &options, 100).unwrap());
    }
}

fn any_options() -> impl Strategy<Value = TopOptions> {
    let n = prop_oneof![Just(0), Just(3), Just(usize::MAX)];
    (prop::sample::select(BY.to_vec()), prop::sample::select(SORTS.to_vec()), n)
        .prop_map(|(by, sort, n)| options(by, sort, n))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// No panic, no line too long, nothing that upsets a terminal.
    #[test]
    fn hostile_values(
        changes in prop::collection::vec((any::<prop::sample::Index>(), hostile()), 1..12),
        options in any_options(),
        width in LEAST_WIDTH..200,
    ) {
        let mut report = sample();
        for (at, value) in changes {
            let mut found = Vec::new();
            pointers(&report, String::new(), &mut found);
            *report.pointer_mut(at.get::<String>(&found)).unwrap() = value;
        }
        if let Ok(text) = show(&report.to_string(), &options, width) {
            for line in text.lines() {
                prop_assert!(line.chars().count() <= width, "{line}");
                prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }

    /// A report cut anywhere is never taken for a whole one.
    #[test]
    fn cut_reports(at: prop::sample::Index, options in any_options()) {
        let text = sample().to_string();
        let cut: String = text.chars().take(at.index(text.len())).collect();
        prop_assert!(show(&cut, &options, 80).is_err());
    }

    #[test]
    fn damaged_bytes(at: prop::sample::Index, byte: u8, options in any_options()) {
        let mut bytes = sample().to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(report) = load::parse(&bytes, &options) {
            render(&report, &options, 80);
        }
    }
}
