//! Freeing, and telling what is wrong with a pointer that cannot be freed. The common case takes no lock and
//! writes three words: a state byte, a pointer into the thread's cache, and its count.
//!
//! # Safety
//! A pointer is ours only if the state of its first byte says so.
#![allow(unsafe_code)]

use crate::classes::MIN_ALIGN;
use crate::lookup::{self, Object};
use crate::meta::{DEAD, HEAP, Kind, LIVE, VIRGIN};
use crate::{arena, central, span, threads};

/// Why a pointer is not a live object of this heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The object was freed before.
    DoubleFree,
    /// The pointer lies inside a live object, which starts at `base`.
    Interior {
        /// Address of the object.
        base: usize,
    },
    /// This heap never gave out the pointer.
    Foreign,
}

/// Frees an object. Null is nothing to free.
///
/// # Safety
/// Nobody uses the object any more. Pointers that are not live objects are told apart without harm, unless
/// another thread frees the same object at the same moment.
#[inline]
pub unsafe fn free(pointer: *mut u8) -> Result<(), Misuse> {
    let addr = pointer as usize;
    let offset = HEAP.offset(addr);
    if offset < HEAP.len.get() && addr.is_multiple_of(MIN_ALIGN) {
        let state = HEAP.state(offset);
        if state.get() == LIVE
            && let Some(cache) = threads::cached()
        {
            let bin = HEAP.bin(offset).get();
            state.set(DEAD);
            if !cache.push(bin, addr) {
                free_uncached(addr, bin);
            }
            return Ok(());
        }
    }
    free_checked(addr)
}

#[cold]
#[inline(never)]
fn free_checked(addr: usize) -> Result<(), Misuse> {
    if addr == 0 {
        return Ok(());
    }
    let object = live(addr)?;
    HEAP.state_of(object.base).set(DEAD);
    // The thread's first operation on the heap: from now on it has a cache.
    threads::cache();
    free_uncached(addr, HEAP.bin(HEAP.offset(addr)).get());
    Ok(())
}

/// Frees an object, marked dead already, for which the thread's cache has no room.
#[inline(never)]
fn free_uncached(addr: usize, bin: u8) {
    let cache = threads::cache();
    if bin == crate::meta::NO_BIN {
        span::free(HEAP.slot_of(addr));
    } else if threads::is_closed(cache) {
        central::lock(bin as usize).give(bin as usize, addr);
    } else {
        cache.overflow(bin, addr);
    }
}

/// The live object that starts at an address, or what is wrong with the address.
pub(crate) fn live(addr: usize) -> Result<Object, Misuse> {
    if !arena::contains(addr) {
        return Err(Misuse::Foreign);
    }
    match lookup::object_at(addr) {
        Some(object) if object.live && object.base == addr => Ok(object),
        Some(object) if object.live => Err(Misuse::Interior { base: object.base }),
        Some(object) if object.base == addr && HEAP.state_of(addr).get() != VIRGIN => Err(Misuse::DoubleFree),
        None if was_object(addr) => Err(Misuse::DoubleFree),
        _ => Err(Misuse::Foreign),
    }
}

/// Did an object start here whose slot is free by now? States of slab pages whose memory was given back are
/// forgotten, but their slots are known to have been in use.
fn was_object(addr: usize) -> bool {
    let kind = HEAP.slot(HEAP.slot_of(addr)).kind();
    let free = matches!(kind, Kind::Free | Kind::Retained);
    let forgotten = HEAP.slot(HEAP.slot_of(addr)).run.get() != 0;
    free && addr.is_multiple_of(MIN_ALIGN) && (HEAP.state_of(addr).get() == DEAD || forgotten)
}
