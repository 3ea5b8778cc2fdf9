//! The allocators compared, behind one trait. Ours is called through functions that are not inlined, as the C
//! symbols are.
//!
//! # Safety
//! Thin forwarding; sizes and alignments come from the patterns and are valid.

use std::alloc::{GlobalAlloc, Layout, System};
use thermalloc_alloc::Watch;

/// malloc's alignment.
const ALIGN: usize = 16;

pub trait Allocator: Sync + 'static {
    fn allocate(size: usize) -> *mut u8;
    fn zeroed(size: usize) -> *mut u8;
    fn resize(at: *mut u8, old: usize, new: usize) -> *mut u8;
    fn free(at: *mut u8, size: usize);
}

pub struct Thermalloc;
pub struct Mimalloc;
pub struct Glibc;

impl Allocator for Thermalloc {
    #[inline(never)]
    fn allocate(size: usize) -> *mut u8 {
        thermalloc_alloc::allocate(size, ALIGN, Watch::Unwatched)
    }
    #[inline(never)]
    fn zeroed(size: usize) -> *mut u8 {
        thermalloc_alloc::allocate_zeroed(size, ALIGN, Watch::Unwatched)
    }
    #[inline(never)]
    fn resize(at: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: the pattern owns the object.
        unsafe { thermalloc_alloc::reallocate(at, new, ALIGN, Watch::Unwatched) }.expect("a live object")
    }
    #[inline(never)]
    fn free(at: *mut u8, _size: usize) {
        // SAFETY: the pattern owns the object and is done with it.
        unsafe { thermalloc_alloc::free(at) }.expect("a live object");
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, ALIGN).expect("a size in range")
}

macro_rules! by_global_alloc {
    ($name:ty, $allocator:expr) => {
        impl Allocator for $name {
            fn allocate(size: usize) -> *mut u8 {
                // SAFETY: the size is not zero.
                unsafe { $allocator.alloc(layout(size)) }
            }
            fn zeroed(size: usize) -> *mut u8 {
                // SAFETY: the size is not zero.
                unsafe { $allocator.alloc_zeroed(layout(size)) }
            }
            fn resize(at: *mut u8, old: usize, new: usize) -> *mut u8 {
                // SAFETY: the pattern owns the object.
                unsafe { $allocator.realloc(at, layout(old), new) }
            }
            fn free(at: *mut u8, size: usize) {
                // SAFETY: the pattern owns the object and is done with it.
                unsafe { $allocator.dealloc(at, layout(size)) }
            }
        }
    };
}

by_global_alloc!(Mimalloc, mimalloc::MiMalloc);
by_global_alloc!(Glibc, System);
