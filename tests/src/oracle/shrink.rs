//! Leaves out of a failing program what it fails without.

use super::fuzz::{self, Circumstances, Failure};
use super::program::Program;
use super::source;
use crate::modes::Mode;
use crate::places::Scratch;
use std::fmt::Write;

/// At most so many smaller programs are tried.
const TRIES: usize = 150;

/// Tells all that is needed to see a failure again: the smallest program that shows it, and the case.
pub fn describe(
    program: &Program,
    circumstances: Circumstances,
    reference: Mode,
    failure: &Failure,
) -> String {
    let modes: Vec<Mode> =
        if failure.mode == reference { vec![reference] } else { vec![reference, failure.mode] };
    let fails = |program: &Program| {
        let folder = Scratch::new("shrink");
        let (failures, _) =
            fuzz::check(std::slice::from_ref(program), circumstances, &modes, folder.path()).ok()?;
        failures.into_iter().find(|found| found.mode == failure.mode)
    };
    let mut text = format!(
        "mode {} fails: THERMALLOC_FUZZ_CASE='{} {circumstances}'\n{}",
        failure.mode, program.seed, failure.text
    );
    let Some(mut last) = fails(program) else {
        text.push_str("alone it does not fail\n");
        return text;
    };
    let smallest = smallest(program, |smaller| {
        let found = fails(smaller);
        let still = found.is_some();
        if let Some(found) = found {
            last = found;
        }
        still
    });
    let objects: Vec<String> =
        smallest.objects.iter().map(|object| format!("{}/{}", object.size, object.align)).collect();
    let _ = writeln!(
        text,
        "smallest (objects of size/alignment {}; stack in the heap: {}):",
        objects.join(" "),
        smallest.stack_in_heap
    );
    text.push_str(&source::body(&smallest, 0));
    let _ = writeln!(text, "which fails so:\n{}", last.text);
    text
}

/// Delta debugging: leaves out halves, quarters, and so on down to single groups, as long as the program fails.
fn smallest(program: &Program, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut current = program.clone();
    let mut tries = 0;
    let mut size = current.groups().len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < current.groups().len() && tries < TRIES {
            let groups = current.groups();
            let smaller = current.without(&groups[at..groups.len().min(at + size)]);
            tries += 1;
            if fails(&smaller) {
                current = smaller;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    without_unused_labels(current)
}

/// Labels that nothing jumps to any more.
fn without_unused_labels(program: Program) -> Program {
    let lines = program.lines.iter().filter(|line| {
        let Some(label) = line.text.strip_suffix(':').filter(|_| line.group == 0) else { return true };
        let used = |text: &str| {
            text.match_indices(label).any(|(at, _)| {
                !text[at + label.len()..].starts_with(|c: char| c.is_ascii_digit() || c == ':')
            })
        };
        program.lines.iter().any(|other| used(&other.text))
    });
    Program { lines: lines.cloned().collect(), ..program.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::program::Line;

    #[test]
    fn what_matters_is_left() {
        let line = |group: usize| Line { group, text: format!("line {group}") };
        let kept = Line { group: 0, text: "L@_7:".to_owned() };
        let lines: Vec<Line> = (1..40).map(line).chain([kept]).collect();
        let program = Program { seed: 0, stack_in_heap: false, objects: Vec::new(), lines };
        let has = |program: &Program, group| program.groups().contains(&group);
        let smallest = smallest(&program, |smaller| has(smaller, 5) && has(smaller, 31));
        assert_eq!(smallest.groups(), [5, 31]);
        assert_eq!(smallest.lines.len(), 2, "the label that nothing jumps to stays");
    }
}
