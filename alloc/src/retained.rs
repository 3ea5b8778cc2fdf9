//! Free runs whose memory was kept for the next taker, newest first, linked through their slots' entries.
//!
//! Single slots serve slab pages and small spans alike and have lists of their own; longer runs serve spans.

use crate::config::Watch;
use crate::meta::{HEAP, NO_SLOT};

/// Longer runs looked at before giving up.
const SEARCH: usize = 32;

#[derive(Clone, Copy)]
struct List {
    newest: u32,
    oldest: u32,
    /// Memory held by its members.
    bytes: usize,
}

impl List {
    const EMPTY: Self = Self { newest: NO_SLOT, oldest: NO_SLOT, bytes: 0 };

    fn push(&mut self, run: u32) {
        let entry = HEAP.slot(run);
        entry.previous.set(NO_SLOT);
        entry.next.set(self.newest);
        match self.newest {
            NO_SLOT => self.oldest = run,
            newest => HEAP.slot(newest).previous.set(run),
        }
        self.newest = run;
        self.bytes += entry.touched.get();
    }

    fn remove(&mut self, run: u32) {
        let entry = HEAP.slot(run);
        let (next, previous) = (entry.next.get(), entry.previous.get());
        match previous {
            NO_SLOT => self.newest = next,
            previous => HEAP.slot(previous).next.set(next),
        }
        match next {
            NO_SLOT => self.oldest = previous,
            next => HEAP.slot(next).previous.set(previous),
        }
        self.bytes -= entry.touched.get();
    }
}

/// All retained runs.
pub(crate) struct Retained {
    /// For each kind of watch: single slots, longer runs.
    lists: [[List; 2]; 2],
}

impl Retained {
    pub(crate) const EMPTY: Self = Self { lists: [[List::EMPTY; 2]; 2] };

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.lists.iter().flatten().map(|list| list.bytes).sum()
    }

    fn list_of(&mut self, run: u32) -> &mut List {
        let entry = HEAP.slot(run);
        &mut self.lists[entry.watch().index()][usize::from(entry.run.get() > 1)]
    }

    /// Adds a run; its entry says how long it is, how it is watched, and what it holds.
    pub(crate) fn push(&mut self, run: u32) {
        self.list_of(run).push(run);
    }

    /// Takes out a run of `slots` slots, or somewhat more; of those looked at, the one that wastes least.
    pub(crate) fn take(&mut self, slots: u32, watch: Watch) -> Option<u32> {
        let list = self.lists[watch.index()][usize::from(slots > 1)];
        let mut best = NO_SLOT;
        let mut best_slots = 2 * slots + 1;
        let mut at = list.newest;
        for _ in 0..SEARCH {
            if at == NO_SLOT || best_slots == slots {
                break;
            }
            let run = HEAP.slot(at).run.get();
            if run >= slots && run < best_slots {
                (best, best_slots) = (at, run);
            }
            at = HEAP.slot(at).next.get();
        }
        (best != NO_SLOT).then(|| {
            self.list_of(best).remove(best);
            best
        })
    }

    /// Takes out the oldest run of the list that holds most.
    pub(crate) fn take_oldest(&mut self) -> Option<u32> {
        let list = self
            .lists
            .iter()
            .flatten()
            .filter(|list| list.oldest != NO_SLOT)
            .max_by_key(|list| list.bytes)?;
        let run = list.oldest;
        self.list_of(run).remove(run);
        Some(run)
    }
}
