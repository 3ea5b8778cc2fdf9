//! All runs, in turns: each program in all columns, then the next one, and then again.

use crate::columns::{COLUMNS, Column, NATIVE};
use crate::lines::{Line, Lines};
use crate::options::Options;
use crate::run::{Bench, Run};
use crate::subjects::{self, Subject};
use crate::{chart, compare, document, table};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use thermalloc_bench::places::Places;
use thermalloc_bench::{machine, results};

/// Makes all runs and writes the results.
pub fn run(options: &Options) -> Result<(), String> {
    known(&options.programs, subjects::names(), "--programs")?;
    known(&options.columns, COLUMNS.iter().map(|column| column.name), "--columns")?;
    let work = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let bench = Bench {
        places: Places::new(options.library.as_deref(), &options.results)?,
        work: work.path().to_owned(),
        scale: options.scale,
        limit: Duration::from_secs_f64(options.limit),
        seconds: options.seconds,
        processors: machine::split(machine::cores()),
    };
    pin(&bench.processors.0)?;
    let chosen = |names: &[String], name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let subjects = subjects::prepare(|name| chosen(&options.programs, name), &bench);
    let columns = COLUMNS.iter().filter(|c| c.name == NATIVE || chosen(&options.columns, c.name));
    let mut lines = plan(&subjects, &columns.copied().collect::<Vec<Column>>(), &bench);
    for number in 1..=options.runs {
        round(number, options.runs, &subjects, &mut lines, &bench);
    }
    let page = table::page(&lines, &bench, options.runs);
    let document = document::document(&lines, &bench, options.runs);
    results::publish(&options.results, "modes", &document, &page, &chart::draw(&lines)?)?;
    let failed: Vec<String> = lines.0.iter().filter(|line| line.failed.is_some()).map(title).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Refuses a name that stands for nothing.
fn known<'a>(names: &[String], all: impl Iterator<Item = &'a str>, option: &str) -> Result<(), String> {
    let all: Vec<&str> = all.collect();
    match names.iter().find(|name| !all.contains(&name.as_str())) {
        Some(unknown) => Err(format!("{option}: '{unknown}' is none of {}", all.join(", "))),
        None => Ok(()),
    }
}

/// This process, and so all programs that it starts, keeps to its processors: a program that moves is slower.
fn pin(processors: &str) -> Result<(), String> {
    let pid = std::process::id().to_string();
    let output = Command::new("taskset").args(["-a", "-c", "-p", processors, &pid]).output();
    let output = output.map_err(|e| format!("cannot run taskset: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("taskset fails: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// A line for each program in each column, with the reason if it cannot be measured.
fn plan(subjects: &[Subject], columns: &[Column], bench: &Bench) -> Lines {
    let tool = bench.places.programs.join("thermalloc");
    let able: Vec<Result<(), String>> =
        columns.iter().map(|c| c.able(&bench.places.library, &tool)).collect();
    let mut lines = Vec::new();
    for subject in subjects {
        for (column, able) in columns.iter().zip(&able) {
            if subject.server && !column.servers {
                continue;
            }
            let skipped = subject.able().and(able.clone()).err();
            let line = Line {
                program: subject.name,
                about: subject.about,
                server: subject.server,
                column: *column,
                skipped,
                failed: None,
                runs: Vec::new(),
            };
            if let Some(words) = &line.skipped {
                eprintln!("skipped: {}: {words}", title(&line));
            }
            lines.push(line);
        }
    }
    Lines(lines)
}

fn title(line: &Line) -> String {
    format!("{} {}", line.program, line.column.title)
}

/// One run of everything that is to be run again.
fn round(number: u32, of: u32, subjects: &[Subject], lines: &mut Lines, bench: &Bench) {
    for at in 0..lines.0.len() {
        let line = &lines.0[at];
        if !line.wants(number) {
            continue;
        }
        let native = lines.line(line.program, NATIVE).is_some_and(|native| native.failed.is_none());
        if !native {
            lines.0[at].skipped = Some(format!("{} fails natively", line.program));
            lines.0[at].runs.clear();
            continue;
        }
        let Some(subject) = subjects.iter().find(|subject| subject.name == line.program) else { continue };
        let outcome = checked(subject, line, bench);
        let words = match &outcome {
            Ok(run) => format!("{:>10.3} s{}", run.cpu_s, if run.stopped { ", stopped" } else { "" }),
            Err(words) => format!("FAILED: {words}"),
        };
        eprintln!("run {number} of {of}: {:<32}{words}", title(line));
        match outcome {
            Ok(run) => lines.0[at].runs.push(run),
            Err(words) => lines.0[at].failed = Some(words),
        }
    }
}

/// A run whose output is that of the first native run; native comes first.
fn checked(subject: &Subject, line: &Line, bench: &Bench) -> Result<Run, String> {
    let expected = bench.work.join(format!("{}.expected", line.program));
    let found: PathBuf = bench.work.join(format!("{}.found", line.program));
    let first = line.column.name == NATIVE && line.runs.is_empty();
    let output = if first { &expected } else { &found };
    let run = subject.run(line.column.way, bench, output)?;
    if first && run.stopped {
        return Err("takes longer than the limit".into());
    }
    // A server whose replies the load verifies has no output.
    if first || run.stopped || !expected.exists() {
        return Ok(run);
    }
    let difference = compare::difference(&expected, &found).map_err(|e| format!("no output: {e}"))?;
    let _ = fs::remove_file(&found);
    difference.map_or(Ok(run), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_refused() {
        let names = ["jq".to_owned(), "fast".to_owned()];
        assert!(known(&names[..1], subjects::names(), "--programs").is_ok());
        let words = known(&names, subjects::names(), "--programs").unwrap_err();
        assert!(words.contains("'fast'") && words.contains("sqlite3"), "{words}");
    }
}
