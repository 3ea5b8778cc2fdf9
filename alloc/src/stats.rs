//! What the heap holds. Numbers are exact when no other thread is inside the allocator, and close otherwise.

use crate::central;
use crate::classes::ClassId;
use crate::meta::{HEAP, Kind, WATCHED_BIN};
use crate::shape::table;
use crate::{pool, threads};

/// All in bytes, unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapStats {
    /// Slab pages, spans, and freed memory that was kept.
    pub mapped: usize,
    /// Live objects, by the size of their chunks and spans.
    pub in_use: usize,
    /// Free chunks in slab pages, those in caches and those never used included.
    pub free: usize,
    /// Free chunks in the caches of threads.
    pub cached: usize,
    /// Live spans.
    pub spans: usize,
    /// Number of live spans.
    pub span_count: usize,
    /// Slab pages.
    pub slabs: usize,
    /// Freed slab pages and spans whose memory was kept for reuse.
    pub retained: usize,
    /// Highest value that slab pages and spans together ever had.
    pub peak: usize,
}

/// How much a size class is used, watched and unwatched together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassUse {
    /// Which class.
    pub id: u16,
    /// Bytes of a chunk.
    pub chunk_size: u32,
    /// Chunks in a slab page.
    pub per_slab: u32,
    /// Slab pages in use.
    pub slabs: u32,
    /// Live objects.
    pub live: usize,
    /// Chunks in the caches of threads.
    pub cached: usize,
}

/// The use of every class, smallest first; those that only aligned requests use come last. Empty before the
/// heap is set up.
pub fn classes() -> impl ExactSizeIterator<Item = ClassUse> {
    (0..table().classes().len()).map(|id| class_use(ClassId(id as u16)))
}

fn class_use(id: ClassId) -> ClassUse {
    let class = table().class(id.0 as usize);
    let mut sum =
        ClassUse { id: id.0, chunk_size: class.chunk_size, per_slab: class.per_slab, ..ClassUse::default() };
    for bin in [id.0 as usize, id.0 as usize | WATCHED_BIN] {
        threads::for_each_cache(|cache| sum.cached += cache.count(bin) as usize);
        let central = central::lock(bin);
        sum.slabs += central.slabs;
        sum.live += central.used;
    }
    sum.live = sum.live.saturating_sub(sum.cached);
    sum
}

/// The heap's numbers. Takes locks for a moment.
pub fn stats() -> HeapStats {
    let mut stats = HeapStats::default();
    for class in classes() {
        let size = class.chunk_size as usize;
        let bytes = class.slabs as usize * class.per_slab as usize * size;
        stats.slabs += class.slabs as usize * crate::meta::SLOT_BYTES;
        stats.in_use += class.live * size;
        stats.cached += class.cached * size;
        stats.free += bytes.saturating_sub(class.live * size);
    }
    for slot in pool::used_slots().into_iter().flatten() {
        let entry = HEAP.slot(slot);
        if entry.kind() == Kind::Span {
            stats.spans += entry.bytes.get();
            stats.span_count += 1;
        }
    }
    let (retained, active, peak) = pool::usage();
    stats.in_use += stats.spans;
    stats.retained = retained;
    stats.mapped = active + retained;
    stats.peak = peak;
    stats
}
