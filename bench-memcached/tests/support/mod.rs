//! Starting the program under test and reading its results.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the load generator with `args` and JSON output in `directory`; what it printed, and the JSON.
pub fn bench(directory: &Path, args: &[&str]) -> (Output, Value) {
    let json = directory.join("bench.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench-memcached"));
    let output = command.args(args).arg("--json-out-file").arg(&json).output().expect("the program starts");
    let parsed =
        std::fs::read(&json).map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).expect("JSON"));
    (output, parsed)
}

/// What the program wrote to stderr.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
