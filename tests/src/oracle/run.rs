//! Runs a batch without the monitor and in its modes, and reads what each program left.

use super::environment;
use crate::modes::Mode;
use crate::monitored;
use crate::process::{self, Outcome};
use crate::report::{ObjectHeat, Report};
use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// Far more than any batch takes.
const LIMIT: Duration = Duration::from_secs(40);

/// One part of what a program left: its tag (`R` registers, `V` vectors, `F` and `f` faults, `G` globals, `S` stack, `T`
/// thread-local memory, `0`... objects) and its bytes.
pub type Record = (u8, Vec<u8>);

/// What one program of a batch left.
#[derive(Debug, Default)]
pub struct Left {
    /// Its number in the batch.
    pub number: usize,
    /// Addresses and sizes of its objects.
    pub objects: Vec<(u64, u64)>,
    /// Everything else.
    pub records: Vec<Record>,
}

/// The run of a batch.
#[derive(Debug)]
pub struct Run {
    /// Its end and output.
    pub outcome: Outcome,
    /// What its programs left; the last one, if the batch did not end well, may be incomplete.
    pub left: Vec<Left>,
    /// Whether it ran to its end.
    pub complete: bool,
    /// The live objects of the report by address.
    pub heat: HashMap<u64, ObjectHeat>,
    /// How its accesses were let through.
    pub ways: Ways,
}

/// How accesses were let through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// Faults.
    pub faults: u64,
    /// Single steps.
    pub steps: u64,
    /// Instructions emulated.
    pub emulated: u64,
    /// Sites patched.
    pub patched_sites: u64,
}

impl Ways {
    fn of(report: &Report) -> Ways {
        let [faults, steps, emulated, patched_sites] =
            ["faults", "steps", "emulated", "patched_sites"].map(|total| report.total(total));
        Ways { faults, steps, emulated, patched_sites }
    }

    /// Adds others.
    pub fn add(&mut self, other: Ways) {
        self.faults += other.faults;
        self.steps += other.steps;
        self.emulated += other.emulated;
        self.patched_sites += other.patched_sites;
    }
}

/// Whether signals arrive all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// No.
    Off,
    /// On a stack of their own.
    Alternate,
    /// On the program's stack.
    Stack,
}

impl Timer {
    fn order(self, replay: bool) -> String {
        let order = if replay { "replay" } else { "record" };
        match self {
            Timer::Off => order.to_owned(),
            Timer::Alternate => format!("{order}-timer-alternate"),
            Timer::Stack => format!("{order}-timer-stack"),
        }
    }
}

/// Runs the programs `range` of a built batch; natively without a mode, with the addresses of the last monitored run.
pub fn run(
    program: &Path,
    mode: Option<Mode>,
    timer: Timer,
    settings: &[(&str, &str)],
    range: &Range<usize>,
    folder: &Path,
) -> Run {
    let (dump, report) = (folder.join("dump"), folder.join("heat.json"));
    let (addresses, kept) = (folder.join("addresses"), folder.join("addresses.kept"));
    let _ = fs::remove_file(&dump);
    let _ = fs::remove_file(&report);
    let mut command = environment::command(mode, program, &report, settings, LIMIT);
    let order = timer.order(mode.is_none());
    command.args([&dump, if mode.is_some() { &addresses } else { &kept }]);
    command.args([order, range.start.to_string(), range.end.to_string()]);
    let outcome = process::run(&mut command, monitored::limit());
    if mode.is_some() && !kept.is_file() {
        let _ = fs::rename(&addresses, &kept);
    }
    let (left, complete) = parse(&fs::read(&dump).unwrap_or_default());
    let report = report.is_file().then(|| Report::read(&report));
    if let (Some(report), Some(mode)) = (&report, mode) {
        assert_eq!(report.mode(), mode.name(), "the report is of another mode");
    }
    Run {
        complete: complete && outcome.status == 0,
        outcome,
        left,
        heat: report.as_ref().map(Report::live_objects).unwrap_or_default(),
        ways: report.as_ref().map(Ways::of).unwrap_or_default(),
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The programs of a dump, and whether it is whole.
fn parse(bytes: &[u8]) -> (Vec<Left>, bool) {
    let mut left: Vec<Left> = Vec::new();
    let mut at = 0;
    while let (Some(tag), Some(length)) = (word(bytes, at), word(bytes, at + 8)) {
        let Some(content) = bytes.get(at + 16..at + 16 + length as usize) else { break };
        at += 16 + length as usize;
        match (tag as u8, left.last_mut()) {
            (b'P', _) => {
                left.push(Left { number: word(content, 0).unwrap_or(0) as usize, ..Left::default() })
            }
            (b'E', _) => return (left, true),
            (b'A', Some(program)) => program.objects = pairs(content),
            (tag, Some(program)) => program.records.push((tag, content.to_vec())),
            (_, None) => break,
        }
    }
    (left, false)
}

fn pairs(bytes: &[u8]) -> Vec<(u64, u64)> {
    let pair = |pair: &[u8]| Some((word(pair, 0)?, word(pair, 8)?));
    bytes.chunks_exact(16).filter_map(pair).filter(|&(address, _)| address != 0).collect()
}
