//! The task `test-suite`: memcached's own tests on an instrumented build must come out as they do on the plain build.

use crate::builds::{Builds, Missing};
use crate::options::Suite;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thermalloc_bench::places::Places;

/// The build that shows what a test does here.
const PLAIN: &str = "plain";
/// Tests wait more than they work.
const AT_ONCE: &str = "-j8";

/// How one test file came out: prove's word for it.
type Outcomes = BTreeMap<String, Outcome>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Skipped,
    Failed,
}

/// Runs the tests on the plain build and on each of the others, and compares.
pub fn run(options: &Suite, places: &Places) -> Result<(), String> {
    let builds = Builds::new(places);
    let plain = outcomes(&binary(&builds, PLAIN)?, options)?;
    println!("{PLAIN}: {}", summary(&plain));
    for test in failing(&plain) {
        println!("  {test} fails in the plain build, and so tells nothing here");
    }
    let mut worse = Vec::new();
    for name in &options.builds {
        let here = outcomes(&binary(&builds, name)?, options)?;
        println!("{name}: {}", summary(&here));
        for (test, before, after) in differences(&plain, &here) {
            println!("  {test}: {before:?} in the plain build, {after:?} here");
            worse.push(format!("{name}: {test}"));
        }
    }
    if worse.is_empty() { Ok(()) } else { Err(format!("not as in the plain build: {}", worse.join(", "))) }
}

fn binary(builds: &Builds, name: &str) -> Result<PathBuf, String> {
    builds.get_with_suite(name).map_err(|missing| match missing {
        Missing::Compiler(words) | Missing::Failure(words) => words,
    })
}

fn outcomes(binary: &Path, options: &Suite) -> Result<Outcomes, String> {
    let directory = binary.parent().ok_or("a binary without a directory")?;
    let tests: Vec<String> = match options.tests.as_slice() {
        [] => all(directory)?,
        names => names.iter().map(|name| format!("t/{name}.t")).collect(),
    };
    let mut command = Command::new("prove");
    command.current_dir(directory).args([AT_ONCE, "--merge"]).args(&tests).stdin(Stdio::null());
    let output = command.output().map_err(|e| format!("cannot run prove: {e}"))?;
    let found = parse(&String::from_utf8_lossy(&output.stdout));
    match tests.iter().find(|test| !found.contains_key(*test)) {
        Some(missing) => Err(format!("prove does not say how {missing} came out")),
        None => Ok(found),
    }
}

fn all(directory: &Path) -> Result<Vec<String>, String> {
    let entries = directory.join("t").read_dir().map_err(|e| format!("no tests: {e}"))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut tests: Vec<String> =
        names.filter(|name| name.ends_with(".t")).map(|name| format!("t/{name}")).collect();
    tests.sort();
    Ok(tests)
}

/// Lines such as `t/lru.t ..... ok`; everything else is what tests themselves say.
fn parse(output: &str) -> Outcomes {
    let line = |line: &str| {
        let (test, rest) = line.split_once(' ')?;
        let words = rest.trim_start_matches(['.', ' ']);
        let outcome = match words {
            _ if !test.starts_with("t/") || !test.ends_with(".t") || !rest.starts_with('.') => return None,
            _ if words.starts_with("ok") => Outcome::Passed,
            _ if words.starts_with("skipped") => Outcome::Skipped,
            _ => Outcome::Failed,
        };
        Some((test.to_owned(), outcome))
    };
    let mut outcomes = Outcomes::new();
    for (test, outcome) in output.lines().filter_map(line) {
        // Where a test fails, its line comes twice: first with nothing but what it printed.
        outcomes.insert(test, outcome);
    }
    outcomes
}

fn summary(outcomes: &Outcomes) -> String {
    let count = |wanted| outcomes.values().filter(|outcome| **outcome == wanted).count();
    let [passed, skipped, failed] = [Outcome::Passed, Outcome::Skipped, Outcome::Failed].map(count);
    format!("{passed} passed, {skipped} skipped, {failed} failed")
}

fn failing(outcomes: &Outcomes) -> impl Iterator<Item = &String> {
    outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Failed).map(|(test, _)| test)
}

/// Tests that do not fail in the plain build and come out otherwise here.
fn differences<'a>(plain: &'a Outcomes, here: &Outcomes) -> Vec<(&'a str, Outcome, Outcome)> {
    let meaningful = plain.iter().filter(|(_, outcome)| **outcome != Outcome::Failed);
    let pair = |(test, before): (&'a String, &Outcome)| {
        let after = here.get(test).copied().unwrap_or(Outcome::Failed);
        (test.as_str(), *before, after)
    };
    meaningful.map(pair).filter(|(_, before, after)| before != after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "t/a.t .. ok\n# t/x.t said something\nt/bb.t ....... skipped: no SSL\nt/c.t .... \nDubious, test \
                          returned 1\nFailed 1/2 subtests\nt/d.t .. ok\n";

    #[test]
    fn prove_is_understood() {
        let outcomes = parse(OUTPUT);
        assert_eq!(outcomes["t/a.t"], Outcome::Passed);
        assert_eq!(outcomes["t/bb.t"], Outcome::Skipped);
        assert_eq!(outcomes["t/c.t"], Outcome::Failed);
        assert_eq!(summary(&outcomes), "2 passed, 1 skipped, 1 failed");
    }

    #[test]
    fn only_what_works_in_the_plain_build_is_held_against_another() {
        let plain = parse(OUTPUT);
        assert!(differences(&plain, &plain).is_empty());
        let here = parse("t/a.t .. \nt/bb.t .. skipped: x\nt/c.t .. ok\n");
        let worse: Vec<&str> = differences(&plain, &here).iter().map(|(test, ..)| *test).collect();
        assert_eq!(worse, ["t/a.t", "t/d.t"]);
    }
}
