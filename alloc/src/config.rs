//! What a heap is set up with.

use crate::classes::{ClassParams, Preset};

/// How the arena is backed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// Anonymous memory, mapped once.
    Private,
    /// A memory file, mapped twice: the *program view*, which may be protected, and the *alias view* at a
    /// constant displacement, which is always readable and writable.
    Alias,
}

/// Whether an object lies in memory that the monitor watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Watch {
    /// Never protected; slots from the high end of the arena.
    Unwatched = 0,
    /// Protected while the monitor is on; slots from the low end of the arena.
    Watched = 1,
}

impl Watch {
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn from_bool(watched: bool) -> Self {
        if watched { Watch::Watched } else { Watch::Unwatched }
    }
}

/// Everything that is fixed when the heap is set up.
#[derive(Clone, Copy, Debug)]
pub struct HeapConfig {
    /// How the arena is backed.
    pub view: ViewKind,
    /// The small size classes that come before the growing ones.
    pub preset: Preset,
    /// The growing size classes.
    pub classes: ClassParams,
    /// Upper bound of the arena in bytes; a smaller one is taken where the system grants less. `None`: 1 TiB
    /// (private), 256 GiB (alias).
    pub arena_bytes: Option<usize>,
}

impl HeapConfig {
    /// Private view, malloc's classes, the largest arena there is.
    pub const DEFAULT: Self = Self {
        view: ViewKind::Private,
        preset: Preset::Malloc,
        classes: ClassParams::MALLOC,
        arena_bytes: None,
    };
}

impl Default for HeapConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a heap could not be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitError {
    /// The heap exists already; the first configuration stays.
    AlreadyInitialized,
    /// The class parameters do not make a heap: see [`ClassParams`].
    BadClasses,
    /// The system grants no arena, not even a small one; the `errno` of the last attempt.
    NoArena(i32),
}
