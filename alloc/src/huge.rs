//! Huge pages for large spans: one page fault for 2 MiB instead of 512. Only in the private view and for
//! unwatched spans, which nobody protects page by page.

use crate::arena;
use crate::config::Watch;
use crate::meta::{HEAP, ODD, SLOT_SHIFT};
use core::ops::Range;

/// Bytes of a huge page, to which spans of at least as many are aligned where there is room.
pub(crate) const HUGE: usize = 2 << 20;
/// A span's last huge page may be this empty, in bytes.
const WASTE: usize = 256 << 10;

/// Is a span of this kind and length to have huge pages?
pub(crate) fn wanted(watch: Watch, bytes: usize) -> bool {
    watch == Watch::Unwatched && bytes >= HUGE && HEAP.displacement.get() == 0
}

/// Asks for huge pages where a span grew to hold them.
pub(crate) fn prefer(run: u32, grown: Range<usize>) {
    let entry = HEAP.slot(run);
    let capacity = (entry.run.get() as usize) << SLOT_SHIFT;
    let huge = |bytes: usize| ((bytes + WASTE) & !(HUGE - 1)).min(capacity & !(HUGE - 1));
    let (before, after) = (huge(grown.start), huge(grown.end));
    let populated = entry.touched.get() >= after;
    if wanted(entry.watch(), grown.end) && after > before && !populated {
        let start = HEAP.slot_addr(run);
        arena::prefer_huge(start + before..start + after);
        entry.raise(ODD);
    }
}
