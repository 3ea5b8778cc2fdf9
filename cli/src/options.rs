//! The command line, with every value checked as it is parsed.

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use thermalloc_format::Watch;

/// An allocator that shows how hot every heap object is.
#[derive(Parser)]
#[command(name = "thermalloc", version)]
pub struct Options {
    #[command(subcommand)]
    pub action: Action,
}

/// What to do.
#[derive(Subcommand)]
pub enum Action {
    /// Run a program under the monitor; its report goes to heat.PID.json
    Run(Box<RunOptions>),
    /// Show the hottest sites, classes or objects of a report
    Top(TopOptions),
    /// Write a report in a format that other tools read: dhat, pprof, csv, folded, parquet
    Export(ExportOptions),
    /// Compare two runs by the call stacks that allocate: hotter, colder, appeared, went
    Diff(DiffOptions),
    /// Make one report of several: processes of a program, or hosts
    Merge(MergeOptions),
    /// Say what to put into a fast memory of a given size, and what that brings
    Advise(AdviseOptions),
    /// Tell what this machine can do, and why not
    Doctor(DoctorOptions),
}

/// Options of `run`. What is not given is left to the environment (THERMALLOC_*), then to the runtime's defaults.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// How accesses are seen: off, pp (page protection), mpk (protection keys), emulate, patch, auto
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub mode: Option<String>,
    /// Accesses to watch: rw or w (writes alone)
    #[arg(long, value_name = "KINDS", value_parser = ["rw", "w"])]
    pub access: Option<String>,
    /// Objects to watch: size>=N, size<=N (bytes, or with K, M, G), sample=1/N, module=NAME; a comma means and
    #[arg(long, value_name = "SPEC", value_parser = watch)]
    pub watch: Option<String>,
    /// Regions to watch: heap
    #[arg(long, value_name = "LIST", value_parser = regions)]
    pub regions: Option<String>,
    /// What to do with each access: heat
    #[arg(long, value_name = "LIST", value_parser = client)]
    pub client: Option<String>,
    /// Not available yet
    #[arg(long, value_name = "PCT", hide = true, value_parser = budget)]
    pub budget: Option<String>,
    /// Not available yet
    #[arg(long, value_name = "HINTS", hide = true, value_parser = place)]
    pub place: Option<String>,
    /// Write the report each MS milliseconds too (0: only at the end)
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32))]
    pub interval: Option<u32>,
    /// Frames of each allocation's call stack (0: the immediate caller only)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_DEPTH))]
    pub depth: Option<u32>,
    /// Bytes of one counter within an object: a power of two
    #[arg(long, value_name = "N", value_parser = granule)]
    pub granule: Option<u32>,
    /// How the arena is mapped: alias (twice, shared) or private
    #[arg(long, value_name = "VIEW", value_parser = ["alias", "private"])]
    pub view: Option<String>,
    /// Have the runtime say more on stderr (up to three times)
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// Where the report goes; %p becomes the process id [default: heat.%p.json]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// The longest call stack that can be asked for, in frames.
const MAX_DEPTH: i64 = 64;

/// Options of `top`.
#[derive(Debug, Args)]
pub struct TopOptions {
    /// The report
    pub path: PathBuf,
    /// What a line stands for
    #[arg(long, value_enum, default_value_t = By::Site)]
    pub by: By,
    /// What the lines are sorted by, largest first
    #[arg(long, value_enum, default_value_t = Sort::Accesses)]
    pub sort: Sort,
    /// How many lines
    #[arg(short, value_name = "N", default_value_t = 20)]
    pub n: usize,
    /// Show the whole call stack of each site
    #[arg(short = 'v', long)]
    pub stacks: bool,
}

/// What a line of `top` stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum By {
    /// A call stack that allocates
    Site,
    /// A size class
    Class,
    /// One allocation
    Object,
}

/// What `top` sorts by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Sort {
    /// Reads and writes
    Accesses,
    /// Reads alone
    Reads,
    /// Writes alone
    Writes,
    /// Bytes allocated
    Bytes,
    /// Accesses per byte allocated
    Heat,
}

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

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorOptions {
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

fn mode(word: &str) -> Result<String, String> {
    match word {
        "off" | "pp" | "mpk" | "emulate" | "patch" | "auto" => Ok(word.to_owned()),
        _ => Err("use off, pp, mpk, emulate, patch or auto".into()),
    }
}

fn regions(list: &str) -> Result<String, String> {
    only(list, "heap", "other regions than the heap cannot be watched yet: use heap")
}

fn client(list: &str) -> Result<String, String> {
    only(list, "heat", "other clients are not available yet: use heat")
}

fn budget(_: &str) -> Result<String, String> {
    Err("a budget cannot be kept yet: leave --budget out, or watch a sample (--watch sample=1/N)".into())
}

fn place(_: &str) -> Result<String, String> {
    Err("placement hints are not available yet: leave --place out".into())
}

fn only(list: &str, word: &str, otherwise: &str) -> Result<String, String> {
    if list == word { Ok(list.to_owned()) } else { Err(otherwise.to_owned()) }
}

fn granule(text: &str) -> Result<u32, String> {
    let bytes: u32 = text.parse().map_err(|_| "not a number of bytes".to_owned())?;
    if bytes.is_power_of_two() && (16..=4096).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("use a power of two from 16 to 4096".into())
    }
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

/// Checked as the runtime will read it, and handed on as it was given.
fn watch(spec: &str) -> Result<String, String> {
    Watch::parse(spec).map(|_| spec.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_well_formed() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

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

    #[test]
    fn granules_are_powers_of_two_in_range() {
        assert_eq!(granule("64"), Ok(64));
        for bad in ["0", "8", "24", "8192", "-16", "x", "4294967296"] {
            assert!(granule(bad).is_err(), "{bad}");
        }
    }
}
