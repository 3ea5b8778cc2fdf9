//! Call stacks to small numbers: a hash set that only grows, up to a fixed size.
//!
//! Open addressing in plain mappings. Look-ups take no lock: a slot of the table is published (Release) after the stack
//! that it names is complete, and is never changed again. Insertions share one lock. Probing is linear; the table is at
//! most half full.
//!
//! # Signal context
//! `get` may be called in handlers; `intern` may not, for it takes a lock.

use super::freeze::Freeze;
use super::region::{Region, Zeroed};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use thermalloc_sys::lock::Lock;
use thermalloc_sys::mem::Errno;

/// Number of an allocation site, which is one call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

impl SiteId {
    /// Stands for stacks that are unknown or found no room.
    pub const OTHER: Self = Self(0);
}

/// Sites at most, site 0 included.
pub(super) const SITES: usize = 1 << 16;
/// Frames of all stacks together at most.
const FRAMES: usize = SITES * 16;

/// Where a site's frames are.
struct Stack {
    hash: AtomicU64,
    first: AtomicU32,
    len: AtomicU32,
}

// SAFETY: atomic integers.
#[allow(unsafe_code)]
unsafe impl Zeroed for Stack {
    fn zero(&self) {
        self.hash.store(0, Relaxed);
        self.first.store(0, Relaxed);
        self.len.store(0, Relaxed);
    }
}

/// The set.
pub(super) struct Stacks {
    /// Site ids by hash; 0: free.
    table: Region<AtomicU32>,
    stacks: Region<Stack>,
    frames: Region<AtomicU64>,
    /// Frames used.
    used: Lock<usize>,
    /// Sites used, site 0 included. Changes under `used`.
    sites: AtomicU32,
    overflows: AtomicU64,
    max_sites: usize,
    max_frames: usize,
}

impl Stacks {
    pub fn new() -> Result<Self, Errno> {
        Self::bounded(SITES, FRAMES)
    }

    fn bounded(max_sites: usize, max_frames: usize) -> Result<Self, Errno> {
        Ok(Self {
            table: Region::new((max_sites * 2).next_power_of_two())?,
            stacks: Region::new(max_sites)?,
            frames: Region::new(max_frames)?,
            used: Lock::new(0),
            sites: AtomicU32::new(1),
            overflows: AtomicU64::new(0),
            max_sites,
            max_frames,
        })
    }

    /// The site of a stack, innermost caller first. An empty stack is [`SiteId::OTHER`].
    pub fn intern(&self, frames: &[u64]) -> SiteId {
        if frames.is_empty() {
            return SiteId::OTHER;
        }
        let hash = hash(frames);
        match self.find(hash, frames) {
            Ok(site) => site,
            Err(_) => self.insert(hash, frames),
        }
    }

    /// Sites in use: ids are below this number.
    pub fn len(&self) -> usize {
        // Acquire pairs with the Release of `insert`: the stacks of these sites are complete.
        self.sites.load(Acquire) as usize
    }

    /// The frames of a site, innermost caller first.
    pub fn get(&self, site: SiteId) -> impl Iterator<Item = u64> {
        let frames = self.stacks.get(site.0 as usize).map_or(&[][..], |stack| self.frames_of(stack));
        frames.iter().map(|frame| frame.load(Relaxed))
    }

    /// Calls of `intern` that found no room.
    pub fn overflows(&self) -> u64 {
        self.overflows.load(Relaxed)
    }

    fn frames_of(&self, stack: &Stack) -> &[AtomicU64] {
        let first = stack.first.load(Relaxed) as usize;
        self.frames.slice(first..first + stack.len.load(Relaxed) as usize)
    }

    /// The site, or the free slot of the table where it belongs.
    fn find(&self, hash: u64, frames: &[u64]) -> Result<SiteId, &AtomicU32> {
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.table.slice(at..at + 1)[0];
            // Acquire pairs with the Release of `insert`: the stack that the slot names is complete.
            let id = slot.load(Acquire);
            if id == 0 {
                return Err(slot);
            }
            if self.stacks.get(id as usize).is_some_and(|stack| self.equals(stack, hash, frames)) {
                return Ok(SiteId(id));
            }
            at = (at + 1) & mask;
        }
    }

    fn equals(&self, stack: &Stack, hash: u64, frames: &[u64]) -> bool {
        stack.hash.load(Relaxed) == hash
            && stack.len.load(Relaxed) as usize == frames.len()
            && self.frames_of(stack).iter().zip(frames).all(|(ours, theirs)| ours.load(Relaxed) == *theirs)
    }

    #[cold]
    fn insert(&self, hash: u64, frames: &[u64]) -> SiteId {
        let mut used = self.used.lock();
        let slot = match self.find(hash, frames) {
            Ok(site) => return site,
            Err(slot) => slot,
        };
        let id = self.sites.load(Relaxed);
        let room = self.frames.slice(*used..*used + frames.len());
        let has_room = (id as usize) < self.max_sites && *used + frames.len() <= self.max_frames;
        let Some(stack) = self.stacks.get(id as usize).filter(|_| has_room) else {
            self.overflows.fetch_add(1, Relaxed);
            return SiteId::OTHER;
        };
        for (to, from) in room.iter().zip(frames) {
            to.store(*from, Relaxed);
        }
        stack.hash.store(hash, Relaxed);
        stack.first.store(*used as u32, Relaxed);
        stack.len.store(frames.len() as u32, Relaxed);
        *used += frames.len();
        // Release pairs with the Acquire of `find` and of `len`.
        slot.store(id, Release);
        self.sites.store(id + 1, Release);
        SiteId(id)
    }
}

impl Freeze for Stacks {
    fn freeze(&self) {
        self.used.freeze();
    }

    fn thaw(&self) {
        self.used.thaw();
    }
}

/// Multiplies and folds, word by word, as wyhash does (Wang Yi, public domain).
fn hash(frames: &[u64]) -> u64 {
    frames.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, frame| {
        let product = u128::from(hash ^ frame) * 0xa076_1d64_78bd_642f;
        (product as u64 ^ (product >> 64) as u64).wrapping_add(0xe703_7ed1_a0b4_28db)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn equal_stacks_and_only_these_share_a_site(
            stacks in proptest::collection::vec(proptest::collection::vec(0u64..4, 0..5), 0..200),
        ) {
            let set = Stacks::bounded(4096, 65536).unwrap();
            let mut model = HashMap::new();
            for stack in stacks {
                let site = set.intern(&stack);
                prop_assert_eq!(*model.entry(stack.clone()).or_insert(site), site);
                prop_assert_eq!(set.get(site).collect::<Vec<_>>(), stack);
            }
            let mut sites: Vec<_> = model.values().collect();
            sites.sort();
            sites.dedup();
            prop_assert_eq!(sites.len(), model.len());
        }
    }

    #[test]
    fn what_finds_no_room_is_other_and_counted() {
        let few_sites = Stacks::bounded(4, 100).unwrap();
        let sites: Vec<_> = (0..6).map(|ip| few_sites.intern(&[ip])).collect();
        assert_eq!(sites, [1, 2, 3, 0, 0, 0].map(SiteId));
        assert_eq!(few_sites.intern(&[2]), SiteId(3));
        assert_eq!((few_sites.overflows(), few_sites.len()), (3, 4));

        let few_frames = Stacks::bounded(100, 5).unwrap();
        assert_eq!(few_frames.intern(&[1, 2, 3]), SiteId(1));
        assert_eq!(few_frames.intern(&[4, 5, 6]), SiteId::OTHER);
        assert_eq!(few_frames.intern(&[4, 5]), SiteId(2));
        assert_eq!(few_frames.overflows(), 1);
    }

    #[test]
    fn threads_agree_on_sites() {
        let set = Stacks::bounded(2048, 65536).unwrap();
        let sites = |()| (0..1000u64).map(|ip| set.intern(&[ip % 500, 7])).collect::<Vec<_>>();
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| sites(()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(set.len(), 501);
    }
}
