//! Holds the reports of one deterministic program in several modes against each other.

use super::compare;
use super::environment;
use crate::modes::Mode;
use crate::process::{self, Outcome};
use crate::report::Report;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// At most so many objects or sites are told.
const MOST: usize = 20;
const LIMIT: Duration = Duration::from_secs(280);

/// Runs `program` in `folder` under the monitor.
pub fn run(
    mode: Mode,
    program: &Path,
    arguments: &[&str],
    settings: &[(&str, &str)],
    folder: &Path,
) -> (Outcome, Report) {
    let report = folder.join("heat.json");
    let _ = fs::remove_file(&report);
    let mut command = environment::command(Some(mode), program, &report, settings, LIMIT);
    command.args(arguments).current_dir(folder);
    let outcome = process::run(&mut command, LIMIT + Duration::from_secs(20));
    assert!(report.is_file(), "{mode}: status {}, no report: {}", outcome.status, outcome.error_text());
    (outcome, Report::read(&report))
}

/// Runs `program` in `folder` without the monitor.
pub fn native(program: &Path, arguments: &[&str], folder: &Path) -> Outcome {
    let mut command = environment::command(None, program, Path::new(""), &[], LIMIT);
    process::run(command.args(arguments).current_dir(folder), LIMIT)
}

/// What differs, if anything: objects in the order of their birth at each address, then sites, then totals.
pub fn difference(expected: &Report, found: &Report) -> Option<String> {
    let mut text = String::new();
    objects(expected, found, &mut text);
    sites(expected, found, &mut text);
    for total in [
        "allocs",
        "frees",
        "bytes",
        "reads",
        "writes",
        "read_bytes",
        "write_bytes",
        "kernel_reads",
        "kernel_writes",
        "unattributed",
    ] {
        let (found, expected) = (found.total(total), expected.total(total));
        if found != expected {
            let _ = writeln!(text, "  totals: {total} {found} instead of {expected}");
        }
    }
    (!text.is_empty()).then_some(text)
}

fn objects(expected: &Report, found: &Report, text: &mut String) {
    let (before, now) = (expected.listed_objects(), found.listed_objects());
    if before.len() != now.len() || expected.objects_omitted() != found.objects_omitted() {
        let _ = writeln!(text, "  {} objects instead of {}", now.len(), before.len());
    }
    let mut differing = 0;
    for (expected_object, found_object) in before.iter().zip(&now) {
        let mut what = String::new();
        let name = format!("{:#x}", expected_object.address);
        if expected_object.address != found_object.address {
            let _ = writeln!(text, "  an object at {:#x} instead of {name}", found_object.address);
            return;
        }
        compare::objects(&name, Some(&expected_object.heat), Some(&found_object.heat), &mut what);
        if !what.is_empty() {
            differing += 1;
            if differing <= MOST {
                let _ = writeln!(text, "{what}    of {}", expected.site(expected_object.site));
            }
        }
    }
    if differing > 0 {
        let _ = writeln!(text, "  {differing} of {} objects differ", before.len());
    }
}

fn sites(expected: &Report, found: &Report, text: &mut String) {
    let (before, now) = (expected.sites(), found.sites());
    let differing = before.iter().filter(|&(stack, numbers)| now.get(stack) != Some(numbers));
    for (stack, numbers) in differing.take(MOST) {
        let _ = writeln!(text, "  site {stack}: {:?} instead of {numbers:?}", now.get(stack));
    }
    for stack in now.keys().filter(|stack| !before.contains_key(*stack)).take(MOST) {
        let _ = writeln!(text, "  site {stack}: new");
    }
}
