//! The task `keys`: the hottest labels of a report.

use crate::labels::{self, ByLabel};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Prints the hottest labels.
pub fn run(report: &Path, n: usize) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", report.display());
    let text = std::fs::read(report).map_err(|e| failed(&e))?;
    let report = serde_json::from_slice(&text).map_err(|e| failed(&e))?;
    let heat = labels::sum(&report)?;
    if heat.is_empty() {
        return Err("no object of the report has a label".into());
    }
    std::io::stdout().write_all(table(&heat, n).as_bytes()).map_err(|e| format!("cannot print: {e}"))
}

fn table(heat: &ByLabel, n: usize) -> String {
    let mut hottest: Vec<_> = heat.iter().collect();
    // Equally hot ones stay in the order of their labels.
    hottest.sort_by_key(|(_, heat)| std::cmp::Reverse(heat.accesses()));
    let mut text = format!("{:>10} {:>10} {:>12} {:>8}  label\n", "reads", "writes", "bytes", "objects");
    for (label, heat) in hottest.iter().take(n) {
        let bytes = heat.read_bytes + heat.write_bytes;
        let _ =
            writeln!(text, "{:>10} {:>10} {bytes:>12} {:>8}  {label}", heat.reads, heat.writes, heat.objects);
    }
    let rest = hottest.len().saturating_sub(n);
    if rest > 0 {
        let _ = writeln!(text, "{rest} more labels");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Heat;

    #[test]
    fn the_hottest_come_first_and_the_rest_is_counted() {
        let heat = |reads| Heat { reads, objects: 1, ..Heat::default() };
        let all = ByLabel::from([("a".into(), heat(1)), ("b".into(), heat(9)), ("c".into(), heat(5))]);
        let text = table(&all, 2);
        let labels: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(labels, ["label", "b", "c", "labels"]);
    }
}
