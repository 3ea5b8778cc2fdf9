//! `thermalloc doctor` as a whole.

mod common;

use common::{PROGRAM, fake_runtime, run};
use std::process::Command;

#[test]
fn each_no_says_what_to_do() {
    let output = run(Command::new(PROGRAM).arg("doctor"));
    let text = String::from_utf8(output.stdout).unwrap();
    for name in ["architecture", "pku", "sud", "memfd", "membarrier", "library", "mode pp", "mode mpk"] {
        let line = text.lines().find(|line| line.get(4..).is_some_and(|line| line.starts_with(name)));
        let line = line.unwrap_or_else(|| panic!("{name} is missing: {text}"));
        let parts: Vec<&str> = line.split(" — ").collect();
        let expected = if line.starts_with("yes") { 2 } else { 3 };
        assert_eq!(parts.len(), expected, "{line}");
    }
    assert!(text.contains("--mode auto picks: "), "{text}");
}

#[test]
fn json_says_the_same_and_the_status_follows() {
    let output = run(Command::new(PROGRAM).args(["doctor", "--json"]).env("THERMALLOC_LIB", fake_runtime()));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ok = |name: &str| {
        let findings = json["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["name"] == name).unwrap()["ok"].as_bool().unwrap()
    };
    assert!(ok("library"));
    let expected = if ok("mode pp") { "patch" } else { "off" };
    assert_eq!(json["auto"], expected);
    assert_eq!(output.status.code(), Some(i32::from(expected == "off")));
    // An unusable library is a reason to fail, whatever the machine can do.
    let missing = run(Command::new(PROGRAM).arg("doctor").env("THERMALLOC_LIB", "/nonexistent.so"));
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn keys_are_what_the_processor_lists() {
    let listed = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let listed =
        listed.lines().any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "ospke"));
    let output = run(Command::new(PROGRAM).args(["doctor", "--json"]));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = json["findings"].as_array().unwrap();
    let pku = findings.iter().find(|finding| finding["name"] == "pku").unwrap();
    // Without the processor's keys none can be had; with them a sandbox may still forbid it.
    assert!(listed || pku["ok"] == false, "{pku}");
}
