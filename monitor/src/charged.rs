//! What has been charged for an instruction that is about to run, in case it does not.
//!
//! # Signal context
//! Plain values of the thread's own; charging takes no lock.

use crate::access::{Access, By, Kind};
use crate::clock;
use crate::heat::{self, Sheet};
use crate::operands::access::CAPACITY;
use crate::step;

/// The accesses of one instruction, and when they were charged.
pub struct Charged {
    accesses: [Access; CAPACITY],
    count: usize,
    at_ns: u64,
}

impl Default for Charged {
    fn default() -> Self {
        let nothing = Access { addr: 0, len: 0, kind: Kind::Read, by: By::Program };
        Self { accesses: [nothing; CAPACITY], count: 0, at_ns: 0 }
    }
}

impl Charged {
    /// Charges those of the accesses that are watched; what was charged before has run. `sheet`: the thread's, where they may be counted for now.
    pub fn charge(&mut self, accesses: impl Iterator<Item = Access>, thread: u32, sheet: Option<&Sheet>) {
        (self.count, self.at_ns) = (0, 0);
        for access in accesses.filter(|access| step::is_watched(access.addr, access.len, access.kind)) {
            if !sheet.is_some_and(|sheet| sheet.count(&access, true)) {
                if self.at_ns == 0 {
                    self.at_ns = clock::now();
                }
                heat::charge(&access, thread, self.at_ns);
            }
            self.accesses[self.count] = access;
            self.count += 1;
        }
    }

    /// The instruction has not run after all. `sheet` is the one that the charge was given.
    pub fn take_back(&mut self, thread: u32, sheet: Option<&Sheet>) {
        for access in &self.accesses[..self.count] {
            if !sheet.is_some_and(|sheet| sheet.count(access, false)) {
                heat::uncharge(access, thread, self.at_ns);
            }
        }
        self.count = 0;
    }
}
