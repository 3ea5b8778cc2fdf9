//! `make bench-alloc`: time and peak memory of this allocator, mimalloc and glibc's on patterns and real
//! programs.
//!
//! Every measurement is a process of its own, and the allocators take turns, so that what else the machine
//! does hits all alike. Time is user plus system time. `--smoke` makes a short run of everything; names of
//! patterns select some.
#![allow(unsafe_code)]

mod allocators;
mod measure;
mod patterns;
mod programs;
mod report;

use allocators::{Glibc, Mimalloc, Thermalloc};
use report::Row;
use std::path::Path;

/// What is compared, native first.
pub const ALLOCATORS: [&str; 3] = ["glibc", "mimalloc", "thermalloc-off"];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [flag, allocator, pattern, scale] = args.as_slice()
        && flag == "--child"
    {
        child(allocator, pattern, scale.parse().expect("a number"));
        return;
    }
    let smoke = args.iter().any(|arg| arg == "--smoke");
    let chosen: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    let (scale, runs) = if smoke { (0.02, 1) } else { (1.0, 7) };
    let mut rows = Vec::new();
    for pattern in
        patterns::NAMES.iter().filter(|name| chosen.is_empty() || chosen.iter().any(|one| one == *name))
    {
        rows.extend(measure_pattern(pattern, scale, runs));
    }
    if chosen.is_empty() || chosen.iter().any(|one| **one == "programs") {
        for program in programs::available(smoke) {
            rows.extend(program.measure(runs));
        }
    }
    if chosen.is_empty() {
        report::write(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace"), &rows, smoke);
    }
}

/// Interleaved runs of one pattern, one row for each allocator.
fn measure_pattern(pattern: &str, scale: f64, runs: usize) -> Vec<Row> {
    let mut rows = ALLOCATORS.map(|allocator| Row::new(allocator, pattern, "pattern"));
    let this = std::env::current_exe().expect("a path");
    for _ in 0..runs {
        for row in &mut rows {
            let mut command = std::process::Command::new(&this);
            command.args(["--child", &row.name, pattern, &scale.to_string()]);
            let output = command.output().expect("the child runs");
            assert!(output.status.success(), "{pattern} with {}: {output:?}", row.name);
            row.add(measure::parse(&output.stdout));
        }
    }
    report::print(&rows);
    rows.into()
}

fn child(allocator: &str, pattern: &str, scale: f64) {
    let run = match allocator {
        "glibc" => patterns::pattern::<Glibc>(pattern),
        "mimalloc" => patterns::pattern::<Mimalloc>(pattern),
        _ => patterns::pattern::<Thermalloc>(pattern),
    };
    let before = measure::cpu_seconds();
    run.expect("a known pattern")(scale);
    measure::print(measure::cpu_seconds() - before);
}
