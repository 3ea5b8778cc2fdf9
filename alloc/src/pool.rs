//! The pool of slots: hands out runs of slots as slab pages and spans, keeps the memory of freed runs for a
//! while, and gives it back beyond a bound.
//!
//! Watched runs grow from the low end of the arena, unwatched ones from the high end, so that protecting the
//! watched part takes few mappings. Within its part a run lies as far out as it can.
//!
//! # Safety
//! A run in the pool is nobody else's, which is what giving back its memory asks for.
#![allow(unsafe_code)]

use crate::arena;
use crate::cell::Word32;
use crate::config::Watch;
use crate::hooks::hooks;
use crate::huge;
use crate::meta::{ANNOUNCED, HEAP, Kind, NO_BIN, ODD, SLABBED, SLOT_BYTES, SLOT_SHIFT, STALE};
use crate::retained::Retained;
use crate::runs::{self, Outer};
use crate::window;
use core::ops::Range;
use thermalloc_sys::lock::{Guard, Lock};
use thermalloc_sys::mem::PAGE;

/// Free memory that is always kept, in bytes: that of freed runs, and what a span inherited behind its end.
const KEEP: usize = 96 << 20;
/// Free memory that is kept even while the heap grows beyond its peak.
const KEEP_GROWING: usize = 64 << 20;
/// Slots committed at a time, at least.
const COMMIT: u32 = 32;
/// Memory behind a shrunken span's end that is worth a system call, in bytes.
const TAIL: usize = 64 << 10;

/// Slots from each end, by watch, that are in use or were; written under the pool's lock.
static USED: [Word32; 2] = [const { Word32::new(0) }; 2];

/// The pool's state.
pub(crate) struct Pool {
    committed: [u32; 2],
    /// Free slots among the used ones.
    free: [u32; 2],
    /// No stretch of this many free slots is left among the used ones.
    hopeless: [u32; 2],
    retained: Retained,
    /// Bytes of all spans' tails.
    tails: usize,
    /// Bytes of slab pages and spans.
    active: usize,
    peak: usize,
}

static POOL: Lock<Pool> = Lock::new(Pool {
    committed: [0; 2],
    free: [0; 2],
    hopeless: [u32::MAX; 2],
    retained: Retained::EMPTY,
    tails: 0,
    active: 0,
    peak: 0,
});

/// What a run is wanted for.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) slots: u32,
    /// Alignment of the run's address in bytes, a power of two.
    pub(crate) align: usize,
    pub(crate) watch: Watch,
    /// Bytes of the run that will be used.
    pub(crate) bytes: usize,
}

/// Takes a run out of the pool. Its entry's `touched` says how much of it may hold old data. `None`: the
/// arena is full.
pub(crate) fn take(request: &Request) -> Option<u32> {
    let mut pool = POOL.lock();
    let run = pool.take(request)?;
    drop(pool);
    announce(run);
    Some(run)
}

/// Gives a run back to the pool. The caller has removed every trace of objects from its entry but `touched`.
pub(crate) fn release(run: u32) {
    POOL.lock().release(run);
}

/// Gives a span another length, at most that of its slots. Memory behind the end of one that shrinks is given
/// back.
pub(crate) fn resize(span: u32, bytes: usize) {
    POOL.lock().resize(span, bytes);
}

/// Gives back the memory of all retained runs. Returns whether there was any.
pub(crate) fn purge_all() -> bool {
    let mut pool = POOL.lock();
    let any = pool.retained.bytes() > 0;
    pool.purge_to(0);
    any
}

/// Retained, active and peak bytes.
pub(crate) fn usage() -> (usize, usize, usize) {
    let pool = POOL.lock();
    (pool.spare(), pool.active, pool.peak)
}

/// The slots that are or were in use: the unwatched ones, the watched ones.
pub(crate) fn used_slots() -> [Range<u32>; 2] {
    let all = HEAP.slots();
    [all - USED[0].get()..all, 0..USED[1].get()]
}

/// Holds the pool's lock until [`unlock`].
pub(crate) fn lock() {
    core::mem::forget(POOL.lock());
}

/// # Safety
/// The calling thread (or its parent before fork) called [`lock`].
pub(crate) unsafe fn unlock() {
    // SAFETY: forwarded to the caller.
    unsafe { POOL.unlock() };
}

/// The pool, for the checker.
pub(crate) fn guard() -> Guard<'static, Pool> {
    POOL.lock()
}

/// Tells newly installed hooks about everything watched.
pub(crate) fn announce_all() {
    let _pool = POOL.lock();
    let [_, watched] = used_slots();
    let mut slot = watched.start;
    while slot < watched.end {
        let entry = HEAP.slot(slot);
        if entry.kind() == Kind::Free {
            slot += 1;
        } else {
            announce(slot);
            slot += entry.run.get();
        }
    }
}

/// Tells the hooks that a watched run is in use, unless they know.
pub(crate) fn announce(run: u32) {
    let entry = HEAP.slot(run);
    if entry.watch() == Watch::Watched
        && !entry.has(ANNOUNCED)
        && let Some(hooks) = hooks()
    {
        entry.raise(ANNOUNCED);
        (hooks.committed)(addresses(run));
    }
}

/// A run's addresses in the program view.
pub(crate) fn addresses(run: u32) -> Range<usize> {
    let start = HEAP.slot_addr(run);
    start..start + ((HEAP.slot(run).run.get() as usize) << SLOT_SHIFT)
}

impl Pool {
    /// Free slots within the used ones, by watch; for the checker.
    pub(crate) fn free_slots(&self) -> [u32; 2] {
        self.free
    }

    /// Active and retained bytes, and bytes in tails; for the checker.
    pub(crate) fn bytes(&self) -> (usize, usize, usize) {
        (self.active, self.retained.bytes(), self.tails)
    }

    fn take(&mut self, request: &Request) -> Option<u32> {
        let run = match self.take_retained(request) {
            Some(run) => run,
            None => self.carve(request).or_else(|| {
                self.purge_to(0);
                self.carve(request)
            })?,
        };
        let entry = HEAP.slot(run);
        entry.bytes.set(request.bytes);
        entry.set_kind(request.kind);
        huge::prefer(run, 0..request.bytes);
        self.activate(request.bytes);
        Some(run)
    }

    fn activate(&mut self, bytes: usize) {
        self.active += bytes;
        self.peak = self.peak.max(self.active);
    }

    fn take_retained(&mut self, request: &Request) -> Option<u32> {
        if request.align > SLOT_BYTES {
            return None;
        }
        let run = self.retained.take(request.slots, request.watch)?;
        let entry = HEAP.slot(run);
        let (touched, wanted) = (entry.touched.get(), request.bytes.next_multiple_of(PAGE));
        let tail = touched.saturating_sub(wanted);
        let spare = self.spare() + tail > self.bound(KEEP);
        // SAFETY: a run of the pool.
        if spare && tail > 0 && unsafe { arena::give_back(HEAP.slot_addr(run) + wanted, tail) } {
            entry.touched.set(wanted);
        }
        self.set_tail(run, wanted);
        Some(run)
    }

    /// Free memory that is kept: freed runs and tails.
    fn spare(&self) -> usize {
        self.retained.bytes() + self.tails
    }

    /// Counts what a span that ends after `bytes` has behind its end.
    fn set_tail(&mut self, run: u32, bytes: usize) {
        let entry = HEAP.slot(run);
        let tail = entry.touched.get().saturating_sub(bytes);
        self.tails = self.tails - entry.tail.get() + tail;
        entry.tail.set(tail);
    }

    fn resize(&mut self, span: u32, bytes: usize) {
        let entry = HEAP.slot(span);
        let before = entry.bytes.get();
        let touched = entry.touched.get();
        // SAFETY: behind the object's new end, and the caller gave up what was there.
        let trimmed = touched >= bytes + TAIL
            && bytes < before
            && unsafe { arena::give_back(HEAP.slot_addr(span) + bytes, touched - bytes) };
        entry.touched.set(if trimmed { bytes } else { touched.max(bytes) });
        entry.bytes.set(bytes);
        huge::prefer(span, before..bytes);
        self.set_tail(span, bytes);
        self.active -= before;
        self.activate(bytes);
    }

    /// Takes a run of slots that hold no memory.
    fn carve(&mut self, request: &Request) -> Option<u32> {
        if self.active + self.spare() + request.bytes > self.peak {
            self.purge_to(self.bound(KEEP_GROWING));
        }
        let huge = huge::wanted(request.watch, request.bytes).then_some(huge::HUGE);
        let aligned = huge
            .and_then(|huge| self.place(request, request.align.max(huge)))
            .or_else(|| self.place(request, request.align.max(SLOT_BYTES)))?;
        self.free[request.watch.index()] -= request.slots;
        for slot in aligned..aligned + request.slots {
            let entry = HEAP.slot(slot);
            entry.set_kind(Kind::Tail);
            entry.set_watch(request.watch);
            entry.head.set(aligned);
            HEAP.bin((slot as usize) << SLOT_SHIFT).set(NO_BIN);
        }
        let entry = HEAP.slot(aligned);
        entry.run.set(request.slots);
        entry.touched.set(0);
        entry.tail.set(0);
        entry.lower(ANNOUNCED | STALE | ODD | SLABBED);
        Some(aligned)
    }

    /// The first slot of room for a request at an alignment.
    fn place(&mut self, request: &Request, align: usize) -> Option<u32> {
        let padding = u32::try_from(align >> SLOT_SHIFT).ok()? - 1;
        let first = self.find(request.slots.checked_add(padding)?, request.watch)?;
        Some(HEAP.slot_of(HEAP.slot_addr(first).next_multiple_of(align)))
    }

    /// First of `count` free slots, among the used ones or behind them; they count as used and free
    /// afterwards.
    fn find(&mut self, count: u32, watch: Watch) -> Option<u32> {
        let w = watch.index();
        if count <= self.free[w] && count < self.hopeless[w] {
            let outer = if watch == Watch::Watched { Outer::Low } else { Outer::High };
            let used = |slot| {
                let entry = HEAP.slot(slot);
                match entry.kind() {
                    Kind::Free => None,
                    Kind::Tail => {
                        let head = entry.head.get();
                        Some(head..head + HEAP.slot(head).run.get())
                    }
                    _ => Some(slot..slot + entry.run.get()),
                }
            };
            let found = runs::find(used_slots()[w].clone(), outer, count, used);
            if found.is_some() {
                return found;
            }
            self.hopeless[w] = count;
        }
        self.extend(count, watch)
    }

    /// Moves the end of a part by `count` slots.
    fn extend(&mut self, count: u32, watch: Watch) -> Option<u32> {
        let w = watch.index();
        let all = HEAP.slots();
        if count > all - USED[0].get() - USED[1].get() {
            return None;
        }
        let used = USED[w].get() + count;
        if used > self.committed[w] {
            let step = COMMIT.max(self.committed[w] / 8);
            let room = all - self.committed[1 - w];
            let target = (self.committed[w] + step).max(used).min(room.max(used));
            let more = self.committed[w]..target;
            let slots = if watch == Watch::Watched { more } else { all - more.end..all - more.start };
            arena::commit(slots).ok()?;
            self.committed[w] = target;
        }
        USED[w].set(used);
        self.free[w] += count;
        Some(if watch == Watch::Watched { used - count } else { all - used })
    }

    fn release(&mut self, run: u32) {
        let entry = HEAP.slot(run);
        self.active -= entry.bytes.get();
        self.tails -= entry.tail.get();
        entry.tail.set(0);
        entry.set_kind(Kind::Retained);
        HEAP.bin((run as usize) << SLOT_SHIFT).set(NO_BIN);
        if entry.touched.get() == 0 {
            self.discard(run);
            return;
        }
        entry.raise(STALE);
        self.retained.push(run);
        self.purge_to(self.bound(KEEP));
    }

    fn bound(&self, keep: usize) -> usize {
        keep.max(self.peak / 8)
    }

    fn purge_to(&mut self, bound: usize) {
        while self.spare() > bound {
            let Some(run) = self.retained.take_oldest() else { return };
            self.discard(run);
        }
    }

    /// Gives a run's memory back and makes its slots free.
    fn discard(&mut self, run: u32) {
        let entry = HEAP.slot(run);
        let range = addresses(run);
        if entry.has(SLABBED) {
            arena::forget_states(run);
        }
        let touched = entry.touched.get();
        // SAFETY: a run of the pool.
        let clean = unsafe {
            match entry.has(ODD) {
                true => arena::map_afresh(range.start, range.len()),
                false => touched == 0 || arena::give_back(range.start, touched),
            }
        };
        if !clean {
            // Locked memory, for example. What is handed out as fresh must read as zero.
            // SAFETY: a run of the pool.
            unsafe { window::clear(range.start, touched) };
        }
        if entry.has(ANNOUNCED)
            && let Some(hooks) = hooks()
        {
            (hooks.released)(range);
        }
        let (slots, w) = (entry.run.get(), entry.watch().index());
        for slot in run..run + slots {
            HEAP.slot(slot).set_kind(Kind::Free);
        }
        self.free[w] += slots;
        self.hopeless[w] = u32::MAX;
        self.retreat(w);
    }

    /// Moves the end of a part back over free slots, so that the other part can have them.
    fn retreat(&mut self, w: usize) {
        while USED[w].get() > 0 {
            let [unwatched, watched] = used_slots();
            let last = if w == Watch::Watched.index() { watched.end - 1 } else { unwatched.start };
            if HEAP.slot(last).kind() != Kind::Free {
                break;
            }
            USED[w].sub(1);
            self.free[w] -= 1;
        }
    }
}
