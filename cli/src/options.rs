//! The command line, with every value checked as it is parsed.

mod pages;
mod reports;

use crate::examples;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use thermalloc_format::Watch;

pub use pages::{CompletionsOptions, ManOptions, ReportOptions};
pub use reports::{
    AdviseOptions, Align, DiffFormat, DiffOptions, ExportFormat, ExportOptions, ExportTable, MergeOptions,
    Place, Weight,
};

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
    #[command(after_help = examples::RUN)]
    Run(Box<RunOptions>),
    /// Show the hottest sites, classes or objects of a report, or of a running program
    #[command(after_help = examples::TOP)]
    Top(TopOptions),
    /// Make one HTML page of reports: heat maps, placement curves, flame graphs, tables
    #[command(after_help = examples::REPORT)]
    Report(ReportOptions),
    /// Write a report in a format that other tools read: dhat, pprof, csv, folded, parquet
    #[command(after_help = examples::EXPORT)]
    Export(ExportOptions),
    /// Compare two runs by the call stacks that allocate: hotter, colder, appeared, went
    #[command(after_help = examples::DIFF)]
    Diff(DiffOptions),
    /// Make one report of several: processes of a program, or hosts
    #[command(after_help = examples::MERGE)]
    Merge(MergeOptions),
    /// Say what to put into a fast memory of a given size, and what that brings
    #[command(after_help = examples::ADVISE)]
    Advise(AdviseOptions),
    /// Tell what this machine can do, and why not
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorOptions),
    /// Write the man pages
    #[command(after_help = examples::MAN)]
    Man(ManOptions),
    /// Write a completion script for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions(CompletionsOptions),
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
    #[arg(required_unless_present = "pid")]
    pub path: Option<PathBuf>,
    /// Follow a running program by the reports that it writes with 'run --interval MS': what is hottest now, in a terminal
    /// until q is pressed
    #[arg(long, value_name = "PID", conflicts_with_all = ["by", "stacks"])]
    pub pid: Option<u32>,
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
    fn granules_are_powers_of_two_in_range() {
        assert_eq!(granule("64"), Ok(64));
        for bad in ["0", "8", "24", "8192", "-16", "x", "4294967296"] {
            assert!(granule(bad).is_err(), "{bad}");
        }
    }
}
