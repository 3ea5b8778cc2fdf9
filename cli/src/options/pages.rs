//! Options of the commands that write pages for people: `report`, `man`, and `completions` for their shells.

use clap::Args;
use std::path::PathBuf;

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// The reports, one for each process
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Where the page goes
    #[arg(short, long, value_name = "PATH", default_value = "report.html")]
    pub output: PathBuf,
    /// Look for the program's files here too, such as an older build's (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub struct ManOptions {
    /// Write a page for each command into this directory [default: the main page to stdout]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
