//! The three comparisons between prediction and kernel.
//!
//! # Safety
//! Calls are made with pointers to blocks of their stage only.
#![allow(unsafe_code)]

use crate::stage::{PAGE, Stage};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use thermalloc_monitor::kernel::{Coverage, KernelRange, Kind, Phase, ranges};
use thermalloc_sys::gate;

/// One call to examine.
pub struct Case<F> {
    nr: i64,
    build: F,
    expected: Option<i32>,
    optional: bool,
    exact: bool,
    silent_kind: Option<Kind>,
    in_child: bool,
}

/// A call with the arguments that `build` makes on a stage.
pub fn case<const N: usize, F: Fn(&mut Stage) -> [u64; N]>(nr: i64, build: F) -> Case<F> {
    Case { nr, build, expected: None, optional: false, exact: true, silent_kind: None, in_child: false }
}

impl<const N: usize, F: Fn(&mut Stage) -> [u64; N]> Case<F> {
    /// The call is to fail with this error.
    pub fn fails(mut self, errno: i32) -> Self {
        self.expected = Some(errno);
        self
    }

    /// Some machines lack what the call needs.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The kernel need not write every byte that is predicted (padding, a buffer of unknown fill).
    pub fn loose(mut self) -> Self {
        self.exact = false;
        self
    }

    /// The kernel says nothing when it cannot do its accesses of this kind.
    pub fn silent(mut self, kind: Kind) -> Self {
        self.silent_kind = Some(kind);
        self
    }

    /// The call is made in a forked child; its result is 0 or the error, however it ended.
    pub fn in_child(mut self) -> Self {
        self.in_child = true;
        self
    }

    /// Makes the three comparisons.
    pub fn holds(self) {
        let Some(first) = self.transfer(0xa5) else { return };
        // A byte that changes from run to run may equal one filling and then another, hardly a third and a fourth.
        let mut unwritten = first.predicted.clone();
        for filling in [0xa5, 0x5a, 0x3c, 0xc3] {
            let again = self.transfer(filling).expect("it worked before");
            unwritten.retain(|spot| !first.changed.contains(spot) && !again.changed.contains(spot));
        }
        let missed = if self.exact { brief(unwritten.iter()) } else { String::new() };
        assert!(missed.is_empty(), "{}: predicted but not written: {missed}", self.name());
        for spot in &first.pages {
            self.withhold_predicted(*spot);
        }
        self.withhold_others(first.result);
    }

    fn name(&self) -> String {
        format!("call {}", self.nr)
    }

    fn stage(&self, filling: u8) -> (Stage, [u64; 6]) {
        let mut stage = Stage::new(filling);
        let mut args = [0; 6];
        args[..N].copy_from_slice(&(self.build)(&mut stage));
        (stage, args)
    }

    /// Makes the call, and compares what changed with what was predicted.
    fn transfer(&self, filling: u8) -> Option<Transfer> {
        let (stage, args) = self.stage(filling);
        let (foretold, coverage) = self.ask(&stage, &args, Phase::Before);
        assert_eq!(coverage, Coverage::Complete, "{}", self.name());
        let old = stage.contents();
        let result = self.call(&args);
        let new = stage.contents();
        let wanted = self.expected.map_or(result >= 0, |errno| result == -i64::from(errno));
        if self.optional && !wanted {
            println!("SKIP {}: error {}", self.name(), -result);
            return None;
        }
        assert!(wanted, "{}: result {result}", self.name());
        let (told, _) = self.ask(&stage, &args, Phase::After { result });
        let stray = told.iter().find(|range| !stage.holds(range.addr, range.len));
        assert!(stray.is_none(), "{}: predicted beyond any buffer: {stray:?}", self.name());
        let changed = changes(&old, &new);
        let writes = told.iter().filter(|range| range.kind == Kind::Write);
        let predicted: BTreeSet<Spot> = writes.flat_map(|range| spots(&stage, range)).collect();
        let surprise = brief(changed.difference(&predicted));
        assert!(surprise.is_empty(), "{}: written but not predicted: {surprise}", self.name());
        let predicted = predicted.into_iter().filter(|spot| in_room(&stage, *spot)).collect();
        // A program that has begun leaves no trace of what was read for it but in what was foretold.
        let began = self.in_child && self.expected.is_none();
        let accesses = if began { foretold } else { told };
        let pages = accesses.iter().flat_map(|range| pages(&stage, range)).collect();
        Some(Transfer { result, changed, predicted, pages })
    }

    /// Withholds one predicted page; the call must miss it.
    fn withhold_predicted(&self, (spot, kind): (Spot, Kind)) {
        if self.silent_kind == Some(kind) {
            return;
        }
        let (stage, args) = self.stage(0xa5);
        let page = stage.blocks[spot.block].start + spot.offset;
        stage.protect(page, if kind == Kind::Read { libc::PROT_NONE } else { libc::PROT_READ });
        let result = self.call(&args);
        stage.protect(page, libc::PROT_READ | libc::PROT_WRITE);
        let (told, _) = self.ask(&stage, &args, Phase::After { result });
        let avoided =
            result >= 0 && !told.iter().any(|range| pages(&stage, range).any(|p| p == (spot, kind)));
        assert!(
            result == -i64::from(libc::EFAULT) || avoided,
            "{}: {kind:?} of {spot:?} was predicted, but without it the result is {result}",
            self.name()
        );
    }

    /// Withholds all pages that were not predicted; the call must not miss them.
    fn withhold_others(&self, expected: i64) {
        let (stage, args) = self.stage(0xa5);
        let (told, _) = self.ask(&stage, &args, Phase::Before);
        let needed: HashSet<_> = told.iter().flat_map(|range| pages(&stage, range)).collect();
        for (block, at) in stage.blocks.iter().enumerate() {
            for offset in (0..at.pages * PAGE).step_by(PAGE as usize) {
                let spot = Spot { block, offset };
                if needed.contains(&(spot, Kind::Write)) {
                    continue;
                }
                let readable = needed.contains(&(spot, Kind::Read));
                stage.protect(at.start + offset, if readable { libc::PROT_READ } else { libc::PROT_NONE });
            }
        }
        let result = self.call(&args);
        let same = if expected >= 0 { result >= 0 } else { result == expected };
        assert!(same, "{}: result {result} instead of {expected} with only the predicted pages", self.name());
    }

    fn ask(&self, stage: &Stage, args: &[u64; 6], phase: Phase) -> (Vec<KernelRange>, Coverage) {
        let mut told = Vec::new();
        let coverage = ranges(self.nr, args, phase, stage, &mut |range| told.push(range));
        (told, coverage)
    }

    fn call(&self, args: &[u64; 6]) -> i64 {
        let args = args.map(|arg| arg as usize);
        if !self.in_child {
            // SAFETY: pointers lead to blocks of the stage, or are made up to be refused.
            let result = unsafe { gate::syscall6(self.nr, args) } as i64;
            if matches!(self.nr, libc::SYS_clone | libc::SYS_clone3) {
                end_child(result);
            }
            return result;
        }
        // SAFETY: the child makes system calls only; the parent waits for it.
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                let result = gate::syscall6(self.nr, args);
                gate::exit_group(if result < 0 { -result as i32 } else { 0 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
            assert!(libc::WIFEXITED(status));
            -i64::from(libc::WEXITSTATUS(status))
        }
    }
}

/// Where `result` is that of a call that made a child: ends the child, and waits for its end.
fn end_child(result: i64) {
    if result == 0 {
        gate::exit_group(0);
    }
    if result > 0 {
        // SAFETY: no status is asked for.
        unsafe { libc::waitpid(result as i32, std::ptr::null_mut(), libc::__WALL) };
    }
}

/// A byte, or the start of a page, of the stage's blocks: the same from stage to stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Spot {
    block: usize,
    offset: u64,
}

struct Transfer {
    result: i64,
    changed: BTreeSet<Spot>,
    predicted: BTreeSet<Spot>,
    pages: Vec<(Spot, Kind)>,
}

/// Runs of bytes, for a message.
fn brief<'a>(spots: impl Iterator<Item = &'a Spot>) -> String {
    let mut runs: Vec<(usize, Range<u64>)> = Vec::new();
    for spot in spots {
        match runs.last_mut() {
            Some((block, run)) if *block == spot.block && run.end == spot.offset => run.end += 1,
            _ => runs.push((spot.block, spot.offset..spot.offset + 1)),
        }
    }
    let runs = runs.iter().map(|(block, run)| format!("{run:?} of buffer {block}"));
    runs.collect::<Vec<_>>().join(", ")
}

fn changes(old: &[(u64, Vec<u8>)], new: &[(u64, Vec<u8>)]) -> BTreeSet<Spot> {
    let mut changed = BTreeSet::new();
    for (block, ((_, old), (_, new))) in old.iter().zip(new).enumerate() {
        let differing = (0..old.len()).filter(|&i| old[i] != new[i]);
        changed.extend(differing.map(|i| Spot { block, offset: i as u64 }));
    }
    changed
}

/// The bytes of a range that lie in blocks.
fn spots(stage: &Stage, range: &KernelRange) -> Vec<Spot> {
    let within = |(block, overlap): (usize, Range<u64>)| overlap.map(move |offset| Spot { block, offset });
    overlaps(stage, range).flat_map(within).collect()
}

/// The pages of a range that lie in blocks.
fn pages<'a>(stage: &'a Stage, range: &KernelRange) -> impl Iterator<Item = (Spot, Kind)> + 'a {
    let kind = range.kind;
    overlaps(stage, range).flat_map(move |(block, overlap)| {
        let first = overlap.start / PAGE * PAGE;
        (first..overlap.end).step_by(PAGE as usize).map(move |offset| (Spot { block, offset }, kind))
    })
}

fn overlaps<'a>(stage: &'a Stage, range: &KernelRange) -> impl Iterator<Item = (usize, Range<u64>)> + 'a {
    let (start, end) = (range.addr, range.addr + range.len);
    stage.blocks.iter().enumerate().filter_map(move |(number, block)| {
        let from = start.max(block.start);
        let to = end.min(block.start + block.pages * PAGE);
        (from < to).then(|| (number, from - block.start..to - block.start))
    })
}

fn in_room(stage: &Stage, spot: Spot) -> bool {
    let block = &stage.blocks[spot.block];
    block.room.as_ref().is_some_and(|room| room.contains(&(block.start + spot.offset)))
}
