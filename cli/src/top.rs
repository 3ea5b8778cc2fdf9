//! `thermalloc top`: the hottest sites, classes or objects of a report, as a table that fits the terminal.
//!
//! Modules, lowest first:
//! - [`strip`]: heat by offset, in one line of blocks.
//! - [`rank`]: the first N by a key, in bounded memory.
//! - [`load`]: a report with no more than the objects to be shown.
//! - [`header`]: what stands above the table.
//! - [`rows`]: the table of sites, classes or objects.

mod header;
mod load;
mod rank;
mod rows;
mod strip;

pub use rank::Measures;

use crate::failure::Failure;
use crate::options::TopOptions;
use crate::symbols::Stacks;
use crate::table::terminal_width;
use std::io::{ErrorKind, Write, stdout};
use thermalloc_format::Report;

/// Prints the table.
pub fn top(options: &TopOptions) -> Result<u8, Failure> {
    let Some(path) = &options.path else {
        return Err(Failure::own("no report is given; name one, or a process with --pid"));
    };
    let report = load::load(path, options)?;
    let text = render(&report, options, terminal_width());
    match stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::own(format!("cannot write to stdout ({error}); check where it goes")))
        }
        // Whoever closed the pipe has seen enough.
        _ => Ok(0),
    }
}

fn render(report: &Report, options: &TopOptions, width: usize) -> String {
    let mut stacks = Stacks::new(report);
    let table = rows::rows(report, options, width, &mut stacks);
    let mut text = header::header(report, options, width, stacks.notes());
    text.push('\n');
    text.push_str(&table);
    text
}

#[cfg(test)]
mod tests;
