//! `thermalloc top --pid`: follows a running program by its periodic reports.
//!
//! Modules, lowest first:
//! - [`target`]: where a process writes its reports.
//! - [`change`]: what happened between two of them.
//! - [`screen`]: that as text.
//! - [`terminal`]: keys, and drawing in place.

mod change;
mod screen;
mod target;
mod terminal;

use crate::failure::{Failure, say};
use crate::input::{self, Histograms};
use crate::options::{Sort, TopOptions};
use crate::table;
use change::Change;
use screen::{Labels, Size, screen};
use std::io::{ErrorKind, IsTerminal, Write, stdout};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use target::Target;
use terminal::{Key, Terminal};
use thermalloc_format::Summary;

/// How often to look for a new report.
const LOOK: Duration = Duration::from_millis(100);
/// Lines of a screen besides those of sites and objects.
const FRAME: usize = 9;
const SORTS: [(Sort, &str); 5] = [
    (Sort::Accesses, "accesses"),
    (Sort::Reads, "reads"),
    (Sort::Writes, "writes"),
    (Sort::Bytes, "bytes"),
    (Sort::Heat, "heat"),
];

/// Follows until the program ends or the user has seen enough.
pub fn follow(pid: u32, options: &TopOptions) -> Result<u8, Failure> {
    let target = Target::find(pid, options.path.as_deref())?;
    let mut reports = Reports { pid, target, last: None };
    let first = reports.first()?;
    // From here on the terminal is changed, so failures are told after it has been given back.
    let terminal = Terminal::take();
    let result =
        Follower { sort: options.sort, lines: options.n, labels: Labels::default(), terminal: &terminal }
            .run(&mut reports, first);
    drop(terminal);
    if result? == Ended::Program {
        say(&format!("process {pid} has ended"));
    }
    Ok(0)
}

/// Why following ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Program,
    User,
}

/// The reports of one process, as they come.
struct Reports {
    pid: u32,
    target: Target,
    /// Which version of which file was read last.
    last: Option<(PathBuf, Version)>,
}

/// What tells one version of a file from another: the runtime replaces reports as a whole.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Version(u64, i64, i64);

impl Reports {
    /// Waits for the first report.
    fn first(&mut self) -> Result<Summary, Failure> {
        loop {
            // In this order: what ended in between has written its last report.
            let alive = self.target.is_alive();
            if let Some(report) = self.next()? {
                return Ok(report);
            }
            let pid = self.pid;
            if self.target.interval_ms == 0 {
                return Err(Failure::own(format!(
                    "process {pid} writes no reports while it runs; start it with 'thermalloc run --interval 1000', \
                     or give the path of its report too"
                )));
            }
            if !alive {
                return Err(Failure::own(format!(
                    "process {pid} ended before it wrote a report; start it with a shorter --interval"
                )));
            }
            thread::sleep(LOOK);
        }
    }

    /// A report that has not been seen yet, if there is one.
    fn next(&mut self) -> Result<Option<Summary>, Failure> {
        for path in self.target.candidates() {
            let Some(version) = version(path) else { continue };
            if self.last.as_ref().is_some_and(|(seen, last)| seen == path && *last == version) {
                continue;
            }
            let mut objects = Vec::new();
            let report = input::read(path, Histograms::Drop, |object| objects.push(object))?;
            // A file of that name may be another process's, or older than this process.
            if report.program.pid == self.pid {
                self.last = Some((path.clone(), version));
                return Ok(Some(Summary { objects, ..report }));
            }
        }
        Ok(None)
    }
}

fn version(path: &Path) -> Option<Version> {
    let metadata = path.metadata().ok().filter(|metadata| metadata.is_file())?;
    Some(Version(metadata.ino(), metadata.mtime(), metadata.mtime_nsec()))
}

/// Shows reports.
struct Follower<'a> {
    sort: Sort,
    lines: usize,
    labels: Labels,
    terminal: &'a Option<Terminal>,
}

impl Follower<'_> {
    fn run(&mut self, reports: &mut Reports, first: Summary) -> Result<Ended, Failure> {
        let (mut old, mut new) = (None, first);
        self.show(old.as_ref(), &new)?;
        loop {
            let alive = reports.target.is_alive();
            if let Some(report) = reports.next()? {
                old = Some(std::mem::replace(&mut new, report));
                self.show(old.as_ref(), &new)?;
            } else if !alive {
                return Ok(Ended::Program);
            }
            match self.wait() {
                Key::Quit => return Ok(Ended::User),
                Key::Sort => {
                    let at = SORTS.iter().position(|(sort, _)| *sort == self.sort).unwrap_or(0);
                    self.sort = SORTS[(at + 1) % SORTS.len()].0;
                    self.show(old.as_ref(), &new)?;
                }
                Key::Other => {}
            }
        }
    }

    fn wait(&self) -> Key {
        match self.terminal {
            Some(terminal) => terminal.key(LOOK),
            None => {
                thread::sleep(LOOK);
                Key::Other
            }
        }
    }

    fn show(&mut self, old: Option<&Summary>, new: &Summary) -> Result<(), Failure> {
        let change = Change::between(old, new, self.sort);
        let size = self.size();
        let text = screen(new, &change, &mut self.labels, size);
        if let Some(terminal) = self.terminal {
            let by = SORTS.iter().find(|(sort, _)| *sort == self.sort).map_or("", |(_, name)| name);
            terminal.draw(&format!("{text}\nby {by}; s sorts by something else, q quits\n"));
            return Ok(());
        }
        match stdout().write_all(format!("{text}\n").as_bytes()).and_then(|()| stdout().flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            Err(error) => Err(Failure::own(format!("cannot write to stdout ({error}); check where it goes"))),
            Ok(()) => Ok(()),
        }
    }

    /// What fits the terminal.
    fn size(&self) -> Size {
        let width = table::terminal_width();
        let height = stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        let room = height.map_or(usize::MAX, |(_, height)| usize::from(height.0).saturating_sub(FRAME) / 2);
        Size { width, lines: self.lines.min(room) }
    }
}
