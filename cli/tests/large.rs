//! Exports of a large report: within 1.5 GiB of address space, whatever the format. THERMALLOC_LARGE_MB sets its size (20 otherwise);
//! with 200, each should take less than 20 s, which the test prints.

mod common;

use common::{PROGRAM, Sandbox, run};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const SITES: u64 = 20_000;
const FRAMES: u64 = 50_000;

/// What the report adds up to.
#[derive(Default)]
struct Facts {
    objects: u64,
    reads: u64,
}

/// Writes a report of about `size` bytes in the runtime's order of keys: sites with histograms, objects with heat.
fn large_report(path: &Path, size: u64) -> Facts {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let (mut written, mut facts) = (0, Facts::default());
    let mut put = |text: String| {
        written += text.len() as u64;
        file.write_all(text.as_bytes()).unwrap();
        written
    };
    put(r#"{"format": "thermalloc-heat", "version": 1, "program": {"elapsed_ns": 1000000000}, "sites": ["#
        .into());
    let histogram = "A".repeat(100);
    for id in 0..SITES {
        let comma = if id > 0 { "," } else { "" };
        let distribution = json!({"count": 1, "hdr_v2_base64": histogram});
        let frames: Vec<u64> = (0..8).map(|depth| (id * 31 + depth * depth * 977) % FRAMES).collect();
        let reads = id * 7919 % 100_003;
        facts.reads += reads;
        let site = json!({"id": id, "frames": frames, "allocs": 9, "bytes": 900, "peak_live_bytes": 500, "reads": reads,
            "writes": 1, "read_bytes": 8 * reads, "accesses_per_object": distribution, "lifetime_ns": distribution});
        put(format!("{comma}{site}"));
    }
    put(r#"], "objects": ["#.into());
    let counts: Vec<u64> = (0..64).map(|at| at * 977 % 13).collect();
    while put(if facts.objects > 0 { ",".into() } else { String::new() }) < size {
        let id = facts.objects;
        let free = if id % 3 == 0 { Value::Null } else { json!(id * 1000 + 500_000) };
        put(json!({"addr": 4096 + 1024 * id, "size": 1024, "site": id % SITES, "alloc_ns": id * 1000, "free_ns": free,
            "reads": id * 7919 % 100_003, "writes": 5, "threads": 1,
            "heat": {"granule": 16, "reads": counts, "writes": counts}}).to_string());
        facts.objects += 1;
    }
    // The loop leaves a comma behind.
    put(r#"{"addr": 1, "site": 1}], "frames": ["#.into());
    facts.objects += 1;
    for frame in 0..FRAMES {
        let comma = if frame > 0 { "," } else { "" };
        put(format!(
            "{comma}{}",
            json!({"ip": frame * 16 + 0x10000, "module": frame % 5, "offset": frame * 16})
        ));
    }
    let modules: Vec<Value> =
        (0..5).map(|at| json!({"path": format!("/nowhere/lib{at}.so"), "base": 0x10000})).collect();
    put(format!("], \"modules\": {}}}", Value::from(modules)));
    file.flush().unwrap();
    facts
}

#[test]
fn exports_of_a_large_report() {
    let megabytes =
        std::env::var("THERMALLOC_LARGE_MB").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let sandbox = Sandbox::new();
    let facts = large_report(&sandbox.path("heat.json"), megabytes * 1_000_000);
    for arguments in [
        "export heat.json --format dhat -o out",
        "export heat.json --format pprof -o out",
        "export heat.json --format folded --weight reads -o folded",
        "export heat.json --format csv -o t.csv",
        "export heat.json --format parquet -o t.parquet",
        "advise heat.json --fast-bytes 1M --hints hints",
        "advise heat.json --fast-bytes 1M --by object",
        "advise heat.json --fast-bytes 1M --by page",
        "diff heat.json heat.json",
        "merge heat.json heat.json -o merged",
    ] {
        let start = Instant::now();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v 1572864; exec \"$0\" {arguments}"), PROGRAM]);
        let output = run(command.current_dir(sandbox.root()));
        assert!(output.status.success(), "{arguments}: {:?}", String::from_utf8_lossy(&output.stderr));
        println!("{megabytes} MB, {arguments}: {:?}", start.elapsed());
    }
    let folded = fs::read_to_string(sandbox.path("folded")).unwrap();
    let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!(weights.sum::<u64>(), facts.reads);
    let objects = fs::read_to_string(sandbox.path("t.objects.csv")).unwrap();
    assert_eq!(objects.lines().count() as u64, facts.objects + 1);
}
