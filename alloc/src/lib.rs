//! A slab allocator with Memcached's class layout whose metadata lies outside the slabs.
//!
//! The program's objects live in one *arena*, a reserved stretch of addresses cut into *slots* of 1 MiB. A
//! slot is a slab page of one size class or part of a *span*, which holds one object of more than half a
//! slot. The allocator never reads or writes object memory, save for clearing (calloc) and copying (realloc),
//! which go through a *window*; so a monitor may protect the arena and still see nothing but the program's
//! own accesses.
//!
//! ```
//! use thermalloc_alloc::{Watch, allocate, free, object_at};
//!
//! let object = allocate(100, 16, Watch::Unwatched);
//! assert_eq!(object_at(object as usize + 50).unwrap().base, object as usize);
//! // SAFETY: allocated above, freed once.
//! unsafe { free(object) }.unwrap();
//! ```
//!
//! Modules, lowest first: see README.md.
#![no_std]

mod allocation;
mod arena;
mod bits;
mod cache;
mod cell;
mod central;
mod classes;
mod config;
mod duplicate;
mod fork;
mod fork_copy;
mod hooks;
mod huge;
mod init;
mod invariants;
mod lookup;
mod meta;
mod pool;
mod release;
mod resize;
mod retained;
mod runs;
mod shape;
mod span;
mod stats;
mod threads;
mod trim;
mod window;

pub use allocation::{allocate, allocate_zeroed};
pub use arena::{alias_of, arena, contains, displacement};
pub use classes::{Class, ClassId, ClassParams, ClassTable, MAX_CLASSES, Preset};
pub use config::{HeapConfig, InitError, ViewKind, Watch};
pub use duplicate::duplicate;
pub use fork::{fork_child, fork_parent, fork_prepare};
pub use fork_copy::fork_copy_alias;
pub use hooks::{Hooks, install_hooks};
pub use init::{init, is_initialized};
pub use invariants::{Broken, check_invariants};
pub use lookup::{Object, for_each_live, is_watched, object_at, slot_is_watched};
pub use meta::{MAX_CHUNKS_PER_SLAB, SLOT_BYTES};
pub use release::{Misuse, free};
pub use resize::{reallocate, resize_in_place, usable_size};
pub use stats::{ClassUse, HeapStats, classes, stats};
pub use threads::thread_exit;
pub use trim::trim;
