//! `results/modes.json`.

use crate::lines::{Line, Lines, Mean};
use crate::measured::Measured;
use crate::run::Bench;
use crate::{memcached, redis};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use thermalloc_bench::results;

/// How everything was compiled.
const FLAGS: &str = "release, fat LTO, one codegen unit; c++: g++ -std=c++17 -O2; the others as distributed";

/// The whole document.
pub fn document(measured: &Measured, bench: &Bench) -> Value {
    let lines = &measured.lines;
    let mut rows: Vec<Value> = lines.0.iter().map(|line| row(lines, line)).collect();
    for steady in measured.steady() {
        let mine = |row: &&mut Value| row["program"] == steady.program && row["name"] == steady.column;
        if let Some(row) = rows.iter_mut().find(mine) {
            row["steady_more_s"] = steady.more_s.into();
            row["once_s"] = steady.once_s.into();
            row["steady_ratio_to_native"] = steady.ratio.into();
        }
    }
    let settings = settings(measured, bench);
    let mut document = results::document("modes", FLAGS, &results::command("bench-modes"), settings, rows);
    document["geometric_means"] = lines.means(true).iter().map(mean).collect();
    document["geometric_means_with_heap"] = lines.means(false).iter().map(mean).collect();
    document["failed"] = measured.failures().into();
    document
}

fn settings(measured: &Measured, bench: &Bench) -> Value {
    let lines = &measured.lines;
    let columns: BTreeMap<&str, &str> = lines.columns().iter().map(|c| (c.name, c.title)).collect();
    let programs: BTreeMap<&str, &str> = lines.0.iter().map(|line| (line.program, line.about)).collect();
    json!({
        "time": "CPU-bound programs: runs_s and median_s are user + system time in seconds, wall_*: elapsed time, of the \
                 whole process with its start-up and, in monitoring modes, with the writing of its report; servers: the \
                 server's time in seconds for 1,000,000 requests, after its start, after all keys were stored and before its \
                 report; ratios are of medians; steady_*: of the time for twice the input less that for the input once; \
                 once_s: what is left of the time for the input once, less the same of native; watched_s: from the runtime's start to its report",
        "scale": bench.scale,
        "runs": measured.runs,
        "limit_s": bench.limit.as_secs_f64(),
        "seconds_a_load": bench.seconds,
        "processors": bench.processors.0,
        "load_processors": bench.processors.1,
        "peak_kib_floor": measured.floor_kib,
        "columns": columns,
        "programs": programs,
        "memcached": memcached::ARGUMENTS.join(" "),
        "redis": redis::ARGUMENTS.join(" "),
        "redis_benchmark": redis::LOAD.join(" "),
    })
}

fn mean(mean: &Mean) -> Value {
    json!({
        "name": mean.column.name,
        "ratio_to_native": mean.cpu,
        "wall_ratio_to_native": mean.wall,
        "at_least": mean.at_least,
        "programs": mean.of,
        "without": mean.without,
    })
}

fn row(lines: &Lines, line: &Line) -> Value {
    let mut row = json!({
        "name": line.column.name,
        "program": line.program,
        "scope": "heap-rw",
        "kind": if line.server { "server" } else { "cpu-bound" },
        "runs_s": line.values(|run| run.cpu_s),
        "median_s": null,
        "ratio_to_native": null,
        "peak_kib": null,
    });
    for (name, reason) in [("skipped", &line.skipped), ("failed", &line.failed)] {
        if let Some(reason) = reason {
            row[name] = reason.as_str().into();
        }
    }
    if !line.measured() {
        return row;
    }
    let (cpu, wall) = (lines.ratio(line, |run| run.cpu_s), lines.ratio(line, |run| run.wall_s));
    row["median_s"] = line.middle(|run| run.cpu_s).into();
    row["ratio_to_native"] = cpu.map(|s| s.median).into();
    row["ratio_min"] = cpu.map(|s| s.min).into();
    row["ratio_max"] = cpu.map(|s| s.max).into();
    row["wall_runs_s"] = line.values(|run| run.wall_s).into();
    row["wall_median_s"] = line.middle(|run| run.wall_s).into();
    row["wall_ratio_to_native"] = wall.map(|s| s.median).into();
    row["wall_ratio_min"] = wall.map(|s| s.min).into();
    row["wall_ratio_max"] = wall.map(|s| s.max).into();
    row["peak_kib"] = line.middle(|run| run.peak_kib as f64).into();
    // What was stopped has not said everything yet.
    row["output_equal"] = if line.stopped() { Value::Null } else { true.into() };
    row["at_least"] = line.stopped().into();
    if line.server {
        row["requests"] = line.runs.iter().filter_map(|run| run.requests).collect();
    }
    if line.column.reports() {
        counts(&mut row, line);
    }
    row
}

fn counts(row: &mut Value, line: &Line) {
    row["allocs"] = line.counts(|c| c.allocs).into();
    row["accesses"] = line.counts(|c| c.accesses).into();
    row["faults"] = line.counts(|c| c.faults).into();
    row["steps"] = line.counts(|c| c.steps).into();
    row["emulated"] = line.counts(|c| c.emulated).into();
    row["patched_sites"] = line.counts(|c| c.patched_sites).into();
    row["syscalls"] = line.counts(|c| c.syscalls).into();
    row["unpatched_sites"] = line.counts(|c| c.unpatched_sites).into();
    row["unpatched_faults"] = line.counts(|c| c.unpatched_faults).into();
    row["watched_s"] = line.runs.iter().filter_map(|run| run.counted).map(|c| c.watched_s).collect();
}
