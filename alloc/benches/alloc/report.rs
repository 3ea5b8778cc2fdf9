//! Rows of results: ratios on the terminal, and `results/alloc.{json,md,svg}`.

use crate::measure::Run;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Runs of one allocator on one pattern or program.
pub struct Row {
    pub name: String,
    program: String,
    scope: &'static str,
    runs: Vec<Run>,
}

impl Row {
    pub fn new(name: &str, program: &str, scope: &'static str) -> Self {
        Self { name: name.into(), program: program.into(), scope, runs: Vec::new() }
    }

    pub fn add(&mut self, run: Run) {
        self.runs.push(run);
    }

    fn median(&self) -> f64 {
        let mut seconds: Vec<f64> = self.runs.iter().map(|run| run.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    }

    fn peak(&self) -> f64 {
        let mut peaks: Vec<u64> = self.runs.iter().map(|run| run.peak_kib).collect();
        peaks.sort_unstable();
        peaks[peaks.len() / 2] as f64
    }
}

/// Ours against both others: time, peak memory.
struct Ratios {
    glibc: f64,
    mimalloc: f64,
    peak_glibc: f64,
    peak_mimalloc: f64,
}

fn ratios(rows: &[Row]) -> Ratios {
    let [glibc, mimalloc, ours] = rows else { panic!("a row for each allocator") };
    Ratios {
        glibc: ours.median() / glibc.median(),
        mimalloc: ours.median() / mimalloc.median(),
        peak_glibc: ours.peak() / glibc.peak(),
        peak_mimalloc: ours.peak() / mimalloc.peak(),
    }
}

/// One line for a pattern's three rows.
pub fn print(rows: &[Row]) {
    let Ratios { glibc, mimalloc, peak_glibc, peak_mimalloc } = ratios(rows);
    println!(
        "{:<18} time {:>7.3} s = {glibc:.2} x glibc, {mimalloc:.2} x mimalloc    peak {:>7.0} KiB = {peak_glibc:.2} x glibc, \
         {peak_mimalloc:.2} x mimalloc",
        rows[0].program,
        rows[2].median(),
        rows[2].peak()
    );
}

/// Writes the result files.
pub fn write(root: &Path, rows: &[Row], smoke: bool) {
    let directory = root.join("results");
    std::fs::create_dir_all(&directory).expect("results/");
    let json = serde_json::to_string_pretty(&document(rows, smoke)).expect("json") + "\n";
    std::fs::write(directory.join("alloc.json"), json).expect("results/alloc.json");
    std::fs::write(directory.join("alloc.md"), table(rows)).expect("results/alloc.md");
    std::fs::write(directory.join("alloc.svg"), chart(rows)).expect("results/alloc.svg");
}

fn document(rows: &[Row], smoke: bool) -> Value {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let list: Vec<Value> =
        rows.chunks(3).flat_map(|chunk| chunk.iter().map(|row| row_json(row, chunk))).collect();
    json!({
        "name": "alloc",
        "commit": output(&["git", "rev-parse", "HEAD"]),
        "date": output(&["date", "-u", "+%Y-%m-%dT%H:%M:%SZ"]),
        "cpu": cpu.trim_start_matches([' ', '\t', ':']),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": output(&["uname", "-r"]),
        "flags": "release, fat LTO, one codegen unit",
        "command": "make bench-alloc",
        "settings": { "time": "user + system", "smoke": smoke, "runs": rows.first().map_or(0, |row| row.runs.len()) },
        "rows": list,
    })
}

fn row_json(row: &Row, chunk: &[Row]) -> Value {
    json!({
        "name": row.name,
        "program": row.program,
        "scope": row.scope,
        "runs_s": row.runs.iter().map(|run| run.seconds).collect::<Vec<_>>(),
        "median_s": row.median(),
        "ratio_to_native": row.median() / chunk[0].median(),
        "ratio_to_mimalloc": row.median() / chunk[1].median(),
        "peak_kib": row.peak(),
        "peak_ratio_to_native": row.peak() / chunk[0].peak(),
        "peak_ratio_to_mimalloc": row.peak() / chunk[1].peak(),
    })
}

fn output(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "thermalloc (mode off) against glibc and mimalloc; below 1 is better. Time is user + system time, median of the runs.\n\n\
         | pattern | time / glibc | time / mimalloc | peak memory / glibc | peak memory / mimalloc |\n|---|---|---|---|---|\n",
    );
    for chunk in rows.chunks(3) {
        let Ratios { glibc, mimalloc, peak_glibc, peak_mimalloc } = ratios(chunk);
        let name = &chunk[0].program;
        let _ =
            writeln!(text, "| {name} | {glibc:.2} | {mimalloc:.2} | {peak_glibc:.2} | {peak_mimalloc:.2} |");
    }
    text
}

/// Bars of time relative to glibc, with a line at 1.
fn chart(rows: &[Row]) -> String {
    const LEFT: f64 = 150.0;
    const UNIT: f64 = 300.0;
    const COLORS: [&str; 3] = ["#999999", "#4e79a7", "#e15759"];
    let height = rows.len() / 3 * 50 + 50;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"760\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\">Time relative to glibc (grey: glibc, blue: mimalloc, red: thermalloc, mode off)</text>\n"
    );
    for (at, chunk) in rows.chunks(3).enumerate() {
        let top = at * 50 + 30;
        let _ = writeln!(svg, "<text x=\"8\" y=\"{}\">{}</text>", top + 24, chunk[0].program);
        for (n, row) in chunk.iter().enumerate() {
            let ratio = row.median() / chunk[0].median();
            let (y, width) = (top + n * 13, (ratio * UNIT).min(560.0));
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.0}\" height=\"11\" fill=\"{}\"/>\
                 <text x=\"{:.0}\" y=\"{}\" font-size=\"10\">{ratio:.2}</text>",
                COLORS[n],
                LEFT + width + 4.0,
                y + 10
            );
        }
    }
    svg + "</svg>\n"
}
