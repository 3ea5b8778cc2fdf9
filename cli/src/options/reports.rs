//! Options of the commands that make other things of reports: `export`, `diff`, `merge`, `advise`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The report
    pub path: PathBuf,
    /// What to write: dhat (for Valgrind's dh_view.html), pprof (go tool pprof, speedscope), folded (flamegraph.pl, inferno), csv
    /// and parquet (tables, for DuckDB, pandas, Spark)
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Where it goes; csv and parquet write a file for each table, with its name before the extension [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// csv and parquet: this table alone [default: all to FILE; sites to stdout]
    #[arg(long, value_enum)]
    pub table: Option<ExportTable>,
    /// folded: what a stack weighs
    #[arg(long, value_enum, default_value_t = Weight::Accesses)]
    pub weight: Weight,
    /// Look for the program's files here too, such as an older build's (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
}

/// What `export` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ExportFormat {
    /// DHAT's JSON, version 2
    Dhat,
    /// profile.proto, compressed
    Pprof,
    /// Tables as text
    Csv,
    /// Stacks and weights, one a line
    Folded,
    /// Tables in columns
    Parquet,
}

/// A table of `export`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ExportTable {
    /// Call stacks that allocate
    Sites,
    /// The allocations that the report lists
    Objects,
    /// Accesses by site over time
    Timeline,
}

/// What a stack weighs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Weight {
    /// Reads and writes
    Accesses,
    /// Reads alone
    Reads,
    /// Writes alone
    Writes,
    /// Bytes read
    ReadBytes,
    /// Bytes written
    WriteBytes,
    /// Objects allocated
    Allocs,
    /// Bytes allocated
    Bytes,
    /// Bytes alive at the end
    LiveBytes,
    /// Bytes alive at the site's peak
    PeakBytes,
}

/// Options of `diff`.
#[derive(Debug, Args)]
pub struct DiffOptions {
    /// The report of the run to compare with
    pub old: PathBuf,
    /// The report of the run that is looked at
    pub new: PathBuf,
    /// How to say it
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub format: DiffFormat,
    /// What is compared
    #[arg(long, value_enum, default_value_t = Weight::Accesses)]
    pub by: Weight,
    /// Compare shares of the whole run instead of numbers: for runs of different length
    #[arg(long)]
    pub relative: bool,
    /// A site whose numbers differ by at most this is unchanged
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub threshold: u32,
    /// How many sites of each kind [default: text 10, html 1000, json all]
    #[arg(short, value_name = "N")]
    pub n: Option<usize>,
    /// Where it goes [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Look for the programs' files here too, such as the older build's (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
}

/// How `diff` says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DiffFormat {
    /// Tables for a terminal
    Text,
    /// One JSON object
    Json,
    /// One page
    Html,
}

/// Options of `merge`.
#[derive(Debug, Args)]
pub struct MergeOptions {
    /// The reports
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Where the result goes
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Take call stacks for the same if functions, files and lines are: for different builds
    #[arg(long)]
    pub by_name: bool,
    /// What is zero on the common axis of time [default: clock if the runs overlap, else start]
    #[arg(long, value_enum)]
    pub align: Option<Align>,
    /// How many objects to list at most, the hottest
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub objects: usize,
    /// Look for the programs' files here too (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
}

/// How `merge` brings times together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Align {
    /// The start of the first run: what happened at the same time comes together
    Clock,
    /// Each run's own start
    Start,
}

/// Options of `advise`.
#[derive(Debug, Args)]
pub struct AdviseOptions {
    /// The report
    pub path: PathBuf,
    /// Size of the fast memory (bytes, or with K, M, G, T)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub fast_bytes: u64,
    /// What is placed as a whole
    #[arg(long, value_enum, default_value_t = Place::Site)]
    pub by: Place,
    /// How much a write counts, where a read counts 1
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = factor)]
    pub write_cost: f64,
    /// Write what goes where to this file too, for programs
    #[arg(long, value_name = "FILE")]
    pub hints: Option<PathBuf>,
    /// How many lines
    #[arg(short, value_name = "N", default_value_t = 20)]
    pub n: usize,
    /// Simulate two memories: latency of the fast one, in ns [default: 80]
    #[arg(long, value_name = "NS", value_parser = factor)]
    pub fast_latency: Option<f64>,
    /// Latency of the slow one, in ns [default: 250]
    #[arg(long, value_name = "NS", value_parser = factor)]
    pub slow_latency: Option<f64>,
    /// Bandwidth of the fast one, in GB/s [default: 100]
    #[arg(long, value_name = "GB/S", value_parser = factor)]
    pub fast_bandwidth: Option<f64>,
    /// Bandwidth of the slow one, in GB/s [default: 30]
    #[arg(long, value_name = "GB/S", value_parser = factor)]
    pub slow_bandwidth: Option<f64>,
    /// Look for the program's files here too (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
}

/// What `advise` places as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Place {
    /// All objects of a call stack
    Site,
    /// One allocation
    Object,
    /// 4 KiB of addresses
    Page,
}

fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is no size (bytes, or with K, M, G, T)");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KIB" => 10,
        "M" | "MIB" => 20,
        "G" | "GIB" => 30,
        "T" | "TIB" => 40,
        _ => return Err(bad()),
    };
    let number: u64 = digits.parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("'{text}' is too large"))
}

/// Above zero, and not so large that products overflow.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (1e-9..=1e12).contains(number));
    number.ok_or_else(|| format!("'{text}' is no number above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_factors() {
        assert_eq!((size("64M"), size("4096"), size("1tib")), (Ok(64 << 20), Ok(4096), Ok(1 << 40)));
        for bad in ["", "M", "-1", "1.5G", "1X", "99999999999999999999", "18446744073709551615K"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!((factor("1.5"), factor("80")), (Ok(1.5), Ok(80.0)));
        for bad in ["", "0", "-1", "nan", "inf", "1e99"] {
            assert!(factor(bad).is_err(), "{bad}");
        }
    }
}
