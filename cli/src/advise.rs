//! `thermalloc advise`: what to put into a fast memory of a given size, what share of the accesses that serves, and what two
//! memories of given latency and bandwidth make of it.
//!
//! Modules, lowest first:
//! - [`axis`]: the run in slices of time.
//! - [`traffic`]: reads and writes, and what they are worth.
//! - [`knapsack`]: what fits, by worth for each byte and slice.
//! - [`oracle`]: what no placement can exceed.
//! - [`pages`]: heat by page.
//! - [`gather`]: reads a report: what its sites and objects need, and the oracle.
//! - [`items`]: sites, objects or pages as things to place.
//! - [`tiers`]: two memories.
//! - [`plan`]: the advice as a whole.
//! - [`hints`], [`text`]: for programs, for people.

mod axis;
mod gather;
mod hints;
mod items;
mod knapsack;
mod oracle;
mod pages;
mod plan;
mod text;
mod tiers;
mod traffic;

use crate::failure::Failure;
use crate::options::AdviseOptions;
use crate::output;
use crate::symbols::Stacks;
use crate::table::terminal_width;
use gather::Gathered;
use plan::Plan;

/// Reads, decides, says it.
pub fn advise(options: &AdviseOptions) -> Result<u8, Failure> {
    let mut gathered = Gathered::read(options)?;
    let plan = Plan::new(&mut gathered, options);
    let mut stacks = Stacks::with_files(&gathered.report, &options.symbols);
    if let Some(path) = &options.hints {
        let hints = hints::hints(&plan, &gathered, &mut stacks, options);
        output::write(Some(path), |sink| Ok(sink.write_all(hints.as_bytes())?))?;
    }
    let text = text::text(&plan, &gathered, &mut stacks, options, terminal_width());
    output::write(None, |sink| Ok(sink.write_all(text.as_bytes())?))?;
    Ok(0)
}

#[cfg(test)]
pub mod tests;
