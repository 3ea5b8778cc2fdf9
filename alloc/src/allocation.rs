//! Allocating. The common case takes no lock, divides nothing, and writes two words: a cache's count and a
//! state byte.
//!
//! # Safety
//! What is cleared was just allocated.
#![allow(unsafe_code)]

use crate::classes::{MIN_ALIGN, SMALL};
use crate::config::Watch;
use crate::meta::{HEAP, LIVE, STALE, VIRGIN, bin};
use crate::shape::table;
use crate::span::{self, Fresh};
use crate::{central, init, threads, window};
use core::ptr::null_mut;

/// A new object of at least `size` bytes whose address is a multiple of `align`, a power of two (16 at least
/// is given). Null when memory is exhausted or no address space could hold the object. A size of 0 yields an
/// object of its own.
#[inline]
pub fn allocate(size: usize, align: usize, watch: Watch) -> *mut u8 {
    match cached(size, align, watch) {
        Some(addr) => {
            HEAP.state_of(addr).set_last(LIVE);
            addr as *mut u8
        }
        None => allocate_uncached(size, align, watch),
    }
}

/// As [`allocate`]; the first `size` bytes are zero. Memory that is fresh from the system is not written.
#[inline]
pub fn allocate_zeroed(size: usize, align: usize, watch: Watch) -> *mut u8 {
    let fresh = match cached(size, align, watch) {
        Some(addr) => chunk(addr, size),
        None => match general(size, align, watch) {
            Some(fresh) => fresh,
            None => return null_mut(),
        },
    };
    if fresh.stale > 0 {
        // SAFETY: the object is new, and nobody else knows it.
        unsafe { window::clear(fresh.addr, fresh.stale) };
    }
    fresh.addr as *mut u8
}

/// A small chunk from the thread's cache.
#[inline(always)]
fn cached(size: usize, align: usize, watch: Watch) -> Option<usize> {
    if size > SMALL || align > MIN_ALIGN {
        return None;
    }
    let cache = threads::cached()?;
    cache.pop(bin(table().fit_small(size), watch))
}

#[inline(never)]
fn allocate_uncached(size: usize, align: usize, watch: Watch) -> *mut u8 {
    general(size, align, watch).map_or(null_mut(), |fresh| fresh.addr as *mut u8)
}

/// Marks a chunk live, and tells how much of it is old.
fn chunk(addr: usize, size: usize) -> Fresh {
    let state = HEAP.state_of(addr);
    let virgin = state.get() == VIRGIN && !HEAP.slot(HEAP.slot_of(addr)).has(STALE);
    state.set_last(LIVE);
    Fresh { addr, stale: if virgin { 0 } else { size } }
}

/// Every kind of allocation.
pub(crate) fn general(size: usize, align: usize, watch: Watch) -> Option<Fresh> {
    if !init::ensure() {
        return None;
    }
    let table = table();
    let class = if align <= MIN_ALIGN { table.fit(size) } else { table.fit_aligned(size, align) };
    let Some(class) = class else { return span::allocate(size, size, align, watch) };
    let bin = bin(class, watch);
    let cache = threads::cache();
    let addr = match cache.pop(bin) {
        Some(addr) => addr,
        None if threads::is_closed(cache) => central::take_one(bin)?,
        None => cache.refill(bin)?,
    };
    Some(chunk(addr, size))
}
