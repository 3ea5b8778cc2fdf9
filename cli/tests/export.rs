//! `thermalloc export` on reports of real programs, each format checked by a reader that shares no code with the writer.

mod common;
#[path = "common/protobuf.rs"]
mod protobuf;

use common::{PROGRAM, Sandbox, lines, run};
use protobuf::{fields, messages, number, numbers};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FIXTURES: [&str; 6] = ["sqlite3", "python3", "memcached", "redis", "service", "planted"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"))
}

fn report(name: &str) -> Value {
    serde_json::from_slice(&fs::read(fixture(name)).unwrap()).unwrap()
}

fn export(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> Output {
    let output = run(Command::new(PROGRAM)
        .arg("export")
        .arg(fixture(name))
        .args(arguments)
        .current_dir(sandbox.root()));
    assert!(output.status.success(), "{name}: {output:?}");
    output
}

/// Sum over sites.
fn sum(report: &Value, keys: &[&str]) -> u64 {
    let sites = report["sites"].as_array().unwrap();
    sites.iter().flat_map(|site| keys.iter().map(|key| site[key].as_u64().unwrap())).sum()
}

/// Whether a reader that has to be installed can be used; a skip is a failure where it is required.
fn available(what: &str, required: &str, there: bool) -> bool {
    if !there {
        assert!(std::env::var_os(required).is_none(), "{what} is required by {required}");
        println!("SKIP: {what} is not there ({required}=1 makes this a failure)");
    }
    there
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

#[test]
fn folded_stacks_add_up() {
    let sandbox = Sandbox::new();
    for name in FIXTURES {
        let report = report(name);
        for (weight, keys) in [
            ("accesses", &["reads", "writes"][..]),
            ("reads", &["reads"]),
            ("writes", &["writes"]),
            ("read-bytes", &["read_bytes"]),
            ("write-bytes", &["write_bytes"]),
            ("allocs", &["allocs"]),
            ("bytes", &["bytes"]),
            ("live-bytes", &["live_bytes"]),
            ("peak-bytes", &["peak_live_bytes"]),
        ] {
            let output = export(&sandbox, name, &["--format", "folded", "--weight", weight]);
            let mut all = 0;
            for line in lines(&output.stdout) {
                // As flamegraph.pl has it: a stack, white space, a number.
                let (stack, weight) = line.rsplit_once(' ').unwrap();
                assert!(!stack.is_empty() && stack.split(';').all(|name| !name.is_empty()), "{line}");
                all += weight.parse::<u64>().unwrap();
            }
            assert_eq!(all, sum(&report, keys), "{name} {weight}");
        }
    }
}

/// Fields that dh_view.js asks for, in a file, and in each of its program points.
const DHAT_FIELDS: [&str; 14] = [
    "dhatFileVersion",
    "mode",
    "verb",
    "bklt",
    "bkacc",
    "tu",
    "Mtu",
    "tuth",
    "cmd",
    "pid",
    "te",
    "tg",
    "pps",
    "ftbl",
];
const DHAT_NUMBERS: [&str; 11] = ["tb", "tbk", "tl", "mb", "mbk", "gb", "gbk", "eb", "ebk", "rb", "wb"];

#[test]
fn dhat_files_have_what_the_viewer_asks_for() {
    let sandbox = Sandbox::new();
    for name in FIXTURES {
        export(&sandbox, name, &["--format", "dhat", "-o", "dhat.out"]);
        let file: Value = serde_json::from_slice(&fs::read(sandbox.path("dhat.out")).unwrap()).unwrap();
        assert!(DHAT_FIELDS.iter().all(|field| file.get(field).is_some()), "{name}");
        assert_eq!(file["dhatFileVersion"], 2);
        let frames = file["ftbl"].as_array().unwrap();
        assert_eq!(frames[0], "[root]");
        let (mut sums, mut stacks) = (HashMap::new(), Vec::new());
        for point in file["pps"].as_array().unwrap() {
            for field in DHAT_NUMBERS {
                *sums.entry(field).or_insert(0) += point[field].as_u64().expect(field);
            }
            let stack: Vec<u64> =
                point["fs"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap()).collect();
            assert!(
                !stack.is_empty() && stack.iter().all(|&at| (1..frames.len() as u64).contains(&at)),
                "{name}"
            );
            assert!(point["gb"].as_u64() <= point["mb"].as_u64(), "{name}: {point}");
            stacks.push(stack);
        }
        let report = report(name);
        for (field, key) in [
            ("tb", "bytes"),
            ("tbk", "allocs"),
            ("eb", "live_bytes"),
            ("rb", "read_bytes"),
            ("wb", "write_bytes"),
        ] {
            assert_eq!(sums[field], sum(&report, &[key]), "{name} {field}");
        }
        assert_eq!(sums["ebk"], sum(&report, &["allocs"]) - sum(&report, &["frees"]));
        assert!(file["tg"].as_u64() <= file["te"].as_u64());
        let all = stacks.len();
        stacks.sort();
        stacks.dedup();
        assert_eq!(stacks.len(), all, "{name}: the viewer refuses a stack that comes twice");
    }
}

/// The viewer's own code, up to the tree that it shows, on a page that is not there.
const VIEWER: &str = r#"
const fs = require("fs"), vm = require("vm");
const options = Array.from({ length: 20 }, () => ({}));
const context = { Intl, document: {}, performance, console };
vm.createContext(context);
vm.runInContext(fs.readFileSync(process.argv[2], "utf8") + `
;gSelect = { childNodes: gSelectData.map(() => ({})), selectedIndex: 0 };
function load(text) { gData = JSON.parse(text); buildTree(); return [gRoot._totalBytes, gRoot._readsBytes, gRoot._writesBytes]; }
this.load = load;`, context);
console.log(JSON.stringify(context.load(fs.readFileSync(process.argv[3], "utf8"))));
"#;

#[test]
fn the_viewer_of_valgrind_builds_its_tree() {
    let viewer = "/usr/libexec/valgrind/dh_view.js";
    let there = Path::new(viewer).is_file() && succeeds("node", &["--version"]);
    if !available("node or dh_view.js", "REQUIRE_DH_VIEW", there) {
        return;
    }
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("view.js"), VIEWER).unwrap();
    for name in FIXTURES {
        export(&sandbox, name, &["--format", "dhat", "-o", "dhat.out"]);
        let mut command = Command::new("node");
        let output = run(command.args(["view.js", viewer, "dhat.out"]).current_dir(sandbox.root()));
        assert!(output.status.success(), "{name}: {output:?}");
        let totals: Vec<u64> = serde_json::from_slice(&output.stdout).unwrap();
        let report = report(name);
        let expected = ["bytes", "read_bytes", "write_bytes"].map(|key| sum(&report, &[key]));
        assert_eq!(totals, expected, "{name}");
    }
}

#[test]
fn pprof_profiles_decode_field_by_field() {
    let sandbox = Sandbox::new();
    for name in FIXTURES {
        export(&sandbox, name, &["--format", "pprof", "-o", "profile.pb.gz"]);
        let mut bytes = Vec::new();
        let file = fs::File::open(sandbox.path("profile.pb.gz")).unwrap();
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        let profile = fields(&bytes);
        let texts: Vec<String> =
            messages(&profile, 6).iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
        assert_eq!(texts[0], "");
        let types: Vec<&str> = messages(&profile, 1)
            .iter()
            .map(|value| texts[number(&fields(value), 1) as usize].as_str())
            .collect();
        let locations: Vec<u64> = messages(&profile, 4).iter().map(|at| number(&fields(at), 1)).collect();
        let mut sums = vec![0; types.len()];
        for sample in messages(&profile, 2) {
            let sample = fields(sample);
            let stack: Vec<u64> = messages(&sample, 1).iter().flat_map(|ids| numbers(ids)).collect();
            assert!(stack.iter().all(|id| locations.contains(id)), "{name}");
            let values: Vec<u64> = messages(&sample, 2).iter().flat_map(|values| numbers(values)).collect();
            assert_eq!(values.len(), types.len());
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        let report = report(name);
        for (kind, keys) in [
            ("alloc_objects", &["allocs"][..]),
            ("alloc_space", &["bytes"]),
            ("inuse_space", &["live_bytes"]),
            ("accesses", &["reads", "writes"]),
            ("reads", &["reads"]),
            ("write_bytes", &["write_bytes"]),
        ] {
            let index = types.iter().position(|name| *name == kind).expect(kind);
            assert_eq!(sums[index], sum(&report, keys), "{name} {kind}");
        }
        let modules = report["modules"].as_array().unwrap();
        let mappings = messages(&profile, 3);
        assert_eq!(mappings.len(), modules.len());
        for (mapping, module) in mappings.iter().zip(modules) {
            let mapping = fields(mapping);
            assert_eq!(texts[number(&mapping, 5) as usize], module["path"].as_str().unwrap());
            assert_eq!(texts[number(&mapping, 6) as usize], module["build_id"].as_str().unwrap());
            assert!(number(&mapping, 2) < number(&mapping, 3));
        }
    }
}

#[test]
fn go_reads_the_profile() {
    if !available("go", "REQUIRE_GO_PPROF", succeeds("go", &["version"])) {
        return;
    }
    let sandbox = Sandbox::new();
    for name in FIXTURES {
        export(&sandbox, name, &["--format", "pprof", "-o", "profile.pb.gz"]);
        let mut command = Command::new("go");
        command.args(["tool", "pprof", "-symbolize=none", "-sample_index=reads", "-top", "profile.pb.gz"]);
        let output = run(command.current_dir(sandbox.root()).env("HOME", sandbox.root()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name}: {output:?}");
        assert!(text.contains("Type: reads") && text.contains("flat%"), "{text}");
        let reads = sum(&report(name), &["reads"]);
        assert!(text.contains(&format!("of {reads} total")), "{reads}: {text}");
    }
}

/// Reads the tables with the standard library's csv, with DuckDB and with pyarrow, and prints sums and types.
const READER: &str = r#"
import csv, json, sys
import duckdb, pyarrow.parquet as parquet
result = {}
for table, column in [("sites", "reads"), ("objects", "size"), ("timeline", "writes")]:
    with open(f"t.{table}.csv", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    arrow = parquet.read_table(f"t.{table}.parquet")
    assert arrow.column_names == list(rows[0].keys()), table
    assert [str(value["exe"]) for value in arrow.select(["exe"]).to_pylist()] == [row["exe"] for row in rows]
    if table == "sites":
        assert arrow["stack"].to_pylist() == [row["stack"] for row in rows]
        assert str(arrow.schema.field("reads").type) == "uint64" and str(arrow.schema.field("stack").type) == "string"
    if table == "objects":
        assert arrow["free_ns"].to_pylist() == [int(row["free_ns"]) if row["free_ns"] else None for row in rows]
    duck = duckdb.sql(f"select count(*), sum({column})::ubigint from 't.{table}.parquet'").fetchall()[0]
    text = duckdb.sql(f"select count(*), sum({column})::ubigint from read_csv('t.{table}.csv')").fetchall()[0]
    own = (len(rows), sum(int(row[column]) for row in rows))
    assert tuple(duck) == tuple(text) == own == (arrow.num_rows, sum(arrow[column].to_pylist())), (duck, text, own)
    result[table] = own
join = "select sum(o.reads)::ubigint from 't.objects.parquet' o join 't.sites.parquet' s using (pid, start_unix_ns, site)"
result["join"] = duckdb.sql(join).fetchall()[0][0]
print(json.dumps(result))
"#;

/// A Python that has DuckDB and pyarrow: the machine's, or one that is set up here where that is required.
fn python() -> Option<PathBuf> {
    let modules = ["-c", "import duckdb, pyarrow"];
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readers");
    let python = venv.join("bin/python");
    if succeeds("python3", &modules) {
        return Some("python3".into());
    }
    if !succeeds(python.to_str()?, &modules) && std::env::var_os("REQUIRE_PYTHON_READERS").is_some() {
        let venv = venv.to_str()?;
        assert!(succeeds("python3", &["-m", "venv", venv]), "python3 -m venv");
        assert!(
            succeeds(python.to_str()?, &["-m", "pip", "install", "-q", "duckdb", "pyarrow"]),
            "pip install"
        );
    }
    let there = succeeds(python.to_str()?, &modules);
    available("a Python with duckdb and pyarrow", "REQUIRE_PYTHON_READERS", there).then_some(python)
}

#[test]
fn duckdb_and_pyarrow_read_the_tables() {
    let Some(python) = python() else { return };
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("read.py"), READER).unwrap();
    for name in FIXTURES {
        export(&sandbox, name, &["--format", "csv", "-o", "t.csv"]);
        export(&sandbox, name, &["--format", "parquet", "-o", "t.parquet"]);
        let output = run(Command::new(&python).arg("read.py").current_dir(sandbox.root()));
        assert!(output.status.success(), "{name}: {output:?}");
        let read: Value = serde_json::from_slice(&output.stdout).unwrap();
        let report = report(name);
        let objects = report["objects"].as_array().unwrap();
        let of_objects = |key: &str| objects.iter().map(|object| object[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(
            read["sites"],
            serde_json::json!([report["sites"].as_array().unwrap().len(), sum(&report, &["reads"])])
        );
        assert_eq!(read["objects"], serde_json::json!([objects.len(), of_objects("size")]));
        assert_eq!(read["join"], of_objects("reads"), "{name}");
    }
}

/// What tests/fixtures/planted.c does, counted by hand.
#[test]
fn planted_heat_is_where_it_was_planted() {
    let sandbox = Sandbox::new();
    let folded = export(&sandbox, "planted", &["--format", "folded"]);
    let weight = |function: &str| {
        let lines = lines(&folded.stdout);
        let ending =
            |line: &String| Some(line.split_once(&format!(";main;{function} "))?.1.parse::<u64>().unwrap());
        lines.iter().find_map(ending)
    };
    let accesses = ["hot", "shared", "written", "cold", "untouched"].map(weight);
    assert_eq!(accesses, [Some(40_064), Some(4_064), Some(8_000), Some(200), None]);
    let csv = export(&sandbox, "planted", &["--format", "csv"]);
    let table = lines(&csv.stdout);
    let column = |name: &str| table[0].split(',').position(|column| column == name).expect(name);
    let value = |function: &str, name: &str| {
        let row = table.iter().map(|row| row.split(',').collect::<Vec<_>>());
        row.clone().find(|row| row[column("function")] == function).unwrap()[column(name)].to_owned()
    };
    assert_eq!((value("written", "reads"), value("written", "writes")), ("0".into(), "8000".into()));
    assert_eq!((value("untouched", "reads"), value("untouched", "writes")), ("0".into(), "0".into()));
    assert_eq!((value("shared", "max_threads"), value("hot", "max_threads")), ("2".into(), "1".into()));
    assert_eq!((value("hot", "file"), value("hot", "bytes")), ("/src/planted.c".into(), "4096".into()));
}

#[test]
fn tables_go_where_they_are_sent() {
    let sandbox = Sandbox::new();
    let output = export(&sandbox, "sqlite3", &["--format", "csv", "-o", "run.csv"]);
    assert_eq!(lines(&output.stderr).len(), 3, "{output:?}");
    let site_lines = fs::read(sandbox.path("run.sites.csv")).unwrap();
    assert_eq!(export(&sandbox, "sqlite3", &["--format", "csv"]).stdout, site_lines);
    export(&sandbox, "sqlite3", &["--format", "csv", "--table", "timeline", "-o", "one"]);
    assert_eq!(fs::read(sandbox.path("one")).unwrap(), fs::read(sandbox.path("run.timeline.csv")).unwrap());
    let left: Vec<_> = fs::read_dir(sandbox.root()).unwrap().collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let sandbox = Sandbox::new();
    let whole = fs::read(fixture("memcached")).unwrap();
    fs::write(sandbox.path("cut"), &whole[..whole.len() / 2]).unwrap();
    fs::write(sandbox.path("text"), "hello").unwrap();
    fs::write(sandbox.path("minus"), r#"{"format":"thermalloc-heat","version":1,"sites":[{"reads":-1}]}"#)
        .unwrap();
    fs::write(sandbox.path("good"), &whole).unwrap();
    for (name, word) in
        [("cut", "truncated"), ("text", "not JSON"), ("minus", "damaged"), ("missing", "No such file")]
    {
        for command in [
            &["export", name, "--format", "dhat"][..],
            &["export", name, "--format", "parquet", "-o", "out"],
            &["diff", "good", name],
            &["merge", "good", name, "-o", "out"],
            &["advise", name, "--fast-bytes", "1M"],
        ] {
            let output = run(Command::new(PROGRAM).args(command).current_dir(sandbox.root()));
            assert_eq!(output.status.code(), Some(2), "{command:?}: {output:?}");
            let lines = lines(&output.stderr);
            assert!(lines.len() == 1 && lines[0].contains(word), "{command:?}: {lines:?}");
            assert!(!sandbox.path("out").exists() && !sandbox.path("out.sites").exists(), "{command:?}");
        }
    }
    for command in [
        &["export", "good", "--format", "xml"][..],
        &["export", "good", "--format", "dhat", "-o", "no/such/directory"],
        &["advise", "good", "--fast-bytes", "lots"],
        &["merge", "good"],
    ] {
        let output = run(Command::new(PROGRAM).args(command).current_dir(sandbox.root()));
        assert_eq!(
            (output.status.code(), lines(&output.stderr).len()),
            (Some(2), 1),
            "{command:?}: {output:?}"
        );
    }
}
