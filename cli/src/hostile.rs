//! Hostile reports, through every command that reads one: an error or a result, never a panic, and results stay readable.

use crate::options::{Action, Options};
use clap::Parser;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A small report with all there is: two sites that share a frame, names, histograms, objects of a byte's granule.
fn sample() -> Value {
    let object = |addr: u64, size: u64, site: u32, free: Value| {
        json!({"addr": addr, "size": size, "class": 1, "site": site, "alloc_ns": 5, "free_ns": free, "reads": 7, "writes": 3,
            "read_bytes": 56, "write_bytes": 24, "threads": 1, "first_access_ns": 6, "last_access_ns": null,
            "label": "key", "heat": {"granule": 1, "reads": [7, 0, 0, 1], "writes": [3, 0]}})
    };
    let distribution = json!({"count": 2, "min": 1, "mean": 2.5, "p50": 2, "p90": 3, "p99": 3, "max": 4,
        "hdr_v2_base64": "HISTEwAAAAMAAAAAAAAAAQAAAAAAAAABAAAAAAAAAAQ/8AAAAAAAAAAEAg=="});
    let site = |id: u32, frames: Value| {
        json!({"id": id, "frames": frames, "allocs": 2, "frees": 1, "bytes": 8, "live_bytes": 4, "peak_live_bytes": 8,
            "reads": 14, "writes": 6, "read_bytes": 112, "write_bytes": 48, "max_threads": 1,
            "accesses_per_object": distribution, "lifetime_ns": distribution})
    };
    let program = json!({"cmdline": ["prog"], "exe": "/bin/prog", "pid": 17, "ppid": 1, "start_unix_ns": 1,
        "elapsed_ns": 1_500_000u64, "end": "exit", "status": 0});
    let config = json!({"mode": "pp", "access": "rw", "watch": "", "granule": 16, "depth": 8, "interval_ms": 0,
        "view": "alias"});
    let host = json!({"cpu": "x", "kernel": "6.1", "pku": true, "pkeys": 15, "sud": true});
    let name = |function: &str| json!([{"function": function, "file": "/src/a.c", "line": 3}]);
    json!({
        "format": "thermalloc-heat", "version": 1, "program": program, "config": config, "host": host,
        "parts": [{"program": program, "config": config, "host": host}],
        "totals": {"allocs": 4, "frees": 2, "bytes": 16, "live_bytes": 8, "peak_live_bytes": 16, "reads": 28, "writes": 12},
        "warnings": ["a warning"], "limits": {"stacks_unnamed": 1},
        "classes": [{"id": 1, "chunk_size": 64, "per_slab": 9, "slabs": 1, "allocs": 4, "frees": 2, "reads": 28,
            "writes": 12, "accesses_per_object": distribution}],
        "sites": [site(1, json!([0, 1])), site(2, json!([1])), site(0, json!([]))],
        "objects": [object(0x1000, 4, 1, Value::Null), object(0x2000, 4, 2, json!(9)), object(0x1ffe, 4, 3, json!(1))],
        "objects_omitted": 1,
        "timeline": {"interval_ns": 1000, "t_ns": [0, 1000], "sites": [{"site": 1, "reads": [4, 1], "writes": [3]}]},
        "frames": [{"ip": 0x5000, "module": 0, "offset": 0x500}, {"ip": 0x6000, "module": null, "offset": 0}],
        "names": [name("<script>alert(1)</script>"), name("=f;g\n")],
        "modules": [{"path": "/nowhere/prog", "base": 0x4b00, "build_id": "ab"}],
        "unpatched": [{"module": 0, "offset": 1, "bytes": "90", "reason": "x", "faults": 1}],
    })
}

/// Every place in a JSON value where something can be replaced.
pub fn pointers(value: &Value, prefix: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| pointers(value, format!("{prefix}/{key}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| pointers(value, format!("{prefix}/{at}"), found));
        }
        _ => {}
    }
    found.push(prefix);
}

/// What a report should not hold in most places.
pub fn hostile() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!(u64::MAX)),
        2 => Just(json!(u32::MAX)),
        1 => Just(json!(i64::MIN)),
        1 => Just(json!("</script><script>alert(1)</script><!--")),
        2 => Just(json!(0)),
        2 => Just(json!(1)),
        1 => Just(json!(1e308)),
        1 => Just(Value::Null),
        1 => Just(json!([])),
        1 => Just(json!({})),
        1 => Just(json!([0, 0, 1, u32::MAX])),
        1 => Just(json!([u64::MAX, u64::MAX])),
        1 => "\\PC{0,9}|\u{1b}\\[2J\n|\\.\\./\\.\\./x".prop_map(Value::String),
        2 => any::<u64>().prop_map(Value::from),
    ]
}

/// Runs a command line in the directory; whether it succeeded. Its own errors are one line.
fn run(directory: &Path, arguments: &[&str]) -> bool {
    let path = |text: &str| text.replace('@', &format!("{}/", directory.display()));
    let arguments = ["thermalloc".to_owned()].into_iter().chain(arguments.iter().map(|text| path(text)));
    let action = Options::try_parse_from(arguments).unwrap_or_else(|error| panic!("{error}")).action;
    let result = match action {
        Action::Export(options) => crate::export::export(&options),
        Action::Diff(options) => crate::diff::diff(&options),
        Action::Merge(options) => crate::merge::merge(&options),
        _ => unreachable!("not tested here"),
    };
    match result {
        Ok(status) => status == 0,
        Err(failure) => {
            assert_eq!(failure.status, 2);
            assert!(!failure.message.is_empty());
            false
        }
    }
}

const COMMANDS: [&[&str]; 9] = [
    &["export", "@in", "--format", "dhat", "-o", "@out"],
    &["export", "@in", "--format", "pprof", "-o", "@out"],
    &["export", "@in", "--format", "folded", "--weight", "bytes", "-o", "@out"],
    &["export", "@in", "--format", "csv", "-o", "@out.csv"],
    &["export", "@in", "--format", "parquet", "-o", "@out.parquet"],
    &["diff", "@good", "@in", "-o", "@out"],
    &["diff", "@in", "@good", "--format", "json", "--relative", "-o", "@out"],
    &["diff", "@in", "@good", "--format", "html", "-o", "@out"],
    &["merge", "@in", "@good", "@in", "-o", "@merged"],
];

/// Whether all commands took the report, after having checked that none panics; the merged report is read by them too.
fn through_all(text: &[u8]) -> bool {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("in"), text).unwrap();
    fs::write(directory.path().join("good"), sample().to_string()).unwrap();
    let results = COMMANDS.map(|command| run(directory.path(), command));
    // The first reads all there is; what it takes the others take too, who may pass over what they do not need.
    assert!(!results[0] || results.iter().all(|&result| result), "{results:?}");
    for place in ["site", "object", "page"] {
        assert_eq!(
            crate::advise::tests::survives(&directory.path().join("in"), place),
            results[0],
            "{place}"
        );
    }
    if results[0] {
        fs::rename(directory.path().join("merged"), directory.path().join("in")).unwrap();
        assert!(COMMANDS.iter().all(|command| run(directory.path(), command)));
    }
    results[0]
}

#[test]
fn the_sample_is_good() {
    assert!(through_all(sample().to_string().as_bytes()));
}

proptest! {
    #[test]
    fn hostile_values(changes in prop::collection::vec((any::<prop::sample::Index>(), hostile()), 1..6)) {
        let mut report = sample();
        for (at, value) in changes {
            let mut found = Vec::new();
            pointers(&report, String::new(), &mut found);
            *report.pointer_mut(at.get::<String>(&found)).unwrap() = value;
        }
        through_all(report.to_string().as_bytes());
    }

    #[test]
    fn cut_or_damaged(at: prop::sample::Index, byte: u8, cut: bool) {
        let mut bytes = sample().to_string().into_bytes();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
            prop_assert!(!through_all(&bytes));
        } else {
            bytes[at] = byte;
            through_all(&bytes);
        }
    }
}
