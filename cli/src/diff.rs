//! `thermalloc diff`: two runs, compared by the call stacks that allocate. Stacks are matched by functions and files, so
//! that it works across rebuilds.
//!
//! Modules, lowest first:
//! - [`compare`]: matches the sites of both runs and says what became of them.
//! - [`text`], [`json`], [`html`]: three ways to show it.

mod compare;
mod html;
mod json;
mod text;

use crate::failure::Failure;
use crate::input::{self, Histograms};
use crate::options::{DiffFormat, DiffOptions};
use crate::output;
use crate::table::terminal_width;
use compare::Comparison;
use thermalloc_format::{Report, Skipped};

/// Sites of each kind that a terminal shows, and a page.
const ON_TERMINAL: usize = 10;
const ON_PAGE: usize = 1000;

/// Compares and shows.
pub fn diff(options: &DiffOptions) -> Result<u8, Failure> {
    let read = |path| input::without_objects::<Skipped>(path, Histograms::Drop);
    let (old, new) = (read(&options.old)?, read(&options.new)?);
    let shown = show(&old, &new, options, terminal_width());
    output::write(options.output.as_deref(), |sink| Ok(sink.write_all(shown.as_bytes())?))?;
    Ok(0)
}

fn show<H>(old: &Report<H>, new: &Report<H>, options: &DiffOptions, width: usize) -> String {
    let comparison = Comparison::new(old, new, options);
    match options.format {
        DiffFormat::Text => text::text(&comparison, options.n.unwrap_or(ON_TERMINAL), width),
        DiffFormat::Json => json::json(&comparison, options.n.unwrap_or(usize::MAX)),
        DiffFormat::Html => html::html(&comparison, options.n.unwrap_or(ON_PAGE)),
    }
}

#[cfg(test)]
mod tests;
