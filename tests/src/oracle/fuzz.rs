//! Makes batches of random programs, runs them in all modes, and shrinks what fails.

use super::compare;
use super::expand::Abilities;
use super::program::{Flavour, Program, STACK};
use super::random::Random;
use super::run::{self, Left, Run, Timer, Ways};
use super::shrink;
use super::source::{self, Place};
use crate::modes::Mode;
use crate::places::Scratch;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Programs of a batch: many, so that starting a process costs little for each.
const BATCH: usize = 48;

/// How programs are built and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// Where they lie.
    pub place: Place,
    /// Whether signals arrive.
    pub timer: Timer,
    /// What they are made of.
    pub flavour: Flavour,
    /// How they are watched.
    pub watch: Watch,
}

/// Settings of the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Everything.
    All,
    /// Writes alone.
    Writes,
    /// With counters for 64 bytes.
    Wide,
}

impl Watch {
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Watch::All => &[],
            Watch::Writes => &[("THERMALLOC_ACCESS", "w")],
            Watch::Wide => &[("THERMALLOC_GRANULE", "64")],
        }
    }
}

impl Circumstances {
    fn random(random: &mut Random) -> Circumstances {
        let place = if random.chance(50) { Place::Low } else { Place::High };
        let timer = match random.below(10) {
            0 => Timer::Alternate,
            1 => Timer::Stack,
            _ => Timer::Off,
        };
        // Some of what faults has no stack that a signal could be delivered on.
        let faults = timer != Timer::Stack && random.chance(25);
        let watch = match random.below(10) {
            0 => Watch::Writes,
            1 => Watch::Wide,
            _ => Watch::All,
        };
        Circumstances { place, timer, flavour: Flavour { faults }, watch }
    }

    fn program(self, seed: u64, abilities: &Abilities) -> Program {
        let mut abilities = abilities.clone();
        if self.place == Place::Low {
            abilities.features.insert("low".to_owned());
        }
        Program::random(seed, &abilities, self.flavour)
    }
}

impl fmt::Display for Circumstances {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let faults = if self.flavour.faults { "faults" } else { "plain" };
        write!(formatter, "{:?} {:?} {faults} {:?}", self.place, self.timer, self.watch)
    }
}

/// One program, to be made again: `SEED PLACE TIMER FLAVOUR WATCH`, as failures tell it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What makes the program.
    pub seed: u64,
    /// How it runs.
    pub circumstances: Circumstances,
}

impl Case {
    /// Reads a case.
    pub fn parse(text: &str) -> Option<Case> {
        let mut words = text.split_whitespace();
        let seed = words.next()?.parse().ok()?;
        let place = if words.next()? == "Low" { Place::Low } else { Place::High };
        let timer = match words.next()? {
            "Alternate" => Timer::Alternate,
            "Stack" => Timer::Stack,
            _ => Timer::Off,
        };
        let flavour = Flavour { faults: words.next()? == "faults" };
        let watch = match words.next() {
            Some("Writes") => Watch::Writes,
            Some("Wide") => Watch::Wide,
            _ => Watch::All,
        };
        Some(Case { seed, circumstances: Circumstances { place, timer, flavour, watch } })
    }
}

/// A program that ends otherwise in a mode than natively, or is counted otherwise than in the mode of reference.
#[derive(Debug)]
pub struct Failure {
    /// Its number in the batch.
    pub number: usize,
    /// Where.
    pub mode: Mode,
    /// What differs.
    pub text: String,
}

/// Runs programs; what fails of them, at most one a mode. The first mode is the one whose counts the others must have.
pub fn check(
    programs: &[Program],
    circumstances: Circumstances,
    modes: &[Mode],
    folder: &Path,
) -> Result<(Vec<Failure>, Tally), String> {
    let batch = source::build(programs, circumstances.place, folder)?;
    let _ = std::fs::remove_file(folder.join("addresses.kept"));
    let range = 0..programs.len();
    let run =
        |mode| run::run(&batch, mode, circumstances.timer, circumstances.watch.settings(), &range, folder);
    let reference = run(Some(modes[0]));
    let native = run(None);
    if !native.complete {
        let number = native.left.last().map_or(0, |program| program.number);
        let case = format!("{} {circumstances}", programs[number].seed);
        let (status, error) = (native.outcome.status, native.outcome.error_text());
        let listing = source::body(&programs[number], number);
        return Err(format!("'{case}' fails natively: {status} {error}\n{listing}"));
    }
    let mut tally =
        Tally { programs: programs.len() as u64, accesses: accesses(&reference), ways: Vec::new() };
    tally.add(modes[0], reference.ways);
    let mut failures = Vec::new();
    failures.extend(failure(modes[0], &native, &reference, None, circumstances, |_| None));
    for &mode in &modes[1..] {
        let found = run(Some(mode));
        tally.add(mode, found.ways);
        let counted = reference.complete.then_some(&reference);
        failures.extend(failure(mode, &native, &found, counted, circumstances, |number| {
            // Signal handlers have frames there.
            (circumstances.timer == Timer::Stack && programs[number].stack_in_heap).then_some(STACK)
        }));
    }
    Ok((failures, tally))
}

/// How much was compared.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Programs.
    pub programs: u64,
    /// Accesses of all objects in the mode of reference.
    pub accesses: u64,
    /// How each mode let accesses through.
    pub ways: Vec<(Mode, Ways)>,
}

impl Tally {
    fn add(&mut self, mode: Mode, ways: Ways) {
        match self.ways.iter_mut().find(|(other, _)| *other == mode) {
            Some((_, sum)) => sum.add(ways),
            None => self.ways.push((mode, ways)),
        }
    }

    fn merge(&mut self, other: &Tally) {
        self.programs += other.programs;
        self.accesses += other.accesses;
        other.ways.iter().for_each(|&(mode, ways)| self.add(mode, ways));
    }

    /// What is odd in how accesses were let through: a mode that steps where it should not is tested in name only.
    pub fn suspicion(&self) -> Option<String> {
        let suspicious = |&&(mode, ways): &&(Mode, Ways)| match mode {
            Mode::Emulate => ways.emulated < 4 * ways.steps,
            Mode::Patch => ways.patched_sites == 0,
            _ => false,
        };
        self.ways.iter().find(suspicious).map(|(mode, ways)| format!("{mode} is hardly used: {ways:?}"))
    }
}

fn accesses(run: &Run) -> u64 {
    run.heat.values().map(|heat| heat.counts.reads + heat.counts.writes).sum()
}

/// The first program that fails in a mode.
fn failure(
    mode: Mode,
    native: &Run,
    found: &Run,
    counted: Option<&Run>,
    circumstances: Circumstances,
    uncounted: impl Fn(usize) -> Option<usize>,
) -> Option<Failure> {
    let differs = |program: &Left| {
        let expected = native.left.get(program.number)?;
        if expected.objects != program.objects {
            return Some(format!("  objects at {:x?} instead of {:x?}\n", program.objects, expected.objects));
        }
        if mode == Mode::Patch && circumstances.flavour.faults {
            // The handler goes on behind the instruction that has faulted, with registers and flags that the instruction would have overwritten:
            // patched code does not keep these. What is checked is that it gets through.
            return None;
        }
        let states = compare::states(expected, program).unwrap_or_default();
        let counts =
            counted.and_then(|counted| compare::counts(program, counted, found, uncounted(program.number)));
        Some(states + &counts.unwrap_or_default()).filter(|text| !text.is_empty())
    };
    let whole =
        if found.complete { &found.left[..] } else { &found.left[..found.left.len().saturating_sub(1)] };
    for program in whole {
        if let Some(text) = differs(program) {
            return Some(Failure { number: program.number, mode, text });
        }
    }
    if !found.complete {
        let number = found.left.last().map_or(0, |program| program.number);
        let text = format!("  ends with status {}: {}\n", found.outcome.status, found.outcome.error_text());
        return Some(Failure { number, mode, text });
    }
    if circumstances.timer != Timer::Off || (mode == Mode::Patch && circumstances.flavour.faults) {
        return None;
    }
    let elsewhere = compare::all_counts(counted?, found)?;
    Some(Failure { number: 0, mode, text: format!("  outside the programs' objects:\n{elsewhere}") })
}

/// Everything that a run of the oracle found out.
#[derive(Debug, Default)]
pub struct Findings {
    /// How much was compared.
    pub tally: Tally,
    /// Descriptions of what failed.
    pub failures: Vec<String>,
    /// What all programs come from.
    pub seed: u64,
    /// How long it took.
    pub time: Duration,
}

/// Runs random programs for some time, and stops once `most` have failed.
pub fn run_for(time: Duration, seed: u64, modes: &[Mode], abilities: &Abilities, most: usize) -> Findings {
    let start = Instant::now();
    let mut random = Random::new(seed);
    let mut findings = Findings { seed, ..Findings::default() };
    while start.elapsed() < time && findings.failures.len() < most {
        let circumstances = Circumstances::random(&mut random);
        let seeds: Vec<u64> = (0..BATCH).map(|_| random.bits()).collect();
        run_batch(&seeds, circumstances, modes, abilities, &mut findings);
    }
    findings.time = start.elapsed();
    findings
}

/// Runs the programs of some seeds as one batch.
pub fn run_batch(
    seeds: &[u64],
    circumstances: Circumstances,
    modes: &[Mode],
    abilities: &Abilities,
    findings: &mut Findings,
) {
    let programs: Vec<Program> = seeds.iter().map(|&seed| circumstances.program(seed, abilities)).collect();
    let folder = Scratch::new("oracle");
    match check(&programs, circumstances, modes, folder.path()) {
        Ok((failures, tally)) => {
            findings.tally.merge(&tally);
            for failure in failures {
                let program = &programs[failure.number];
                let description = shrink::describe(program, circumstances, modes[0], &failure);
                findings.failures.push(description);
            }
        }
        Err(text) => findings.failures.push(format!("a batch cannot be run, {circumstances}: {text}")),
    }
}
