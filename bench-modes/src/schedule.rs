//! All runs, in turns: each program in all columns, then the next one, and then again.

use crate::columns::{COLUMNS, Column, NATIVE};
use crate::lines::{Line, Lines};
use crate::measured::Measured;
use crate::options::Options;
use crate::run::{Bench, Run};
use crate::subjects::{self, Subject};
use crate::{chart, child, compare, document, table};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use thermalloc_bench::places::Places;
use thermalloc_bench::{machine, results};

/// Longest wait for a program that does nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Subjects with inputs of one size, and their lines.
struct Suite {
    bench: Bench,
    subjects: Vec<Subject>,
    lines: Lines,
}

/// Makes all runs and writes the results.
pub fn run(options: &Options) -> Result<(), String> {
    known(&options.programs, subjects::names(), "--programs")?;
    known(&options.columns, COLUMNS.iter().map(|column| column.name), "--columns")?;
    let work = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let chosen = |names: &[String], name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let columns = COLUMNS.iter().filter(|c| c.name == NATIVE || chosen(&options.columns, c.name));
    let mut columns: Vec<Column> = columns.copied().collect();
    let wanted = |subject: &str| chosen(&options.programs, subject);
    let mut suites = vec![Suite::new(bench(options, work.path(), 1.0)?, &columns, wanted)];
    columns.retain(|column| column.steady);
    if !options.without_steady && columns.iter().any(|column| column.name != NATIVE) {
        let busy = |subject: &str| wanted(subject) && !subjects::is_server(subject);
        suites.push(Suite::new(bench(options, &work.path().join("twice"), 2.0)?, &columns, busy));
    }
    pin(&suites[0].bench.processors.0)?;
    for number in 1..=options.runs {
        suites.iter_mut().for_each(|suite| suite.round(number, options.runs));
    }
    publish(suites, options)
}

fn bench(options: &Options, work: &Path, factor: f64) -> Result<Bench, String> {
    fs::create_dir_all(work).map_err(|e| format!("cannot make {}: {e}", work.display()))?;
    Ok(Bench {
        places: Places::new(options.library.as_deref(), &options.results)?,
        work: work.to_owned(),
        scale: options.scale * factor,
        limit: Duration::from_secs_f64(options.limit),
        seconds: options.seconds,
        processors: machine::split(machine::cores()),
    })
}

fn publish(suites: Vec<Suite>, options: &Options) -> Result<(), String> {
    let floor =
        child::run(&mut Command::new("true"), PATIENCE).map_err(|e| format!("cannot run true: {e}"))?;
    let mut suites = suites.into_iter();
    let Suite { bench, lines, .. } = suites.next().ok_or("nothing was measured")?;
    let twice = suites.next().map_or_else(|| Lines(Vec::new()), |suite| suite.lines);
    let measured = Measured { lines, twice, runs: options.runs, floor_kib: floor.peak_kib };
    let (document, page) = (document::document(&measured, &bench), table::page(&measured, &bench));
    results::publish(&options.results, "modes", &document, &page, &chart::draw(&measured.lines)?)?;
    let failed = measured.failures();
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
                eprintln!("skipped: {}: {words}", line.title());
            }
            lines.push(line);
        }
    }
    Lines(lines)
}

impl Suite {
    fn new(bench: Bench, columns: &[Column], wanted: impl Fn(&str) -> bool) -> Self {
        let subjects = subjects::prepare(wanted, &bench);
        let lines = plan(&subjects, columns, &bench);
        Self { bench, subjects, lines }
    }

    /// One run of everything that is to be run again.
    fn round(&mut self, number: u32, of: u32) {
        for at in 0..self.lines.0.len() {
            let line = &self.lines.0[at];
            if !line.wants(number) {
                continue;
            }
            if self.lines.line(line.program, NATIVE).is_none_or(|native| native.failed.is_some()) {
                let line = &mut self.lines.0[at];
                line.skipped = Some(format!("{} fails natively", line.program));
                line.runs.clear();
                continue;
            }
            let Some(subject) = self.subjects.iter().find(|subject| subject.name == line.program) else {
                continue;
            };
            let outcome = checked(subject, line, &self.bench);
            let words = match &outcome {
                Ok(run) => format!("{:>10.3} s{}", run.cpu_s, if run.stopped { ", stopped" } else { "" }),
                Err(words) => format!("FAILED: {words}"),
            };
            eprintln!("run {number} of {of}, scale {}: {:<32}{words}", self.bench.scale, line.title());
            match outcome {
                Ok(run) => self.lines.0[at].runs.push(run),
                Err(words) => self.lines.0[at].failed = Some(words),
            }
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
    use crate::programs::Program;

    /// Two rounds of a shell script, natively and in a column that is native too.
    fn rounds(script: &str) -> Lines {
        let work = tempfile::tempdir().unwrap();
        let mark = work.path().join("mark");
        let arguments = vec!["-c".into(), script.replace("MARK", &mark.display().to_string())];
        let program = Program { binary: "/bin/sh".into(), arguments, stdin: None };
        let places = Places { programs: "".into(), library: "".into(), results: "".into() };
        let bench = Bench {
            places,
            work: work.path().into(),
            scale: 1.0,
            limit: PATIENCE,
            seconds: 1.0,
            processors: ("0".into(), "0".into()),
        };
        let subjects = vec![Subject::of(program)];
        let columns = [COLUMNS[0], Column { name: "again", ..COLUMNS[0] }];
        let lines = plan(&subjects, &columns, &bench);
        let mut suite = Suite { bench, subjects, lines };
        (1..=2).for_each(|number| suite.round(number, 2));
        suite.lines
    }

    #[test]
    fn a_program_that_prints_the_same_is_measured_in_every_round() {
        let lines = rounds("echo same");
        assert!(lines.0.iter().all(|line| line.measured() && line.runs.len() == 2));
    }

    #[test]
    fn a_program_that_prints_something_else_or_fails_is_a_failed_row() {
        let lines = rounds("echo >>MARK; wc -l <MARK");
        let words = lines.line("test", "again").unwrap().failed.clone().unwrap();
        assert!(words.contains("differs from native's"), "{words}");
        let lines = rounds("echo oh no >&2; exit 3");
        let words = lines.line("test", NATIVE).unwrap().failed.clone().unwrap();
        assert!(words.contains("3") && words.contains("oh no"), "{words}");
        assert!(lines.line("test", "again").unwrap().skipped.is_some());
    }

    #[test]
    fn unknown_names_are_refused() {
        let names = ["jq".to_owned(), "fast".to_owned()];
        assert!(known(&names[..1], subjects::names(), "--programs").is_ok());
        let words = known(&names, subjects::names(), "--programs").unwrap_err();
        assert!(words.contains("'fast'") && words.contains("sqlite3"), "{words}");
    }
}
