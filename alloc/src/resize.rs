//! Resizing: in place where the chunk or the span's addresses allow it, by moving pages where the system can,
//! by copying otherwise.
//!
//! # Safety
//! Objects are checked to be live before anything is done to them; that nobody else uses them is up to the
//! caller.
#![allow(unsafe_code)]

use crate::allocation;
use crate::arena;
use crate::classes::{ClassId, MIN_ALIGN};
use crate::config::Watch;
use crate::lookup::Object;
use crate::meta::{ANNOUNCED, HEAP, ODD, SLOT_BYTES};
use crate::release::{self, Misuse, free};
use crate::shape::table;
use crate::span::{self, Fresh};
use crate::{pool, window};
use core::ptr::null_mut;

/// Bytes that the program may use of a live object.
pub fn usable_size(pointer: *const u8) -> Result<usize, Misuse> {
    release::live(pointer as usize).map(|object| object.capacity)
}

/// Makes a live object `new_size` bytes long without moving it. Returns false, with nothing changed, if that
/// is impossible or would waste more than half of it.
///
/// # Safety
/// Nobody else resizes or frees the object meanwhile.
pub unsafe fn resize_in_place(pointer: *mut u8, new_size: usize) -> bool {
    release::live(pointer as usize).is_ok_and(|object| fits(&object, new_size))
}

/// Makes an object `new_size` bytes long, moving it if need be: the new address, or null when memory is
/// exhausted, and then the object is as it was. An object that stays keeps its alignment and stays in place
/// only if it is watched as `watch` says. A null `pointer` allocates.
///
/// # Safety
/// Nobody else uses the object meanwhile, or the old address afterwards.
pub unsafe fn reallocate(
    pointer: *mut u8,
    new_size: usize,
    align: usize,
    watch: Watch,
) -> Result<*mut u8, Misuse> {
    if pointer.is_null() {
        return Ok(allocation::allocate(new_size, align, watch));
    }
    let object = release::live(pointer as usize)?;
    let may_stay = object.watched == (watch == Watch::Watched) && object.base.is_multiple_of(align);
    if may_stay && fits(&object, new_size) {
        return Ok(pointer);
    }
    let Some(target) = target(&object, new_size, align, watch) else { return Ok(null_mut()) };
    let len = object.capacity.min(new_size);
    if !(object.class == ClassId::SPAN && move_span(&object, target.addr, len)) {
        // SAFETY: both are objects of at least `len` bytes, one the caller's, one new.
        unsafe { window::copy(object.base, target.addr, len) };
    }
    // SAFETY: forwarded to the caller.
    unsafe { free(pointer) }?;
    Ok(target.addr as *mut u8)
}

/// Where an object moves to. One that grows into a span is likely to grow again: it gets addresses for twice
/// its size.
pub(crate) fn target(object: &Object, new_size: usize, align: usize, watch: Watch) -> Option<Fresh> {
    let grows = new_size > object.capacity;
    if grows && align <= MIN_ALIGN && table().fit(new_size).is_none() {
        return span::allocate(new_size, new_size.saturating_mul(2), align, watch);
    }
    allocation::general(new_size, align, watch)
}

/// Resizes in place if possible.
fn fits(object: &Object, new_size: usize) -> bool {
    if object.class == ClassId::SPAN {
        return table().fit(new_size).is_none() && resize_span(object.slot, new_size);
    }
    let wasteful = new_size < object.capacity / 2 && table().fit(new_size) != Some(object.class.0 as usize);
    new_size <= object.capacity && !wasteful
}

fn resize_span(span: u32, new_size: usize) -> bool {
    let Some(bytes) = span::round(new_size).filter(|&bytes| bytes <= span::capacity(span)) else {
        return false;
    };
    if bytes != HEAP.slot(span).bytes.get() {
        pool::resize(span, bytes);
    }
    true
}

/// Moves a span's pages instead of copying them: possible between unprotected spans of the private view.
fn move_span(object: &Object, to: usize, len: usize) -> bool {
    let (from, target) = (HEAP.slot(object.slot), HEAP.slot(HEAP.slot_of(to)));
    let eligible = HEAP.displacement.get() == 0
        && HEAP.bin(HEAP.offset(to)).get() == crate::meta::NO_BIN
        && !from.has(ANNOUNCED)
        && !target.has(ANNOUNCED);
    if !eligible {
        return false;
    }
    let slots = len.next_multiple_of(SLOT_BYTES);
    target.raise(ODD);
    target.touched.set(target.touched.get().max(from.touched.get().min(slots)));
    // SAFETY: whole slots of two spans that the caller owns; the target is new and no shorter than `slots`.
    unsafe {
        if arena::move_pages(object.base, to, slots) {
            if from.touched.get() <= slots {
                from.touched.set(0);
            }
            return true;
        }
    }
    // Parts of the source were moved here earlier and are mappings of their own; slots never straddle them.
    for offset in (0..slots).step_by(SLOT_BYTES) {
        // SAFETY: as above, a slot at a time.
        unsafe {
            if !arena::move_pages(object.base + offset, to + offset, SLOT_BYTES) {
                window::copy(object.base + offset, to + offset, SLOT_BYTES.min(len - offset));
            }
        }
    }
    true
}
