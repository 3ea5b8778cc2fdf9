//! `thermalloc diff`, `merge` and `advise` as whole programs: on reports of real programs, and across a real rebuild.

mod common;

use common::{PROGRAM, Sandbox, run};
use object::{Object, ObjectSymbol};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FIXTURES: [&str; 6] = ["sqlite3", "python3", "memcached", "redis", "service", "planted"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"))
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What the command writes to stdout.
fn thermalloc(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = run(Command::new(PROGRAM).args(arguments).current_dir(sandbox.root()));
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

const OLD: &str = "
#include <stdlib.h>
__attribute__((noinline)) void *grow(void) { void *p = malloc(10); return p; }
__attribute__((noinline)) void *gone(void) { void *p = malloc(11); return p; }
int main(void) { return grow() == gone(); }
";

/// Lines and addresses are others, one function is new, one has gone.
const NEW: &str = "
#include <stdlib.h>
/* A comment. */
volatile int counter;
__attribute__((noinline)) void *fresh(void) { counter++; void *p = malloc(12); return p; }
__attribute__((noinline)) void *grow(void) { counter += 2; void *p = malloc(10); return p; }
int main(void) { counter = 3; return grow() == fresh(); }
";

/// A report of a program that was built here: a site in each function, with so many reads.
fn report_of(program: &Path, functions: &[(&str, u64)]) -> Value {
    let image = fs::read(program).unwrap();
    let file = object::File::parse(&*image).unwrap();
    let id: String = file.build_id().unwrap().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let address = |name: &str| file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address() + 9;
    let frame = |at: u64| json!({"ip": at + 0x10000, "module": 0, "offset": at});
    let mut frames: Vec<Value> = functions.iter().map(|(name, _)| frame(address(name))).collect();
    frames.push(frame(address("main")));
    let sites: Vec<Value> = functions
        .iter()
        .enumerate()
        .map(|(at, (_, reads))| json!({"id": at + 1, "frames": [at, functions.len()], "allocs": 1, "bytes": 10, "reads": reads}))
        .collect();
    json!({"format": "thermalloc-heat", "version": 1, "frames": frames, "sites": sites,
        "modules": [{"path": program, "base": 0x10000, "build_id": id}]})
}

#[test]
fn a_rebuilt_program_is_compared_with_what_it_was() {
    let sandbox = Sandbox::new();
    let program = sandbox.path("program");
    let options = ["-g", "-O0", "-Wl,--build-id"];
    sandbox.compile(OLD, "program", &options);
    let old = report_of(&program, &[("grow", 100), ("gone", 50)]);
    fs::write(sandbox.path("old.json"), old.to_string()).unwrap();
    // A merge of one carries its names, wherever the program goes.
    thermalloc(&sandbox, &["merge", "old.json", "-o", "named.json"]);
    fs::create_dir(sandbox.path("kept")).unwrap();
    fs::rename(&program, sandbox.path("kept/program")).unwrap();
    sandbox.compile(NEW, "program", &options);
    let new = report_of(&program, &[("fresh", 7), ("grow", 300)]);
    fs::write(sandbox.path("new.json"), new.to_string()).unwrap();

    for arguments in [
        &["diff", "named.json", "new.json", "--format", "json"][..],
        &["diff", "old.json", "new.json", "--format", "json", "--symbols", "kept"],
    ] {
        let diff: Value = serde_json::from_str(&thermalloc(&sandbox, arguments)).unwrap();
        let sites = diff["sites"].as_array().unwrap();
        let found: Vec<(&str, &str)> = sites
            .iter()
            .map(|site| (site["kind"].as_str().unwrap(), site["function"].as_str().unwrap()))
            .collect();
        assert_eq!(found, [("hotter", "grow"), ("appeared", "fresh"), ("went", "gone")], "{arguments:?}");
        assert_eq!((&sites[0]["old"]["reads"], &sites[0]["new"]["reads"]), (&json!(100), &json!(300)));
        assert_eq!(diff["notes"], json!([]), "{arguments:?}");
    }
    // Without the older build nothing can match, and that is said.
    let text = thermalloc(&sandbox, &["diff", "old.json", "new.json"]);
    assert!(text.contains("0 hotter") && text.contains("--symbols"), "{text}");
}

#[test]
fn a_report_does_not_differ_from_itself_or_from_its_merge() {
    let sandbox = Sandbox::new();
    for name in FIXTURES {
        let path = fixture(name);
        let path = path.to_str().unwrap();
        thermalloc(&sandbox, &["merge", path, "-o", "merged.json"]);
        for other in [path, "merged.json"] {
            let diff = thermalloc(&sandbox, &["diff", path, other, "--format", "json", "--threshold", "0"]);
            let diff: Value = serde_json::from_str(&diff).unwrap();
            let counts = diff["counts"].as_object().unwrap();
            let changed =
                counts.iter().filter(|(kind, _)| *kind != "unchanged").all(|(_, count)| *count == 0);
            assert!(changed, "{name} {other}: {counts:?}");
        }
    }
}

#[test]
fn merged_totals_add_up_and_every_command_reads_the_result() {
    let sandbox = Sandbox::new();
    let paths = FIXTURES.map(fixture);
    let mut arguments = vec!["merge", "-o", "merged.json"];
    arguments.extend(paths.iter().map(|path| path.to_str().unwrap()));
    // One twice, as if two processes of it had run.
    arguments.push(paths[0].to_str().unwrap());
    thermalloc(&sandbox, &arguments);
    let merged = read(&sandbox.path("merged.json"));
    let mut parts: Vec<Value> = paths.iter().map(|path| read(path)).collect();
    parts.push(parts[0].clone());
    for key in [
        "allocs",
        "frees",
        "bytes",
        "reads",
        "writes",
        "read_bytes",
        "kernel_writes",
        "unattributed",
        "faults",
    ] {
        let sum: u64 = parts.iter().map(|part| part["totals"][key].as_u64().unwrap()).sum();
        assert_eq!(merged["totals"][key], sum, "{key}");
    }
    let sum = |report: &Value, list: &str, key: &str| -> u64 {
        report[list].as_array().unwrap().iter().map(|item| item[key].as_u64().unwrap()).sum()
    };
    for (list, key) in [("sites", "reads"), ("sites", "bytes"), ("classes", "allocs"), ("objects", "writes")]
    {
        let parts: u64 = parts.iter().map(|part| sum(part, list, key)).sum();
        assert_eq!(sum(&merged, list, key), parts, "{list} {key}");
    }
    let sites = |report: &Value| report["sites"].as_array().unwrap().len();
    assert!(
        sites(&merged) <= parts[..FIXTURES.len()].iter().map(sites).sum(),
        "the same process twice has no more sites than once"
    );
    for arguments in [
        &["top", "merged.json"][..],
        &["top", "merged.json", "--by", "object"],
        &["export", "merged.json", "--format", "pprof", "-o", "out"],
        &["export", "merged.json", "--format", "dhat", "-o", "out"],
        &["advise", "merged.json", "--fast-bytes", "64K", "--by", "page"],
        &["merge", "merged.json", "merged.json", "-o", "again.json"],
    ] {
        thermalloc(&sandbox, arguments);
    }
}

#[test]
fn advice_is_between_chance_and_the_oracle() {
    let sandbox = Sandbox::new();
    for name in FIXTURES {
        let path = fixture(name);
        let report = read(&path);
        let peak = report["totals"]["peak_live_bytes"].as_u64().unwrap();
        for by in ["site", "object", "page"] {
            let size = (peak / 8).to_string();
            let path = path.to_str().unwrap();
            thermalloc(
                &sandbox,
                &["advise", path, "--fast-bytes", &size, "--by", by, "--hints", "hints.json"],
            );
            let hints = read(&sandbox.path("hints.json"));
            let share = |key: &str| hints[key].as_f64().unwrap();
            assert!(
                share("random") <= share("covered") && share("covered") <= share("oracle"),
                "{name} {by}: {hints}"
            );
            assert!(
                share("covered") > 0.0 && hints["fast_peak_bytes"].as_u64() <= Some(peak / 8),
                "{name} {by}"
            );
            let items = hints[format!("{by}s")].as_array().unwrap();
            let fast = items.iter().filter(|item| item["tier"] == "fast");
            assert!(fast.clone().count() > 0 && fast.clone().count() < items.len(), "{name} {by}");
        }
    }
}

/// What tests/fixtures/planted.c does: `hot` is read 20 times as often as anything else.
#[test]
fn advice_names_what_was_planted() {
    let sandbox = Sandbox::new();
    let path = fixture("planted");
    let first = |by: &str, size: &str, more: &[&str]| {
        let arguments =
            ["advise", path.to_str().unwrap(), "--by", by, "--fast-bytes", size, "--hints", "hints.json"];
        thermalloc(&sandbox, &[&arguments, more].concat());
        let hints = read(&sandbox.path("hints.json"));
        let item = hints[format!("{by}s")][0].clone();
        let site = &read(&path)["sites"]
            .as_array()
            .unwrap()
            .clone()
            .into_iter()
            .find(|site| site["id"] == item["site"]);
        let frame = site.as_ref().unwrap()["frames"][0].as_u64().unwrap() as usize;
        read(&path)["names"][frame][0]["function"].as_str().unwrap().to_owned()
    };
    for by in ["site", "object", "page"] {
        assert_eq!(first(by, "4K", &[]), "hot", "{by}");
    }
    assert_eq!(first("site", "8K", &["--write-cost", "20"]), "written");
}
