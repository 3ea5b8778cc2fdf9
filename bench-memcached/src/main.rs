//! The `bench-memcached` program. Exit status: 0 if every reply was right, 1 if one was not, 2 if the load could not run.

use bench_memcached::load::{self, Summary};
use bench_memcached::options::Options;
use bench_memcached::report;
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = Options::parse();
    match load::run(&options).and_then(|summary| publish(&options, &summary).map(|()| summary)) {
        Ok(summary) => verdict(&summary),
        Err(words) => {
            eprintln!("bench-memcached: {words}");
            ExitCode::from(2)
        }
    }
}

fn publish(options: &Options, summary: &Summary) -> Result<(), String> {
    let text = report::Text { summary, histogram: !options.hide_histogram }.to_string();
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| format!("cannot write the results: {e}"))?;
    let Some(path) = &options.json_out_file else { return Ok(()) };
    let json = format!("{:#}\n", report::to_json(options, summary));
    std::fs::write(path, json).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn verdict(summary: &Summary) -> ExitCode {
    let deviations = &summary.tally.deviations;
    for words in &deviations.first {
        eprintln!("error: {words}");
    }
    let more = deviations.count - deviations.first.len() as u64;
    if more > 0 {
        eprintln!("error: and {more} more");
    }
    if deviations.count == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
