//! The harness of the paper's experiment, in small: it builds memcached from its source package and runs all that this
//! machine can run. Without the runtime (THERMALLOC_TEST_BIN names the directory of a build of the workspace) or without the
//! source package the tests print SKIP; with `REQUIRE_MEMCACHED=1` a source package that cannot be had fails.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The build of the workspace, if memcached can be built.
fn programs() -> Option<PathBuf> {
    let Some(directory) = std::env::var_os("THERMALLOC_TEST_BIN") else {
        println!("SKIP: THERMALLOC_TEST_BIN is not set");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("memcached-builds");
    let built = Command::new(script).arg("plain").output().expect("the script runs");
    if !built.status.success() {
        let words = String::from_utf8_lossy(&built.stderr).into_owned();
        let required = std::env::var_os("REQUIRE_MEMCACHED").is_some_and(|v| v == "1");
        assert!(!required, "memcached is not built: {words}");
        println!("SKIP: memcached is not built: {words}");
        return None;
    }
    Some(directory.into())
}

/// Runs a task with its results in `directory`; the output, and the JSON file `name`.
fn task(programs: &Path, directory: &Path, arguments: &[&str], name: &str) -> (Output, Value) {
    let mut command = Command::new(programs.join("bench-paper"));
    let output =
        command.args(arguments).arg("--results").arg(directory).output().expect("the program starts");
    let json = std::fs::read(directory.join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {output:?}"));
    (output, serde_json::from_slice(&json).expect("JSON"))
}

fn row<'a>(results: &'a Value, name: &str) -> &'a Value {
    let rows = results["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row {name}"))
}

#[test]
fn every_row_is_measured_or_says_why_not() {
    let Some(programs) = programs() else { return };
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["table", "--smoke", "--load", "own", "--scopes", "slab-writes"];
    let (output, results) = task(&programs, directory.path(), &arguments, "paper.json");
    assert!(output.status.success(), "{output:?}");
    for name in ["native", "pp", "mpk", "mpk-ci", "wrpkru", "ci-alias", "emulate", "patch"] {
        let row = row(&results, name);
        assert_eq!(row["scope"], "slab-writes");
        match row["skipped"].as_str() {
            Some(reason) => assert!(!reason.is_empty() && row["ratio_to_native"].is_null(), "{row}"),
            None => assert!(
                row["median_s"].as_f64().unwrap() > 0.0 && row["peak_kib"].as_f64().unwrap() > 0.0,
                "{row}"
            ),
        }
    }
    assert_eq!(row(&results, "native")["ratio_to_native"], 1.0);
    // Each access takes a fault, where native takes none.
    assert!(row(&results, "pp")["ratio_to_native"].as_f64().unwrap() > 1.0);
    assert!(row(&results, "pp")["faults"][0].as_u64().unwrap() > 0);
    // A SET writes an item's header, key and value; ten GETs of absent keys write nothing.
    assert!(results["settings"]["accesses_per_request"]["slab-writes"].as_f64().unwrap() > 0.5);
    for picture in ["paper.svg", "paper.png", "paper.md"] {
        assert!(directory.path().join(picture).metadata().unwrap().len() > 100);
    }
}

#[test]
fn items_have_the_same_heat_however_it_is_seen() {
    let Some(programs) = programs() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (output, results) = task(&programs, directory.path(), &["items", "--smoke"], "items.json");
    assert!(output.status.success(), "{output:?}");
    assert!(results["rank_correlation"].as_f64().unwrap() > 0.99);
    assert_eq!(results["points"].as_array().unwrap().len(), 40);
    let measured = |row: &&Value| row["skipped"].is_null();
    assert!(results["rows"].as_array().unwrap().iter().filter(measured).count() > 0);
}
