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
