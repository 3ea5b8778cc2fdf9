//! The tables against a memory that is made up.

mod descriptors;
mod hostile;
mod nested;

use super::{Coverage, KernelRange, Kind, Memory, Phase, ranges};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Bytes at addresses; the rest of their pages is filled, other pages cannot be read.
#[derive(Default)]
struct Fake {
    bytes: BTreeMap<u64, u8>,
    own_pid: i32,
    reads: RefCell<u32>,
}

impl Fake {
    fn with(mut self, addr: u64, bytes: &[u8]) -> Self {
        self.bytes.extend((addr..).zip(bytes.iter().copied()));
        self
    }

    fn words(self, addr: u64, words: &[u64]) -> Self {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.with(addr, &bytes)
    }

    fn zeros(self, addr: u64, len: usize) -> Self {
        self.with(addr, &vec![0; len])
    }
}

impl Memory for Fake {
    fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        *self.reads.borrow_mut() += 1;
        (addr..).zip(into).all(|(at, byte)| {
            *byte = self.bytes.get(&at).copied().unwrap_or(0xee);
            let page = at & !4095;
            self.bytes.range(page..page + 4096).next().is_some()
        })
    }

    fn own_pid(&self) -> i32 {
        self.own_pid
    }
}

type Told = Vec<(Kind, u64, u64)>;

fn ask(nr: i64, args: &[u64], phase: Phase, memory: &dyn Memory) -> (Told, Coverage) {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    let mut told = Vec::new();
    let mut visit = |range: KernelRange| told.push((range.kind, range.addr, range.len));
    let coverage = ranges(nr, &all, phase, memory, &mut visit);
    (told, coverage)
}

/// What is told before a call; its coverage must be complete.
fn before(nr: i64, args: &[u64], memory: &Fake) -> Told {
    let (told, coverage) = ask(nr, args, Phase::Before, memory);
    assert_eq!(coverage, Coverage::Complete);
    told
}

/// What is told after a call.
fn after(nr: i64, args: &[u64], result: i64, memory: &Fake) -> Told {
    ask(nr, args, Phase::After { result }, memory).0
}
