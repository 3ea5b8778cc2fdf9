//! `thermalloc top`: the hottest sites, classes or objects of a report, as a table that fits the terminal.
//!
//! Modules, lowest first:
//! - [`strip`]: heat by offset, in one line of blocks.
//! - [`rank`]: the first N by a key, in bounded memory.
//! - [`load`]: a report with no more than the objects to be shown.
//! - [`table`]: columns and text in a given width.
//! - [`header`]: what stands above the table.
//! - [`rows`]: the table of sites, classes or objects.

mod header;
mod load;
mod rank;
mod rows;
mod strip;
mod table;

use crate::failure::Failure;
use crate::options::TopOptions;
use crate::symbols::Stacks;
use std::env;
use std::io::{ErrorKind, IsTerminal, Write, stdout};
use thermalloc_format::Report;

/// Width where there is no terminal: wide enough for most names, and still readable in a log.
const WIDTH_OF_FILE: usize = 160;
/// No table is made narrower than this.
const LEAST_WIDTH: usize = 40;

/// Prints the table.
pub fn top(options: &TopOptions) -> Result<u8, Failure> {
    let report = load::load(options)?;
    let text = render(&report, options, width());
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

fn width() -> usize {
    let asked = env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&columns| columns > 0);
    let terminal = || {
        let size = stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        size.map(|(width, _)| usize::from(width.0)).filter(|&columns| columns > 0)
    };
    asked.or_else(terminal).unwrap_or(WIDTH_OF_FILE).max(LEAST_WIDTH)
}

#[cfg(test)]
mod tests;
