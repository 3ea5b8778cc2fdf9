//! The command line.

use bench_memcached::client::Choice;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// The paper's experiment on memcached: what it costs to see every access, in each mode.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Options {
    /// What to do
    #[command(subcommand)]
    pub command: Task,
    /// Where the results go
    #[arg(long, global = true, default_value = "results")]
    pub results: PathBuf,
    /// The runtime [default: libthermalloc.so beside this program]
    #[arg(long, global = true)]
    pub library: Option<PathBuf>,
}

/// The tasks.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Time memcached in each row and scope: results/paper.{json,md,svg,png}
    Table(Table),
    /// Compare each item's heat between modes, and with what was asked of it: results/items.{json,md,svg,png}
    Items {
        /// A short run
        #[arg(long)]
        smoke: bool,
    },
    /// Print the hottest labels of a report: with the patched memcached, the hottest keys
    Keys {
        /// heat.json
        report: PathBuf,
        /// Lines
        #[arg(short, default_value_t = 10)]
        n: usize,
    },
    /// Run memcached's own tests on instrumented builds and compare with the plain build
    TestSuite(Suite),
}

/// Of `table`.
#[derive(Debug, Args)]
pub struct Table {
    /// Divide the paper's 10,000 requests of each connection by this
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub scale: u64,
    /// End a run's load after so many seconds, whatever is left of its requests
    #[arg(long, default_value_t = 4.0)]
    pub seconds: f64,
    /// Interleaved runs of each row
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Only these rows (native is always there)
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Only these scopes
    #[arg(long, value_delimiter = ',')]
    pub scopes: Vec<String>,
    /// Number of the last key; memtier's default. Few keys make most GETs hits
    #[arg(long, default_value_t = 10_000_000)]
    pub key_maximum: u64,
    /// Who makes the requests
    #[arg(long, value_enum, default_value = "auto")]
    pub load: Choice,
    /// A short run of everything with few connections
    #[arg(long)]
    pub smoke: bool,
}

/// Of `test-suite`.
#[derive(Debug, Args)]
pub struct Suite {
    /// Builds to test
    #[arg(default_values = ["all-alias", "all-wrpkru", "all-pair-only"])]
    pub builds: Vec<String>,
    /// Only these tests, by name (t/NAME.t)
    #[arg(long, value_delimiter = ',')]
    pub tests: Vec<String>,
}
