//! The checker: walks the whole heap and compares everything that is written down twice.

use crate::central::{self, class_of};
use crate::classes::Class;
use crate::meta::{BINS, HEAP, Kind, LIVE, NO_BIN, SLOT_BYTES, SLOT_SHIFT, Slot, WATCHED_BIN};
use crate::pool::{self, Pool};
use crate::shape::table;
use crate::{bits, fork, threads};

/// What is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The invariant that does not hold.
    pub what: &'static str,
    /// The slot or bin concerned.
    pub at: u32,
}

fn hold(holds: bool, what: &'static str, at: u32) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { what, at }) }
}

/// Checks the heap. No other thread may be inside the allocator meanwhile; threads may exist. In a child of
/// `fork`, chunks that were between cache and program in another thread of the parent are lost, and that is
/// not an error.
pub fn check_invariants() -> Result<(), Broken> {
    let mut active = 0;
    check_caches()?;
    {
        let pool = pool::guard();
        for (watched, region) in pool::used_slots().into_iter().enumerate() {
            let (bytes, free) = check_region(region, watched == 1)?;
            hold(free == pool.free_slots()[watched], "free slots are counted", watched as u32)?;
            active += bytes;
        }
        check_bytes(&pool, active)?;
    }
    (0..BINS).try_for_each(check_bin)
}

fn check_bytes(pool: &Pool, active: usize) -> Result<(), Broken> {
    hold(pool.bytes().0 == active, "active bytes are the sum over runs", 0)?;
    let retained =
        heads().filter(|entry| entry.kind() == Kind::Retained).map(|entry| entry.touched.get()).sum();
    hold(pool.bytes().1 == retained, "retained bytes are the sum over retained runs", 0)?;
    let tails = heads().filter(|entry| entry.kind() == Kind::Span).map(|entry| entry.tail.get()).sum();
    hold(pool.bytes().2 == tails, "tails are the sum over spans", 0)
}

fn heads() -> impl Iterator<Item = &'static Slot> {
    let slots = pool::used_slots().into_iter().flatten().map(|slot| HEAP.slot(slot));
    slots.filter(|entry| !matches!(entry.kind(), Kind::Free | Kind::Tail))
}

/// Returns active bytes and free slots.
fn check_region(region: core::ops::Range<u32>, watched: bool) -> Result<(usize, u32), Broken> {
    let (mut active, mut free) = (0, 0);
    let mut slot = region.start;
    while slot < region.end {
        let entry = HEAP.slot(slot);
        hold(entry.kind() != Kind::Tail, "a tail follows a head", slot)?;
        if entry.kind() == Kind::Free {
            free += 1;
            slot += 1;
            continue;
        }
        hold((entry.watch() as u8 == 1) == watched, "a run lies in its part of the arena", slot)?;
        let run = entry.run.get();
        for tail in slot + 1..slot + run {
            let tail = HEAP.slot(tail);
            hold(tail.kind() == Kind::Tail && tail.head.get() == slot, "a tail knows its head", slot)?;
        }
        match entry.kind() {
            Kind::Slab => check_slab(slot)?,
            Kind::Span => check_span(slot)?,
            _ => hold(entry.touched.get() > 0, "a retained run holds memory", slot)?,
        }
        active += if entry.kind() == Kind::Retained { 0 } else { entry.bytes.get() };
        slot += run;
    }
    hold(slot == region.end, "the last run ends where its part ends", slot)?;
    Ok((active, free))
}

fn check_span(slot: u32) -> Result<(), Broken> {
    let entry = HEAP.slot(slot);
    let bytes = entry.bytes.get();
    hold(HEAP.bin((slot as usize) << SLOT_SHIFT).get() == NO_BIN, "a span has no bin", slot)?;
    hold(bytes <= (entry.run.get() as usize) << SLOT_SHIFT, "a span fits its slots", slot)?;
    hold(bytes <= entry.touched.get(), "a span's pages count as touched", slot)?;
    hold(HEAP.state_of(HEAP.slot_addr(slot)).get() == LIVE, "a span is live", slot)
}

fn check_slab(slot: u32) -> Result<(), Broken> {
    let entry = HEAP.slot(slot);
    let bin = HEAP.bin((slot as usize) << SLOT_SHIFT).get() as usize;
    hold(bin & WATCHED_BIN == entry.watch() as usize * WATCHED_BIN, "a slab's bin knows its watch", slot)?;
    let class = table().class(class_of(bin));
    hold(class.chunk_size > 0, "a slab has a class", slot)?;
    let (used, fresh, free) = (entry.used.get(), entry.fresh.get(), entry.bits.get());
    hold(
        used + free == fresh && fresh <= class.per_slab,
        "used and free chunks are all that are not fresh",
        slot,
    )?;
    hold(
        (free > 0 || fresh < class.per_slab) == (entry.listed.get() != 0),
        "listed if it has free chunks",
        slot,
    )?;
    let mut cached = 0;
    threads::for_each_cached(bin, |chunk| cached += u32::from(HEAP.slot_of(chunk) == slot));
    let live = check_chunks(slot, class)?;
    let known = live + cached;
    hold(known == used || (fork::happened() && known < used), "used chunks are live or in a cache", slot)
}

/// Compares states with free bits. Returns the number of live chunks.
fn check_chunks(slot: u32, class: &Class) -> Result<u32, Broken> {
    let entry = HEAP.slot(slot);
    let words = HEAP.free_bits(slot);
    let (mut live, mut free) = (0, 0);
    for offset in HEAP.live_offsets(slot) {
        let index = class.index_of(offset);
        hold(index as usize * class.chunk_size as usize == offset, "objects start where chunks do", slot)?;
        hold(index < entry.fresh.get(), "a live chunk is not fresh", slot)?;
        hold(!bits::contains(words, index), "a live chunk is not free", slot)?;
        live += 1;
    }
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.get() != 0) {
        let last = at as u32 * 64 + 63 - word.get().leading_zeros();
        hold(last < entry.fresh.get(), "a free chunk is not fresh", slot)?;
        hold(at as u32 >= entry.scan.get(), "no free chunk lies before the scan", slot)?;
        free += word.get().count_ones();
    }
    hold(free == entry.bits.get(), "free chunks are counted", slot)?;
    Ok(live)
}

/// Chunks in caches are of their bin, not live, not free, and in one cache once.
fn check_caches() -> Result<(), Broken> {
    for bin in 0..BINS {
        let mut result = Ok(());
        threads::for_each_cached(bin, |chunk| {
            let slot = HEAP.slot_of(chunk);
            let offset = HEAP.offset(chunk);
            let index = table().class(class_of(bin)).index_of(chunk & (SLOT_BYTES - 1));
            let mut copies = 0;
            threads::for_each_cached(bin, |other| copies += u32::from(other == chunk));
            let checks = [
                (HEAP.bin(offset).get() as usize == bin, "a cached chunk is of its bin"),
                (HEAP.state(offset).get() != LIVE, "a cached chunk is not live"),
                (!bits::contains(HEAP.free_bits(slot), index), "a cached chunk is not free"),
                (copies == 1, "a chunk is cached once"),
            ];
            for (holds, what) in checks {
                result = result.and(hold(holds, what, slot));
            }
        });
        result?;
    }
    Ok(())
}

fn check_bin(bin: usize) -> Result<(), Broken> {
    let (mut slabs, mut used) = (0, 0);
    for slot in pool::used_slots().into_iter().flatten() {
        let entry = HEAP.slot(slot);
        if entry.kind() == Kind::Slab && HEAP.bin((slot as usize) << SLOT_SHIFT).get() as usize == bin {
            slabs += 1;
            used += entry.used.get() as usize;
        }
    }
    let central = central::lock(bin);
    hold(central.slabs == slabs, "a bin's slabs are counted", bin as u32)?;
    hold(central.used == used, "a bin's used chunks are counted", bin as u32)
}
