//! Where objects are: what the accounting asks of an allocator, so that tests can bring their own.
//!
//! # Signal context
//! `at` and `arena` are called in handlers and take no lock.

use super::SLOT;
use super::cell::GRANULE;
use crate::access::Access;
use std::ops::Range;
use thermalloc_alloc::Object;

/// An allocator.
pub(super) trait Objects {
    /// The addresses that it hands out.
    fn arena(&self) -> Range<usize>;
    /// The chunk that an address lies in.
    fn at(&self, addr: usize) -> Option<Object>;
    /// Calls back for each object that is alive.
    fn for_each_live(&self, each: &mut dyn FnMut(Object));
}

/// The process's own.
pub(super) struct Allocator;

impl Objects for Allocator {
    fn arena(&self) -> Range<usize> {
        thermalloc_alloc::arena()
    }

    fn at(&self, addr: usize) -> Option<Object> {
        thermalloc_alloc::object_at(addr)
    }

    fn for_each_live(&self, each: &mut dyn FnMut(Object)) {
        thermalloc_alloc::for_each_live(each);
    }
}

/// Splits an access between the chunks that it spans: calls `owned` for each watched chunk with the offset and the number of
/// bytes. Returns the bytes that belong to no watched object: those outside of chunks, and those for
/// which `owned` says no. Unwatched chunks and what lies outside the arena are left out.
///
/// An access falls into pieces of 16 bytes from its first byte on, and each goes to whoever owns the piece's first byte. So an access of
/// up to 16 bytes has one owner, and inline code need not know where objects end.
pub(super) fn split(
    arena: &Range<usize>,
    owner_of: impl Fn(usize) -> Option<Object>,
    access: &Access,
    mut owned: impl FnMut(&Object, usize, usize) -> bool,
) -> usize {
    let end = access.addr.saturating_add(access.len).min(arena.end);
    let mut at = access.addr.max(arena.start);
    let mut orphaned = 0;
    while at < end {
        let object = owner_of(at).filter(|object| object.base <= at && at - object.base < object.capacity);
        let next = match &object {
            Some(object) => object.base.saturating_add(object.capacity),
            // Beyond the last chunk of its slot.
            None => at.saturating_add(SLOT - at.wrapping_sub(arena.start) % SLOT),
        };
        let len = (next - at).next_multiple_of(GRANULE).min(end - at);
        let is_orphan = match &object {
            Some(object) if !object.watched => false,
            Some(object) => !owned(object, at - object.base, len),
            None => true,
        };
        orphaned += if is_orphan { len } else { 0 };
        at += len;
    }
    orphaned
}
