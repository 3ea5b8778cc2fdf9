//! Moving an object in two steps, for callers that have accounts to keep between them.
//!
//! # Safety
//! As reallocate's: nobody else uses the object meanwhile.
#![allow(unsafe_code)]

use crate::config::Watch;
use crate::release::{self, Misuse};
use crate::resize::target;
use crate::window;
use core::ptr::null_mut;

/// A new object of `new_size` bytes with the contents of `pointer`'s, as far as they fit; the old one stays. Null when
/// memory is exhausted. With room to grow if the object grows.
///
/// # Safety
/// Nobody else uses the object meanwhile.
pub unsafe fn duplicate(
    pointer: *mut u8,
    new_size: usize,
    align: usize,
    watch: Watch,
) -> Result<*mut u8, Misuse> {
    let object = release::live(pointer as usize)?;
    let Some(target) = target(&object, new_size, align, watch) else { return Ok(null_mut()) };
    // SAFETY: both are objects of at least so many bytes, one the caller's, one new.
    unsafe { window::copy(object.base, target.addr, object.capacity.min(new_size)) };
    Ok(target.addr as *mut u8)
}
