//! `thermalloc top`: the hottest sites, classes or objects of a report, as a table that fits the terminal.
//!
//! Modules, lowest first:
//! - [`units`]: numbers as people read them.
//! - [`strip`]: heat by offset, in one line of blocks.
//! - [`rank`]: the first N by a key, in bounded memory.
//! - [`load`]: reads a report as a stream.
//! - [`demangle`]: names of C++ and Rust functions.
//! - [`debug_files`]: where a module's symbols and line numbers are.
//! - [`symbols`]: code address to function, file and line.
//! - [`stacks`]: which frame of a call stack to show.
//! - [`table`]: columns and text in a given width.
//! - [`header`]: what stands above the table.
//! - [`rows`]: the table of sites, classes or objects.

mod debug_files;
mod demangle;
mod header;
mod load;
mod rank;
mod rows;
mod stacks;
mod strip;
mod symbols;
mod table;
mod units;

use crate::failure::Failure;
use crate::options::TopOptions;
use std::env;
use std::io::{ErrorKind, IsTerminal, Write, stdout};
use symbols::Symbols;
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
    let mut symbols = Symbols::new(&report.modules);
    let table = rows::rows(report, options, width, &mut symbols);
    let mut text = header::header(report, options, width, symbols.notes());
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
