//! Accesses of each site over time: 64 buckets, whose interval doubles whenever time runs out.
//!
//! A charge passes the *gate*, a word that counts the threads inside. To double, a thread closes the gate (one bit of the
//! word), waits until nobody is inside, adds neighbouring buckets of all rows, and opens it again. So in all but a
//! few dozen moments of a program's life a charge costs three atomic additions, and no count is ever lost.
//!
//! # Signal context
//! `charge` is called in handlers. It may wait for other threads that are inside, each for a few instructions, so a thread
//! inside must not be interrupted by another charge: handlers block asynchronous signals.

use super::region::{Region, Zeroed};
use super::stacks::SiteId;
use crate::access::Kind;
use crate::counter::Counter;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use thermalloc_sys::gate;
use thermalloc_sys::mem::Errno;

/// Buckets of a row.
pub(super) const BUCKETS: usize = 64;
/// First interval in ns.
const SHORTEST: u64 = 1_000_000;
/// Doublings at most: an interval of 35 years.
const DOUBLINGS: u32 = 40;
/// The gate's bit: closed.
const CLOSED: u32 = 1 << 31;

/// Reads and writes within one interval.
struct Bucket {
    reads: AtomicU64,
    writes: AtomicU64,
}

// SAFETY: atomic integers.
#[allow(unsafe_code)]
unsafe impl Zeroed for Bucket {
    fn zero(&self) {
        self.reads.store(0, Relaxed);
        self.writes.store(0, Relaxed);
    }
}

/// Rows of all sites.
pub(super) struct Timeline {
    buckets: Region<Bucket>,
    gate: AtomicU32,
    doublings: AtomicU32,
    /// One more than the highest site charged.
    rows: AtomicU32,
    /// One more than the latest bucket charged at the present interval.
    reached: AtomicU32,
}

/// What the timeline shows of one site.
pub(super) struct Row {
    pub reads: [u64; BUCKETS],
    pub writes: [u64; BUCKETS],
}

impl Timeline {
    pub fn new(sites: usize) -> Result<Self, Errno> {
        Ok(Self {
            buckets: Region::new(sites * BUCKETS)?,
            gate: AtomicU32::new(0),
            doublings: AtomicU32::new(0),
            rows: AtomicU32::new(0),
            reached: AtomicU32::new(0),
        })
    }

    /// Counts accesses to the site's objects.
    pub fn charge(&self, site: SiteId, kind: Kind, count: u64, now_ns: u64) {
        loop {
            self.enter();
            let doublings = self.doublings.load(Relaxed);
            let bucket = now_ns / (SHORTEST << doublings);
            if bucket < BUCKETS as u64 || doublings == DOUBLINGS {
                self.add(site, kind, count, bucket.min(BUCKETS as u64 - 1) as usize);
                self.leave();
                return;
            }
            self.leave();
            self.double(doublings);
        }
    }

    /// Length of an interval in ns, how many have begun, and the rows of some sites, all at one interval.
    ///
    /// Stays outside of the gate, so that a charge may interrupt it: reads again if the interval doubled meanwhile.
    pub fn rows(&self, sites: &[SiteId]) -> (u64, usize, Vec<Row>) {
        loop {
            wait_while(|| self.gate.load(Relaxed) & CLOSED != 0);
            // Acquire pairs with the Release of `double`.
            let doublings = self.doublings.load(Acquire);
            let rows = sites.iter().map(|site| self.row(*site)).collect();
            let reached = self.reached.load(Relaxed) as usize;
            // Keeps the loads above before those below. A thread that doubles closes the gate first.
            fence(Acquire);
            if self.gate.load(Relaxed) & CLOSED == 0 && self.doublings.load(Relaxed) == doublings {
                return (SHORTEST << doublings, reached, rows);
            }
        }
    }

    fn row(&self, site: SiteId) -> Row {
        let mut row = Row { reads: [0; BUCKETS], writes: [0; BUCKETS] };
        for (index, bucket) in self.buckets_of(site.0 as usize).iter().enumerate() {
            row.reads[index] = bucket.reads.load(Relaxed);
            row.writes[index] = bucket.writes.load(Relaxed);
        }
        row
    }

    /// In the child of a fork: empty, and nobody is inside.
    pub fn forked(&self) {
        let rows = self.rows.swap(0, Relaxed) as usize;
        self.buckets.clear(0..rows * BUCKETS);
        self.doublings.store(0, Relaxed);
        self.reached.store(0, Relaxed);
        self.gate.store(0, Release);
    }

    fn add(&self, site: SiteId, kind: Kind, count: u64, bucket: usize) {
        for (mark, value) in [(&self.rows, site.0 + 1), (&self.reached, bucket as u32 + 1)] {
            if mark.load(Relaxed) < value {
                mark.fetch_max(value, Relaxed);
            }
        }
        if let Some(bucket) = self.buckets_of(site.0 as usize).get(bucket) {
            let counter = if kind == Kind::Read { &bucket.reads } else { &bucket.writes };
            counter.plus(count);
        }
    }

    fn buckets_of(&self, site: usize) -> &[Bucket] {
        self.buckets.slice(site * BUCKETS..(site + 1) * BUCKETS)
    }

    fn enter(&self) {
        // Acquire pairs with the Release of `double`: the rows are at the interval that is read next.
        while self.gate.plus(1) & CLOSED != 0 {
            self.leave();
            wait_while(|| self.gate.load(Relaxed) & CLOSED != 0);
        }
    }

    fn leave(&self) {
        // Release pairs with the Acquire of `double`: what was counted inside is seen there.
        self.gate.minus(1);
    }

    /// Doubles the interval, unless another thread has.
    #[cold]
    fn double(&self, seen: u32) {
        if self.gate.fetch_or(CLOSED, AcqRel) & CLOSED != 0 {
            return; // Another thread is at it; `enter` waits for it.
        }
        wait_while(|| self.gate.load(Acquire) != CLOSED);
        if self.doublings.load(Relaxed) == seen {
            for row in 0..self.rows.load(Relaxed) as usize {
                fold(self.buckets_of(row));
            }
            self.reached.store(self.reached.load(Relaxed).div_ceil(2), Relaxed);
            // Release pairs with the Acquire of `rows`.
            self.doublings.store(seen + 1, Release);
        }
        // Release pairs with the Acquire of `enter`.
        self.gate.fetch_and(!CLOSED, Release);
    }
}

/// Adds neighbours: bucket i becomes the sum of 2i and 2i + 1.
fn fold(row: &[Bucket]) {
    for (index, pair) in row.chunks(2).enumerate() {
        let take = |counter: fn(&Bucket) -> &AtomicU64| {
            pair.iter().map(|b| counter(b).swap(0, Relaxed)).sum::<u64>()
        };
        let (reads, writes) = (take(|bucket| &bucket.reads), take(|bucket| &bucket.writes));
        // What is zero stays untouched.
        if reads | writes != 0 {
            row[index].reads.store(reads, Relaxed);
            row[index].writes.store(writes, Relaxed);
        }
    }
}

/// Spins, then lets others run.
fn wait_while(condition: impl Fn() -> bool) {
    let mut spins = 0u32;
    while condition() {
        spins += 1;
        if spins < 100 {
            std::hint::spin_loop();
        } else {
            yield_now();
        }
    }
}

#[allow(unsafe_code)]
fn yield_now() {
    // SAFETY: sched_yield takes no argument.
    unsafe { gate::syscall(libc::SYS_sched_yield, &[]) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sums(timeline: &Timeline, site: u32) -> (u64, u64) {
        let row = &timeline.rows(&[SiteId(site)]).2[0];
        (row.reads.iter().sum(), row.writes.iter().sum())
    }

    proptest! {
        #[test]
        fn buckets_are_those_of_the_final_interval(
            charges in proptest::collection::vec((0u32..4, any::<bool>(), 0u64..1 << 42), 0..200),
        ) {
            let timeline = Timeline::new(4).unwrap();
            for &(site, write, now) in &charges {
                let kind = if write { Kind::Write } else { Kind::Read };
                timeline.charge(SiteId(site), kind, 1, now);
            }
            let sites: Vec<_> = (0..4).map(SiteId).collect();
            let (interval, reached, rows) = timeline.rows(&sites);
            prop_assert!(reached <= BUCKETS);
            for (site, row) in rows.iter().enumerate() {
                for bucket in 0..BUCKETS {
                    let count = |write| charges.iter().filter(|charge| {
                        charge.0 as usize == site && charge.1 == write && charge.2 / interval == bucket as u64
                    }).count() as u64;
                    prop_assert_eq!(row.reads[bucket], count(false));
                    prop_assert_eq!(row.writes[bucket], count(true));
                    prop_assert!(bucket < reached || count(false) + count(true) == 0);
                }
            }
        }
    }

    #[test]
    fn no_count_is_lost_while_threads_charge_and_the_interval_doubles() {
        let timeline = Timeline::new(2).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let timeline = &timeline;
                scope.spawn(move || {
                    for step in 0..20_000u64 {
                        // The threads' clocks run apart, and pass some ten doublings.
                        let now = step * (thread + 1) * 1_000_000;
                        timeline.charge(SiteId((step % 2) as u32), Kind::Read, 1, now);
                        timeline.charge(SiteId(1), Kind::Write, 1, now);
                    }
                });
            }
        });
        assert_eq!(sums(&timeline, 0), (40_000, 0));
        assert_eq!(sums(&timeline, 1), (40_000, 80_000));
        assert!(timeline.doublings.load(Relaxed) > 5);
    }

    #[test]
    fn the_end_of_time_fits() {
        let timeline = Timeline::new(1).unwrap();
        timeline.charge(SiteId(0), Kind::Read, 1, u64::MAX);
        timeline.charge(SiteId(0), Kind::Read, 1, 0);
        assert_eq!(sums(&timeline, 0), (2, 0));
        timeline.forked();
        assert_eq!(sums(&timeline, 0), (0, 0));
        assert_eq!(timeline.rows(&[]).1, 0);
        assert_eq!(timeline.rows(&[]).0, SHORTEST);
    }
}
