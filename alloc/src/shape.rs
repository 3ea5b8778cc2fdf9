//! What is fixed once the heap is set up: the class table and how a thread's cache is laid out.
//!
//! # Safety
//! Written once, by [`set`], before anybody can hold a cache or a pointer into the arena; read-only
//! afterwards.
//!
//! # Signal context
//! [`shape`] may be read in a handler.
#![allow(unsafe_code)]

use crate::classes::{ClassTable, MAX_CLASSES};
use core::cell::UnsafeCell;

/// Bytes of chunks that a thread keeps of one class.
const CLASS_BYTES: usize = 128 << 10;
/// Chunks that a thread keeps of one class, at most.
const CLASS_CHUNKS: usize = 256;

/// Class table and cache layout.
pub(crate) struct Shape {
    pub(crate) table: ClassTable,
    /// Chunks of each class that a cache has room for.
    pub(crate) room: [u32; MAX_CLASSES],
    /// Where each class's array of pointers starts, in words from the start of the arrays.
    pub(crate) array: [u32; MAX_CLASSES],
    /// Words of the arrays of one kind of watch.
    pub(crate) words: usize,
}

impl Shape {
    const EMPTY: Self =
        Self { table: ClassTable::EMPTY, room: [0; MAX_CLASSES], array: [0; MAX_CLASSES], words: 0 };
}

struct Once(UnsafeCell<Shape>);

// SAFETY: written once before it is read, see the module's header.
unsafe impl Sync for Once {}

static SHAPE: Once = Once(UnsafeCell::new(Shape::EMPTY));

/// The heap's shape; empty before the heap is set up.
#[inline(always)]
pub(crate) fn shape() -> &'static Shape {
    // SAFETY: nobody writes while others read, see the module's header.
    unsafe { &*SHAPE.0.get() }
}

/// The class table.
#[inline(always)]
pub(crate) fn table() -> &'static ClassTable {
    &shape().table
}

/// Fixes the shape.
///
/// # Safety
/// Called once, by the thread that sets up the heap, before it publishes the heap.
pub(crate) unsafe fn set(table: &ClassTable) {
    // SAFETY: nobody reads yet, says the caller.
    let shape = unsafe { &mut *SHAPE.0.get() };
    shape.table.clone_from(table);
    shape.words = 0;
    for (id, class) in table.classes().iter().enumerate() {
        let room = (CLASS_BYTES / class.chunk_size as usize).clamp(1, CLASS_CHUNKS);
        shape.room[id] = room as u32;
        shape.array[id] = shape.words as u32;
        shape.words += room;
    }
}
