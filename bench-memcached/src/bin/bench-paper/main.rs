//! The paper's experiment. Exit status: 0 if all went well, 1 if a reply was wrong, a run failed or a comparison did not hold, 2
//! for a bad command line. Modules, lowest first:
//!
//! - [`statistics`]: medians and rank correlation.
//! - [`rows`]: which builds, modes and scopes there are.
//! - [`machine`]: what this machine is and can do.
//! - [`server`], [`client`]: memcached and its load, on processors of their own.
//! - [`builds`]: memcached's binaries.
//! - [`measure`]: one run.
//! - [`counts`]: accesses for each request.
//! - [`results`], [`table`], [`chart`], [`picture`]: what is written.
//! - [`options`]: the command line.
//! - [`paper`]: the task `table`.
//! - [`variants`], [`labels`], [`scatter`], [`items`]: the task `items`.
//! - [`keys`]: the task `keys`.
//! - [`suite`]: the task `test-suite`.

mod builds;
mod chart;
mod client;
mod counts;
mod items;
mod keys;
mod labels;
mod machine;
mod measure;
mod options;
mod paper;
mod picture;
mod results;
mod rows;
mod scatter;
mod server;
mod statistics;
mod suite;
mod table;
mod variants;

use clap::Parser;
use options::{Options, Task};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where things are.
struct Places {
    /// This crate's directory, with its script.
    crate_root: PathBuf,
    /// The programs that were built beside this one.
    programs: PathBuf,
    /// libthermalloc.so.
    library: PathBuf,
    /// The directory of the results.
    results: PathBuf,
}

impl Places {
    fn new(options: &Options) -> Result<Self, String> {
        let this = std::env::current_exe().map_err(|e| format!("no path of this program: {e}"))?;
        let programs = this.parent().ok_or("this program has no directory")?.to_owned();
        let library = options.library.clone().unwrap_or_else(|| programs.join("libthermalloc.so"));
        let library =
            library.canonicalize().map_err(|e| format!("no runtime in {}: {e}", library.display()))?;
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR")).to_owned();
        Ok(Self { crate_root, programs, library, results: options.results.clone() })
    }
}

fn run(options: &Options) -> Result<(), String> {
    let places = || Places::new(options);
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
