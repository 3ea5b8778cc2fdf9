//! `thermalloc top` as a whole: names from real programs, bad input, closed pipes, large reports.

mod common;

use common::{PROGRAM, Sandbox, lines, run};
use object::{Object, ObjectSymbol};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

fn top(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    run(Command::new(PROGRAM).arg("top").args(arguments).current_dir(sandbox.root()))
}

fn shown(sandbox: &Sandbox, report: &Value, arguments: &[&str]) -> String {
    fs::write(sandbox.path("heat.json"), report.to_string()).unwrap();
    let output = top(sandbox, &[&["heat.json"], arguments].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Build id, and the address of a function, as the file has them.
fn facts(path: &Path, function: &str) -> (String, u64) {
    let image = fs::read(path).unwrap();
    let file = object::File::parse(&*image).unwrap();
    let id = file.build_id().unwrap().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(function)).expect(function);
    (id, symbol.address())
}

/// One site whose stack is these addresses, innermost first.
fn report(module: &Path, build_id: &str, addresses: &[u64]) -> Value {
    let frames: Vec<Value> =
        addresses.iter().map(|at| json!({"ip": at + 0x10000, "module": 0, "offset": at})).collect();
    let indices: Vec<usize> = (0..addresses.len()).collect();
    json!({"format": "thermalloc-heat", "version": 1, "frames": frames,
        "modules": [{"path": module, "base": 0x10000, "build_id": build_id}],
        "sites": [{"id": 1, "frames": indices, "allocs": 1, "bytes": 10, "reads": 5, "writes": 6}]})
}

const C_SOURCE: &str = "
#include <stdlib.h>
void *xmalloc(size_t n) { return malloc(n); }
int build_table(int n) {
    return xmalloc(n) != 0;
}
int main(void) { return build_table(3); }
";

/// The program, its build id, and return addresses within `xmalloc` and `build_table`.
fn c_program(sandbox: &Sandbox) -> (std::path::PathBuf, String, [u64; 2]) {
    sandbox.compile(C_SOURCE, "program", &["-g", "-O0", "-Wl,--build-id"]);
    let path = sandbox.path("program");
    let (id, shim) = facts(&path, "xmalloc");
    let (_, caller) = facts(&path, "build_table");
    (path, id, [shim + 9, caller + 9])
}

#[test]
fn functions_files_and_lines() {
    let sandbox = Sandbox::new();
    let (path, id, addresses) = c_program(&sandbox);
    let report = report(&path, &id, &addresses);
    let text = shown(&sandbox, &report, &[]);
    assert!(text.contains("build_table ") && text.contains("program.c:4 (program)"), "{text}");
    assert!(!text.contains("xmalloc"), "{text}");
    let text = shown(&sandbox, &report, &["--stacks"]);
    assert!(text.contains("    xmalloc "), "{text}");
}

/// A call at the very end of a function returns to the first byte of the next.
#[test]
fn return_addresses_belong_to_the_call_before_them() {
    let sandbox = Sandbox::new();
    let source = "
        void after(void); __attribute__((noreturn)) void stop(void);
        __asm__(\".globl before\\n.type before,@function\\nbefore: call after\\n.size before, .-before\\n\"
                \".globl after\\n.type after,@function\\nafter: ret\\n.size after, .-after\\n\");
        int main(void) { return 0; }";
    sandbox.compile(source, "program", &["-Wl,--build-id"]);
    let (id, after) = facts(&sandbox.path("program"), "after");
    let text = shown(&sandbox, &report(&sandbox.path("program"), &id, &[after]), &[]);
    assert!(text.contains("before (program)"), "{text}");
}

#[test]
fn separate_debug_files_are_found_by_their_link() {
    let sandbox = Sandbox::new();
    let (path, id, addresses) = c_program(&sandbox);
    let report = report(&path, &id, &addresses);
    let objcopy = |arguments: &[&str]| {
        let status = Command::new("objcopy").args(arguments).current_dir(sandbox.root()).status();
        assert!(status.unwrap().success());
    };
    objcopy(&["--only-keep-debug", "program", "program.debug"]);
    objcopy(&["--strip-all", "program"]);
    let text = shown(&sandbox, &report, &[]);
    assert!(text.contains(&format!("program+{:#x}", addresses[0])), "{text}");
    objcopy(&["--add-gnu-debuglink=program.debug", "program"]);
    let text = shown(&sandbox, &report, &[]);
    assert!(text.contains("build_table ") && text.contains("program.c:4"), "{text}");
}

#[test]
fn another_build_gives_no_names_and_says_so_once() {
    let sandbox = Sandbox::new();
    let (path, _, addresses) = c_program(&sandbox);
    let text = shown(&sandbox, &report(&path, "0123", &addresses), &["--stacks"]);
    assert!(text.contains(&format!("program+{:#x}", addresses[0])), "{text}");
    assert_eq!(text.matches("build id").count(), 1, "{text}");
    assert!(!text.contains("build_table"), "{text}");
}

#[test]
fn cpp_names_and_allocators() {
    let sandbox = Sandbox::new();
    let source = "#include <vector>\nnamespace store { struct Map { std::vector<long> v; \
                  __attribute__((noinline)) void insert(long x) { v.push_back(x); } }; }\n\
                  int main() { store::Map m; m.insert(1); return 0; }\n";
    sandbox.compile(source, "program", &["-xc++", "-g", "-O0", "-Wl,--build-id"]);
    let path = sandbox.path("program");
    let (id, insert) = facts(&path, "_ZN5store3Map6insertEl");
    let (_, push) = facts(&path, "_ZNSt6vectorIlSaIlEE9push_backERKl");
    let text = shown(&sandbox, &report(&path, &id, &[push + 8, insert + 8]), &[]);
    assert!(text.contains("store::Map::insert "), "{text}");
    assert!(!text.contains("push_back"), "{text}");
}

#[test]
fn lines_fit_the_terminal() {
    let sandbox = Sandbox::new();
    let (path, id, addresses) = c_program(&sandbox);
    fs::write(sandbox.path("heat.json"), report(&path, &id, &addresses).to_string()).unwrap();
    for (columns, by) in [("40", "site"), ("80", "object"), ("80", "class"), ("120", "site")] {
        let mut command = Command::new(PROGRAM);
        command
            .args(["top", "heat.json", "-v", "--by", by])
            .current_dir(sandbox.root())
            .env("COLUMNS", columns);
        let output = run(&mut command);
        let limit: usize = columns.parse().unwrap();
        for line in lines(&output.stdout) {
            assert!(line.chars().count() <= limit, "{columns}: {line}");
        }
    }
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let sandbox = Sandbox::new();
    let whole = r#"{"format": "thermalloc-heat", "version": 1, "sites": [{"id": 1, "reads": 7}]}"#;
    fs::create_dir(sandbox.path("directory")).unwrap();
    for (name, contents) in [
        ("empty", ""),
        ("blank", " \n\n"),
        ("text", "no json at all"),
        ("number", "17"),
        ("list", "[1, 2]"),
        ("foreign", r#"{"traceEvents": []}"#),
        ("version", r#"{"format": "thermalloc-heat", "version": 2, "sites": {"new": "shape"}}"#),
        ("versionless", r#"{"format": "thermalloc-heat"}"#),
        ("damaged", r#"{"format": "thermalloc-heat", "version": 1, "sites": 5}"#),
        ("truncated", &whole[..whole.len() - 9]),
        ("trailing", &format!("{whole}{whole}")),
    ] {
        fs::write(sandbox.path(name), contents).unwrap();
    }
    for (name, word) in [
        ("missing", "No such file"),
        ("directory", "directory"),
        ("empty", "empty"),
        ("blank", "empty"),
        ("text", "not JSON"),
        ("number", "not a heat.json"),
        ("list", "not a heat.json"),
        ("foreign", "not a heat.json"),
        ("version", "version 2"),
        ("versionless", "no version"),
        ("damaged", "damaged"),
        ("truncated", "truncated"),
        ("trailing", "not JSON"),
    ] {
        let output = top(&sandbox, &[name]);
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
        let lines = lines(&output.stderr);
        assert_eq!(lines.len(), 1, "{name}: {lines:?}");
        assert!(lines[0].starts_with(&format!("thermalloc: {name}: ")), "{lines:?}");
        assert!(lines[0].contains(word), "{word}: {lines:?}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let sandbox = Sandbox::new();
    let sites: Vec<Value> = (0..20_000).map(|id| json!({"id": id, "reads": id})).collect();
    let report = json!({"format": "thermalloc-heat", "version": 1, "sites": sites});
    fs::write(sandbox.path("heat.json"), report.to_string()).unwrap();
    let mut child = Command::new(PROGRAM)
        .args(["top", "heat.json", "-n", "20000"])
        .current_dir(sandbox.root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Much more is to come than a pipe holds.
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// Writes a report of at least `size` bytes: objects with heat, sites with histograms.
fn large_report(path: &Path, size: u64) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut written = 0;
    let mut put = |text: String| {
        written += text.len() as u64;
        file.write_all(text.as_bytes()).unwrap();
        written
    };
    put(r#"{"format": "thermalloc-heat", "version": 1, "classes": [], "sites": ["#.into());
    let histogram = "A".repeat(400);
    for id in 0..2000 {
        let comma = if id > 0 { "," } else { "" };
        let distribution = json!({"count": 1, "hdr_v2_base64": histogram});
        let site = json!({"id": id, "frames": [0, 1, 2], "allocs": 9, "bytes": 900, "reads": id, "writes": 1,
            "accesses_per_object": distribution, "lifetime_ns": distribution});
        put(format!("{comma}{site}"));
    }
    put(r#"], "frames": [{"ip": 1}, {"ip": 2}, {"ip": 3}], "objects": [{}"#.into());
    let counts: Vec<u64> = (0..64).map(|at| at * 977).collect();
    let mut id = 0u64;
    loop {
        let object = json!({"addr": 4096 + 1024 * id, "size": 1024, "site": id % 2000, "reads": id * 7919 % 100_003,
            "writes": 5, "threads": 1, "heat": {"granule": 16, "reads": counts, "writes": counts}});
        id += 1;
        if put(format!(",{object}")) >= size {
            break;
        }
    }
    put("]}".into());
    file.flush().unwrap();
}

/// Memory does not grow with the number of objects: 100 MB are read within 60 MB of address space, program included.
#[test]
fn a_report_of_100_megabytes() {
    let sandbox = Sandbox::new();
    large_report(&sandbox.path("heat.json"), 100_000_000);
    let start = Instant::now();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 60000; exec \"$0\" top heat.json --by object -n 3", PROGRAM]);
    let output = run(command.current_dir(sandbox.root()));
    println!("100 MB in {:?}", start.elapsed());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let objects: Vec<&str> = text.lines().filter(|line| line.starts_with("0x")).collect();
    assert_eq!(objects.len(), 3, "{text}");
    // Reads go up to 100,002 and come round many times.
    assert!(objects.iter().all(|line| line.contains(" 100k ")), "{text}");
}
