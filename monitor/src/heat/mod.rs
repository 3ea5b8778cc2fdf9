//! The accounting: charges accesses to objects, folds the dead into their sites, builds the report.
//!
//! Modules, lowest first:
//! - `region`: huge sparse tables; `freeze`: locks across fork; `coarsen`: shorter arrays, same sums.
//! - `counts`: reads and writes; `stacks`: call stacks to site ids.
//! - `record`: what is known of the object in a chunk; `shadow`: heat by offset.
//! - `sites`, `spread`, `timeline`, `hottest`: what remains of objects.
//! - `objects`: where objects are. This module: the life of an object. `report`, `output`: heat.json.
//!
//! Sums are conserved: all sites' reads and writes (live objects included) and the unattributed ones are the totals',
//! exactly, whatever threads do at the same time.
//!
//! # Signal context
//! [`charge`] and [`is_on`] may be called in handlers, all else may not: it takes locks and uses the private heap.

mod coarsen;
mod counts;
mod freeze;
mod hottest;
mod objects;
mod output;
mod record;
mod region;
mod report;
mod shadow;
mod sites;
mod spread;
mod stacks;
#[cfg(test)]
mod tests;
mod timeline;

pub use output::{WriteError, write_report};
pub use report::{Header, Locate};
pub use stacks::SiteId;

use crate::access::{Access, Kind};
use crate::totals::{TOTALS, Totals};
use counts::Counts;
use freeze::Freeze;
use hottest::Hottest;
use objects::{Allocator, Objects, split};
use record::{Life, Records};
use shadow::Shadow;
use sites::Sites;
use spread::Spreads;
use stacks::Stacks;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use thermalloc_alloc::Object;
use thermalloc_format::Report;
use thermalloc_sys::mem::Errno;
use timeline::Timeline;

/// Bytes of a slot of the arena.
const SLOT: usize = 1 << 20;
/// Chunks of a slot at most.
const CHUNKS: usize = 1 << 16;
/// Significant decimal digits of the distributions over a site's and over a class's objects.
const SITE_DIGITS: u8 = 1;
const CLASS_DIGITS: u8 = 2;
/// Entries of an object's heat arrays at most.
const ENTRIES: usize = 4096;

/// What the accounting may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of an object that share a pair of counters: a power of two from 16 to 4096.
    pub granule: usize,
    /// Dead objects kept at most.
    pub dead_objects: usize,
    /// Bytes of memory for them at most.
    pub dead_bytes: usize,
    /// Objects in a report at most.
    pub report_objects: usize,
    /// Entries of all heat arrays in a report: beyond these, objects get 64 entries each.
    pub report_entries: usize,
}

impl Default for Config {
    /// Granule 16, 20,000 dead objects in 64 MiB, 100,000 objects with 4 Mi entries in a report.
    fn default() -> Self {
        Self {
            granule: 16,
            dead_objects: 20_000,
            dead_bytes: 64 << 20,
            report_objects: 100_000,
            report_entries: 4 << 20,
        }
    }
}

/// Why the accounting cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitError {
    /// The granule is not a power of two from 16 to 4096.
    Granule(usize),
    /// The tables find no address space.
    Reserve(Errno),
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granule(granule) => {
                write!(
                    f,
                    "granule {granule} is not a power of two from {} to {}",
                    shadow::LEAST,
                    shadow::LARGEST
                )
            }
            Self::Reserve(Errno(errno)) => {
                let reason = std::io::Error::from_raw_os_error(*errno);
                write!(f, "no address space for the heat tables: {reason} (is there a limit, ulimit -v?)")
            }
        }
    }
}

impl std::error::Error for InitError {}

impl From<Errno> for InitError {
    fn from(errno: Errno) -> Self {
        Self::Reserve(errno)
    }
}

/// The accounting of one allocator.
struct HeatMap {
    config: Config,
    totals: &'static Totals,
    records: Records,
    shadow: Shadow,
    stacks: Stacks,
    sites: Sites,
    timeline: Timeline,
    site_accesses: Spreads,
    site_lifetimes: Spreads,
    class_accesses: Spreads,
    hottest: Hottest,
}

static HEAT: OnceLock<HeatMap> = OnceLock::new();

/// Reserves the tables for the allocator's arena. Call once, when the arena exists; later calls have no effect.
pub fn init(config: Config) -> Result<(), InitError> {
    if HEAT.get().is_none() {
        let _ = HEAT.set(HeatMap::new(config, thermalloc_alloc::arena(), &TOTALS)?);
    }
    Ok(())
}

/// Whether [`init`] has succeeded. Until then all other functions do nothing.
pub fn is_on() -> bool {
    HEAT.get().is_some()
}

/// The site of a call stack, innermost caller first. An empty stack, and what finds no room, is [`SiteId::OTHER`].
pub fn intern(frames: &[u64]) -> SiteId {
    HEAT.get().map_or(SiteId::OTHER, |heat| heat.stacks.intern(frames))
}

/// An object of `size` bytes begins to live in a watched chunk, before the program sees its address.
pub fn born(object: &Object, size: usize, site: SiteId, now_ns: u64) {
    if let Some(heat) = HEAT.get() {
        heat.born(object, size as u64, site, now_ns);
    }
}

/// The object in a chunk dies, before anybody may get the chunk again. `object` is the chunk as it was born: growing or
/// shrinking in place is a death of the old one and a birth of the new one.
pub fn died(object: &Object, now_ns: u64) {
    if let Some(heat) = HEAT.get() {
        heat.died(object, now_ns);
    }
}

/// Charges an access that has completed. `thread` is the thread's ordinal. Signal-safe; asynchronous signals are blocked.
pub fn charge(access: &Access, thread: u32, now_ns: u64) {
    if let Some(heat) = HEAT.get() {
        heat.charge(&Allocator, access, thread, now_ns);
    }
}

/// A slot's memory goes back to the system, its objects being dead: so does what is known of it.
pub fn released(slot: u32) {
    if let Some(heat) = HEAT.get() {
        heat.records.release(slot);
        heat.shadow.clear_range(slot as usize * SLOT, SLOT);
    }
}

/// Before `fork`, in the parent: takes all locks.
pub fn before_fork() {
    HEAT.get().inspect(|heat| heat.freeze());
}

/// After `fork`, in the parent and in the child: releases them.
pub fn after_fork() {
    HEAT.get().inspect(|heat| heat.thaw());
}

/// In the child, after [`after_fork`], before any other thread: all counts start again; what is alive keeps its
/// size, its site and its time of allocation.
pub fn forked() {
    HEAT.get().inspect(|heat| heat.forked(&Allocator));
}

/// Everything known so far as a report. Exact if no other thread allocates, frees or accesses meanwhile; otherwise
/// sums may fall short of the totals, never exceed them. None before [`init`].
pub fn build_report(header: Header, locate: &mut dyn Locate) -> Option<Report> {
    HEAT.get().map(|heat| report::build(heat, &Allocator, header, locate))
}

impl HeatMap {
    fn new(config: Config, arena: Range<usize>, totals: &'static Totals) -> Result<Self, InitError> {
        let Config { granule, dead_objects, dead_bytes, .. } = config;
        if !granule.is_power_of_two() || !(shadow::LEAST..=shadow::LARGEST).contains(&granule) {
            return Err(InitError::Granule(granule));
        }
        Ok(Self {
            config,
            totals,
            records: Records::new(arena.len())?,
            shadow: Shadow::new(&arena, granule)?,
            stacks: Stacks::new()?,
            sites: Sites::new()?,
            timeline: Timeline::new(stacks::SITES)?,
            site_accesses: Spreads::new(SITE_DIGITS),
            site_lifetimes: Spreads::new(SITE_DIGITS),
            class_accesses: Spreads::new(CLASS_DIGITS),
            hottest: Hottest::new(dead_objects, dead_bytes),
        })
    }

    fn born(&self, object: &Object, size: u64, site: SiteId, now_ns: u64) {
        let Some(record) = self.records.of(object).filter(|_| object.watched) else { return };
        self.totals.born(size);
        if let Some(site) = self.sites.site(site) {
            site.born(size);
        }
        if let Some(class) = self.sites.class(object.class) {
            class.allocs.fetch_add(1, Relaxed);
        }
        let late = record.begin(size, site, now_ns);
        self.totals.orphaned(late.accesses(), late.bytes());
    }

    fn died(&self, object: &Object, now_ns: u64) {
        let Some(life) = self.records.of(object).and_then(|record| record.end()) else { return };
        let accesses = life.counts.accesses();
        self.totals.died(life.size);
        if let Some(site) = self.sites.site(life.site) {
            site.died(life.size, &life.counts, life.threads.count_ones().into());
        }
        if let Some(class) = self.sites.class(object.class) {
            class.frees.fetch_add(1, Relaxed);
            class.counts.add(&life.counts);
        }
        let site = life.site.0 as usize;
        self.site_accesses.record(site, accesses);
        self.site_lifetimes.record(site, now_ns.saturating_sub(life.alloc_ns));
        self.class_accesses.record(object.class.0.into(), accesses);
        if accesses != 0 {
            self.bury(object, &life, now_ns);
        }
    }

    /// Keeps a dead object if it is among the hottest, and empties its granules.
    fn bury(&self, object: &Object, life: &Life, now_ns: u64) {
        if self.hottest.wants(life.counts.accesses()) {
            let heat = self.shadow.collect(object, life.size, ENTRIES);
            self.hottest.offer(report::entry(object, life, Some(now_ns), heat));
        }
        self.shadow.clear(object);
    }

    fn charge(&self, objects: &impl Objects, access: &Access, thread: u32, now_ns: u64) {
        let Access { kind, by, .. } = *access;
        let orphaned = split(objects, access, |object, offset, len| {
            self.charge_object(object, offset, len, kind, thread, now_ns)
                .inspect(|_| self.totals.accessed(kind, by, len as u64))
                .is_some()
        }) as u64;
        if orphaned != 0 {
            self.totals.accessed(kind, by, orphaned);
            self.totals.orphaned(1, orphaned);
        }
    }

    /// Charges an access to one object, unless none is alive there.
    fn charge_object(
        &self,
        object: &Object,
        offset: usize,
        len: usize,
        kind: Kind,
        thread: u32,
        now_ns: u64,
    ) -> Option<()> {
        let record = self.records.of(object)?;
        let site = record.site()?;
        self.shadow.charge(object, offset, len, kind);
        let late = record.charge(kind, len as u64, thread, now_ns);
        if late == Counts::default() {
            self.timeline.charge(site, kind, now_ns);
        } else {
            // The object died under the charge: what was taken back is counted, but has no owner.
            self.shadow.undo(object, offset, len, kind);
            self.totals.orphaned(late.accesses(), late.bytes());
        }
        Some(())
    }

    fn spreads(&self) -> [&Spreads; 3] {
        [&self.site_accesses, &self.site_lifetimes, &self.class_accesses]
    }

    fn forked(&self, objects: &impl Objects) {
        self.totals.forked();
        self.sites.forked(self.stacks.len());
        self.timeline.forked();
        self.spreads().into_iter().for_each(Spreads::clear);
        self.hottest.clear();
        self.shadow.clear_all();
        objects.for_each_live(&mut |object| {
            if let Some(record) = self.records.of(&object).filter(|_| object.watched) {
                record.reset();
            }
        });
    }
}

impl Freeze for HeatMap {
    fn freeze(&self) {
        self.stacks.freeze();
        self.hottest.freeze();
        self.spreads().into_iter().for_each(Freeze::freeze);
    }

    fn thaw(&self) {
        self.stacks.thaw();
        self.hottest.thaw();
        self.spreads().into_iter().for_each(Freeze::thaw);
    }
}
