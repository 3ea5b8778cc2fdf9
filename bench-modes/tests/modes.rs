//! The harness in small, on all programs that this machine has: whether what it writes has the shape that others rely on, and
//! whether every program printed in every mode what it prints natively. Without a build of the workspace (its directory is
//! THERMALLOC_TEST_BIN) the tests print SKIP.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The build of the workspace.
fn programs() -> Option<PathBuf> {
    let directory = std::env::var_os("THERMALLOC_TEST_BIN");
    if directory.is_none() {
        println!("SKIP: THERMALLOC_TEST_BIN is not set");
    }
    directory.map(PathBuf::from)
}

/// Runs the harness, which must succeed: it fails if a program does, or prints something else than natively.
fn measure(programs: &Path, directory: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(programs.join("bench-modes"));
    let output =
        command.args(arguments).arg("--results").arg(directory).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in ["modes.md", "modes.svg", "modes.png"] {
        assert!(directory.join(file).metadata().unwrap().len() > 100, "{file}");
    }
    let json = std::fs::read(directory.join("modes.json")).unwrap();
    serde_json::from_slice(&json).expect("JSON")
}

fn rows<'a>(results: &'a Value, column: &str) -> impl Iterator<Item = &'a Value> {
    results["rows"].as_array().expect("rows").iter().filter(move |row| row["name"] == column)
}

/// Measured or skipped with a reason; `Some` if measured.
fn checked(row: &Value) -> Option<&Value> {
    if let Some(reason) = row["skipped"].as_str() {
        assert!(!reason.is_empty() && row["ratio_to_native"].is_null(), "{row}");
        return None;
    }
    for quantity in ["ratio_to_native", "median_s", "wall_median_s", "peak_kib"] {
        assert!(row[quantity].as_f64().unwrap() > 0.0, "{quantity} in {row}");
    }
    let equal = if row["at_least"] == true { Value::Null } else { true.into() };
    assert!(row["output_equal"] == equal && row["scope"] == "heap-rw", "{row}");
    Some(row)
}

#[test]
fn every_program_is_measured_or_says_why_not() {
    let Some(programs) = programs() else { return };
    let directory = tempfile::tempdir().unwrap();
    let small = ["--scale", "0.0005", "--runs", "1", "--seconds", "0.3", "--limit", "60"];
    let arguments = [&small[..], &["--columns", "off,patch,budget-5"]].concat();
    let results = measure(&programs, directory.path(), &arguments);
    let mut measured = 0;
    for column in ["native", "off", "patch", "budget-5"] {
        let names: Vec<&str> = rows(&results, column).map(|row| row["program"].as_str().unwrap()).collect();
        let all = ["sqlite3", "perl", "python3", "jq", "gzip", "xz", "c++", "rust", "memcached", "redis"];
        assert_eq!(names, all, "{column}");
        measured += rows(&results, column).filter_map(checked).count();
    }
    // The Rust program comes with the harness.
    assert!(measured > 0);
    for row in rows(&results, "patch").filter_map(checked) {
        let count = |name: &str| row[name][0].as_u64().unwrap();
        assert!(count("accesses") > 0 || count("allocs") == 0, "{row}");
        assert!(count("faults") >= count("unpatched_faults"), "{row}");
    }
    assert!(rows(&results, "native").filter_map(checked).all(|row| row["ratio_to_native"] == 1.0));
    let means = results["geometric_means"].as_array().unwrap();
    assert!(
        means.iter().any(|mean| mean["name"] == "off" && mean["ratio_to_native"].as_f64().unwrap() > 0.0)
    );
}

#[test]
fn slow_columns_run_once_and_end_at_the_limit() {
    let Some(programs) = programs() else { return };
    let directory = tempfile::tempdir().unwrap();
    // So much work that no emulation ends in so short a time, and native does.
    let arguments =
        ["--scale", "0.1", "--runs", "2", "--limit", "3", "--programs", "rust", "--columns", "emulate,dhat"];
    let results = measure(&programs, directory.path(), &arguments);
    assert_eq!(rows(&results, "native").next().unwrap()["runs_s"].as_array().unwrap().len(), 2);
    for row in rows(&results, "emulate").chain(rows(&results, "dhat")).filter_map(checked) {
        assert_eq!(row["runs_s"].as_array().unwrap().len(), 1);
    }
    for row in rows(&results, "emulate").filter_map(checked) {
        assert!(row["at_least"] == true && row["ratio_to_native"].as_f64().unwrap() > 1.0, "{row}");
    }
}
