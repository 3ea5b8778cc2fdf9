//! The paper's experiment. Exit status: 0 if all went well, 1 if a reply was wrong, a run failed or a comparison did not hold, 2
//! for a bad command line. Modules, lowest first:
//!
//! - [`rows`]: which builds, modes and scopes there are.
//! - [`builds`]: memcached's binaries.
//! - [`measure`]: one run.
//! - [`counts`]: accesses for each request.
//! - [`results`], [`table`], [`chart`]: what is written.
//! - [`options`]: the command line.
//! - [`paper`]: the task `table`.
//! - [`variants`], [`labels`], [`scatter`], [`items`]: the task `items`.
//! - [`keys`]: the task `keys`.
//! - [`suite`]: the task `test-suite`.

mod builds;
mod chart;
mod counts;
mod items;
mod keys;
mod labels;
mod measure;
mod options;
mod paper;
mod results;
mod rows;
mod scatter;
mod suite;
mod table;
mod variants;

use clap::Parser;
use options::{Options, Task};
use std::process::ExitCode;
use thermalloc_bench::places::Places;

fn run(options: &Options) -> Result<(), String> {
    let places = || Places::new(options.library.as_deref(), &options.results);
    match &options.command {
        Task::Table(table) => paper::run(table, &places()?),
        Task::Items { smoke } => items::run(*smoke, &places()?),
        Task::Keys { report, n } => keys::run(report, *n),
        Task::TestSuite(suite) => suite::run(suite, &places()?),
    }
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("bench-paper: {words}");
            ExitCode::from(1)
        }
    }
}
