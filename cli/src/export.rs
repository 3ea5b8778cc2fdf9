//! `thermalloc export`: a report in formats that other tools read.
//!
//! Modules, lowest first:
//! - [`table`]: columns, values, and who takes rows of them.
//! - [`csv`], [`parquet`]: two who do.
//! - [`tables`]: the tables sites, objects and timeline.
//! - [`folded`]: stacks and weights.
//! - [`profile`]: the messages of profile.proto.
//! - [`pprof`]: a report as such a message.
//! - [`histogram`]: accesses by offset as DHAT has them.
//! - [`lifetimes`]: what DHAT knows of blocks over time, from the listed objects.
//! - [`dhat`]: a report as DHAT's JSON.

mod csv;
mod dhat;
mod folded;
mod histogram;
mod lifetimes;
mod parquet;
mod pprof;
mod profile;
mod table;
mod tables;

use crate::failure::{Failure, say};
use crate::input::{self, Histograms};
use crate::options::{ExportFormat, ExportOptions};
use crate::output::{self, Sink, Stop};
use crate::symbols::Stacks;
use std::io::IsTerminal;
use thermalloc_format::{Report, Skipped};

/// Writes the file or files.
pub fn export(options: &ExportOptions) -> Result<u8, Failure> {
    let binary = matches!(options.format, ExportFormat::Pprof | ExportFormat::Parquet);
    if binary && options.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::own("this format is not text for a terminal; give -o FILE"));
    }
    match options.format {
        ExportFormat::Csv | ExportFormat::Parquet => tables::write(options)?,
        ExportFormat::Dhat => dhat::write(options)?,
        ExportFormat::Pprof => of_sites(options, pprof::write)?,
        ExportFormat::Folded => of_sites(options, |report, stacks, sink| {
            Ok(folded::write(report, stacks, options.weight, sink)?)
        })?,
    }
    Ok(0)
}

/// A format that says nothing of single objects.
fn of_sites(
    options: &ExportOptions,
    fill: impl FnOnce(&Report<Skipped>, &mut Stacks<'_>, &mut Sink<'_>) -> Result<(), Stop>,
) -> Result<(), Failure> {
    let report = input::without_objects(&options.path, Histograms::Drop)?;
    let mut stacks = Stacks::with_files(&report, &options.symbols);
    output::write(options.output.as_deref(), |sink| fill(&report, &mut stacks, sink))?;
    stacks.notes().iter().for_each(|note| say(note));
    Ok(())
}
