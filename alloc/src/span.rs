//! Spans: one object in whole slots of its own, of which only the pages that it needs are touched.

use crate::config::Watch;
use crate::meta::{DEAD, HEAP, Kind, LIVE, SLOT_BYTES, SLOT_SHIFT};
use crate::pool::{self, Request};
use thermalloc_sys::mem::PAGE;

/// A new object.
pub(crate) struct Fresh {
    pub(crate) addr: usize,
    /// Bytes from its start that may hold old data; the rest reads as zero.
    pub(crate) stale: usize,
}

/// Pages' worth of bytes for an object. `None`: too large for any address space.
pub(crate) fn round(size: usize) -> Option<usize> {
    (size <= isize::MAX as usize - SLOT_BYTES).then(|| size.max(1).next_multiple_of(PAGE))
}

/// A span of `size` bytes. If there is room, its slots have addresses for `capacity` bytes, so that it can
/// grow in place.
pub(crate) fn allocate(size: usize, capacity: usize, align: usize, watch: Watch) -> Option<Fresh> {
    let bytes = round(size)?;
    let request = |capacity: usize| {
        let slots = u32::try_from(capacity.div_ceil(SLOT_BYTES)).ok()?;
        pool::take(&Request { kind: Kind::Span, slots, align, watch, bytes })
    };
    let span = match round(capacity) {
        Some(roomy) if roomy > bytes => request(roomy).or_else(|| request(bytes)),
        _ => request(bytes),
    }?;
    let entry = HEAP.slot(span);
    let stale = entry.touched.get().min(size);
    entry.touched.set(entry.touched.get().max(bytes));
    HEAP.state((span as usize) << SLOT_SHIFT).set(LIVE);
    Some(Fresh { addr: HEAP.slot_addr(span), stale })
}

/// Frees a span's object.
pub(crate) fn free(span: u32) {
    HEAP.state((span as usize) << SLOT_SHIFT).set(DEAD);
    pool::release(span);
}

/// Bytes that a span's slots have addresses for.
pub(crate) fn capacity(span: u32) -> usize {
    (HEAP.slot(span).run.get() as usize) << SLOT_SHIFT
}
