//! What the sheets still hold of an object that dies, summed up: the owner is known, so nothing need be looked up access by
//! access, and counters by offset are not touched for an object whose heat nobody will keep.

use super::cell::{GRANULE, Tally};
use super::counts::Counts;
use super::record::{Life, bit_of};
use super::shadow::Shadow;
use crate::access::Kind;
use arrayvec::ArrayVec;
use thermalloc_alloc::Object;

/// Tallies kept at most; what is beyond is charged one by one.
const MOST: usize = 48;

/// Sums of tallies of one object.
pub(super) struct Dying {
    tallies: ArrayVec<Tally, MOST>,
    counts: Counts,
    threads: u64,
}

impl Dying {
    pub fn new() -> Self {
        Self { tallies: ArrayVec::new(), counts: Counts::default(), threads: 0 }
    }

    /// Takes a tally that concerns this object alone; false if it may concern another, or there is no room.
    pub fn take(&mut self, object: &Object, tally: &Tally, thread: u32) -> bool {
        let access = &tally.access;
        // Its last piece begins in the chunk, whatever its place in the granule.
        let beyond = access.addr + access.len.next_multiple_of(GRANULE);
        let is_inside = access.addr >= object.base && beyond <= object.base + object.capacity;
        if !is_inside || self.tallies.try_push(*tally).is_err() {
            return false;
        }
        self.counts.add(access.kind, tally.count, tally.bytes(access.len as u64));
        self.threads |= bit_of(thread);
        true
    }

    /// Adds the accesses to what the record says.
    pub fn add_to(&self, life: &mut Life, now_ns: u64) {
        if !self.tallies.is_empty() {
            life.add_all(&self.counts, self.threads, now_ns.max(1));
        }
    }

    /// Charges the counters by offset.
    pub fn charge(&self, object: &Object, shadow: &Shadow) {
        for tally in &self.tallies {
            let access = &tally.access;
            shadow.charge(object, access.addr - object.base, access.len, access.kind, tally.count);
        }
    }

    /// Accesses and bytes of each kind that there is any of.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, u64, u64)> {
        let Counts { reads, writes, read_bytes, write_bytes } = self.counts;
        let kinds = [(Kind::Read, reads, read_bytes), (Kind::Write, writes, write_bytes)];
        kinds.into_iter().filter(|(_, accesses, bytes)| (accesses | bytes) != 0)
    }
}
