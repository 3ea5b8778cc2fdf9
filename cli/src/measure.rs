//! Quantities of a site, and text that fits on a line.

use crate::options::Weight;
use crate::symbols::Function;
use thermalloc_format::Site;

/// What the site weighs.
pub fn weight(site: &Site, weight: Weight) -> u64 {
    match weight {
        Weight::Accesses => site.reads.saturating_add(site.writes),
        Weight::Reads => site.reads,
        Weight::Writes => site.writes,
        Weight::ReadBytes => site.read_bytes,
        Weight::WriteBytes => site.write_bytes,
        Weight::Allocs => site.allocs,
        Weight::Bytes => site.bytes,
        Weight::LiveBytes => site.live_bytes,
        Weight::PeakBytes => site.peak_live_bytes,
    }
}

/// Objects of the site that are alive.
pub fn live(site: &Site) -> u64 {
    site.allocs.saturating_sub(site.frees)
}

/// Adds another site's numbers. Peaks are added too, though they may not have been at the same time.
pub fn add(sum: &mut Site, site: &Site) {
    let pairs = [
        (&mut sum.allocs, site.allocs),
        (&mut sum.frees, site.frees),
        (&mut sum.bytes, site.bytes),
        (&mut sum.live_bytes, site.live_bytes),
        (&mut sum.peak_live_bytes, site.peak_live_bytes),
        (&mut sum.reads, site.reads),
        (&mut sum.writes, site.writes),
        (&mut sum.read_bytes, site.read_bytes),
        (&mut sum.write_bytes, site.write_bytes),
    ];
    pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
    sum.max_threads = sum.max_threads.max(site.max_threads);
}

/// Stands for a call stack that the report does not have.
pub const UNKNOWN: &str = "[unknown call stack]";

/// A stack on one line, outermost function first; what separates functions and weights does not occur in a name.
pub fn stack_line(functions: &[&Function]) -> String {
    if functions.is_empty() {
        return UNKNOWN.into();
    }
    let names: Vec<String> = functions.iter().rev().map(|function| function.name.replace(';', ":")).collect();
    names.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Stacks;
    use thermalloc_format::{Frame, Name, Report, Skipped};

    #[test]
    fn outermost_first_and_separators_only_between() {
        let name = |function: &str| vec![Name { function: function.into(), ..Name::default() }];
        let report = Report::<Skipped> {
            frames: vec![Frame::default(); 2],
            names: vec![name("f;\n g"), name("main")],
            ..Report::default()
        };
        let mut stacks = Stacks::new(&report);
        let site = Site { frames: vec![0, 1, 9], ..Site::default() };
        assert_eq!(stack_line(&stacks.functions(&site)), "main;f:? g");
        assert_eq!(stack_line(&[]), UNKNOWN);
    }
}
