//! The accounting: charges accesses to objects, folds the dead into their sites, builds the report.
//!
//! Modules, lowest first:
//! - `region`: huge sparse tables; `freeze`: locks across fork; `coarsen`: shorter arrays, same sums.
//! - `counts`: reads and writes; `stacks`: call stacks to site ids.
//! - `cell`, `sheets`: what inline code counts, thread by thread.
//! - `record`: what is known of the object in a chunk; `shadow`: heat by offset.
//! - `sites`, `spread`, `timeline`, `hottest`: what remains of objects.
//! - `objects`: where objects are; `named`: what the program itself says lies in a chunk.
//! - `dying`: what the sheets say of an object at its end.
//! - `life`: the life of an object. `report`, `output`: heat.json.
//!
//! Sums are conserved: all sites' reads and writes (live objects included) and the unattributed ones are the totals',
//! exactly, whatever threads do at the same time.
//!
//! # Signal context
//! [`charge`] and [`is_on`] may be called in handlers, all else may not: it takes locks and uses the private heap.

mod cell;
mod coarsen;
mod counts;
mod dying;
mod freeze;
mod hottest;
mod life;
mod named;
mod objects;
mod output;
mod record;
mod region;
mod report;
mod shadow;
mod sheets;
mod sites;
mod spread;
mod stacks;
#[cfg(test)]
mod tests;
mod timeline;

pub use cell::{narrow_offset, wide_offset};
pub use output::{WriteError, write_report};
pub use report::{Header, Locate};
pub use sheets::Sheet;
pub use stacks::SiteId;

use crate::access::Access;
use crate::totals::{TOTALS, Totals};
use cell::Tally;
use freeze::Freeze;
use hottest::Hottest;
use named::{Named, NewName};
use objects::Allocator;
use record::Records;
use shadow::Shadow;
use sheets::Sheets;
use sites::Sites;
use spread::Spreads;
use stacks::Stacks;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
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
    /// Bytes of the arena, from its start, to which inline code may count accesses.
    pub covered: usize,
    /// Whether loads are watched, not stores alone.
    pub loads: bool,
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
            covered: 64 << 30,
            loads: true,
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
    sheets: Sheets,
    named: Named,
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
        heat.born(&Allocator, object, size as u64, site, now_ns);
    }
}

/// The object in a chunk dies, before anybody may get the chunk again. `object` is the chunk as it was born: growing or
/// shrinking in place is a death of the old one and a birth of the new one.
pub fn died(object: &Object, now_ns: u64) {
    if let Some(heat) = HEAT.get() {
        heat.died(&Allocator, object, now_ns);
    }
}

/// Charges an access that has completed. `thread` is the thread's ordinal. Signal-safe; asynchronous signals are blocked.
pub fn charge(access: &Access, thread: u32, now_ns: u64) {
    if let Some(heat) = HEAT.get() {
        heat.charge(&Allocator, &Tally::one(*access), thread, now_ns);
    }
}

/// Takes back a charge: the access has not been made after all. `now_ns` is the charge's. Signal-safe.
pub fn uncharge(access: &Access, thread: u32, now_ns: u64) {
    if let Some(heat) = HEAT.get() {
        heat.charge(&Allocator, &Tally { count: u64::MAX, ..Tally::one(*access) }, thread, now_ns);
    }
}

/// The addresses to which inline code may count accesses.
pub fn covered() -> Range<usize> {
    HEAT.get().map_or(0..0, |heat| heat.sheets.covered())
}

/// A sheet for the thread with this ordinal, unless there are too many. Takes address space from the system, and memory
/// from the private heap.
pub fn take_sheet(ordinal: u32) -> Option<&'static Sheet> {
    HEAT.get().and_then(|heat| heat.sheets.take(ordinal))
}

/// Whether a fault at `address` was a thread's first count in some part of its sheet; it may be repeated now. Signal-safe.
pub fn on_sheet_fault(address: usize) -> bool {
    HEAT.get().is_some_and(|heat| heat.sheets.on_fault(address))
}

/// The counter at this address of the calling thread's sheet has wrapped. Signal-safe.
pub fn on_wrap(counter: usize, now_ns: u64) {
    if let Some(heat) = HEAT.get()
        && let Some((tally, thread)) = heat.sheets.lost(counter)
    {
        heat.charge(&Allocator, &tally, thread, now_ns);
    }
}

/// Charges what a sheet holds: the calling thread's own, at any moment. Signal-safe.
pub fn collect_sheet(sheet: &Sheet, now_ns: u64) {
    if let Some(heat) = HEAT.get() {
        heat.sheets.take_from(sheet, heat.sheets.covered(), &mut |tally, thread| {
            heat.charge(&Allocator, &tally, thread, now_ns);
        });
    }
}

/// The thread of a sheet has ended.
pub fn retire_sheet(sheet: &Sheet, now_ns: u64) {
    collect_sheet(sheet, now_ns);
    if let Some(heat) = HEAT.get() {
        heat.sheets.retire(sheet);
    }
}

/// A pool: the program's own allocator cuts it into chunks, each of which is an object with this label until it is
/// named otherwise. The chunks begin at multiples of 16 bytes, or share a granule with a neighbour.
pub fn add_pool(range: Range<usize>, chunk: usize, label: &str, site: SiteId, now_ns: u64) {
    let Some(heat) = HEAT.get().filter(|_| chunk != 0) else { return };
    heat.named.add_pool(range.clone(), chunk, label);
    for start in range.clone().step_by(chunk).filter(|start| range.end - start >= chunk) {
        heat.name(&Allocator, NewName { addr: start, size: chunk, label, of_pool: true }, site, now_ns);
    }
}

/// The program says that an object of its own begins here. It ends by [`unname`], by another that begins in its first
/// granule, or with the chunk around it.
pub fn name(addr: usize, size: usize, label: &str, site: SiteId, now_ns: u64) {
    if let Some(heat) = HEAT.get() {
        heat.name(&Allocator, NewName { addr, size, label, of_pool: false }, site, now_ns);
    }
}

/// The program says that the named object at an address has ended: it is a plain chunk of its pool again, or part of the
/// chunk around.
pub fn unname(addr: usize, site: SiteId, now_ns: u64) {
    let Some(heat) = HEAT.get() else { return };
    if let Some(object) = heat.named.at(addr).filter(|object| !heat.named.is_of_pool(object)) {
        heat.unname(&Allocator, &object, now_ns);
        if let Some((size, label)) = heat.named.chunk_at(object.base) {
            let name = NewName { addr: object.base, size, label: &label, of_pool: true };
            heat.name(&Allocator, name, site, now_ns);
        }
    }
}

/// A slot's memory goes back to the system, its objects being dead: so does what is known of it.
pub fn released(slot: u32) {
    if let Some(heat) = HEAT.get() {
        heat.settle(&Allocator, &heat.slot(slot), crate::clock::now());
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
/// size, its site and its time of allocation. `sheet` is the calling thread's.
pub fn forked(sheet: Option<&Sheet>) {
    HEAT.get().inspect(|heat| heat.forked(&Allocator, sheet));
}

/// Everything known so far as a report. Exact if no other thread allocates, frees or accesses meanwhile; otherwise
/// sums may fall short of the totals, never exceed them. None before [`init`].
pub fn build_report(header: Header, locate: &mut dyn Locate) -> Option<Report> {
    HEAT.get().map(|heat| report::build(heat, &Allocator, header, locate))
}
