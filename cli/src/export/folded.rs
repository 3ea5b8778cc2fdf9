//! Folded stacks, as flamegraph.pl and inferno read them: functions from the outermost on, joined by semicolons, a space, a
//! weight. Sites with the same functions are one line; sites that weigh nothing are none.

use crate::measure::{stack_line, weight};
use crate::options::Weight;
use crate::symbols::Stacks;
use std::collections::BTreeMap;
use std::io::{self, Write};
use thermalloc_format::Report;

/// Lines in alphabetical order.
pub fn write<H>(
    report: &Report<H>,
    stacks: &mut Stacks<'_>,
    by: Weight,
    sink: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for site in report.sites.iter().filter(|site| weight(site, by) > 0) {
        let sum = lines.entry(stack_line(&stacks.functions(site))).or_default();
        *sum = sum.saturating_add(weight(site, by));
    }
    lines.iter().try_for_each(|(stack, weight)| writeln!(sink, "{stack} {weight}"))
}
