//! The counters that inline code bumps: one cell for each granule of 16 bytes, in a sheet of the thread's own.
//!
//! Inline code is what the monitor or the compiler puts beside an access: an address, a comparison, an increment. It knows no
//! object, so a cell keeps just enough to charge its owner later, as if each access had been charged at once:
//! ```text
//!   narrow cell, accesses of 1 to 16 bytes that begin in the granule:
//!     | reads u32 | read extra i32 | writes u32 | write extra i32 |     bytes = 8 * accesses + extra
//!   wide cell, accesses of 32 and of 64 bytes:
//!     | reads of 32 u32 | writes of 32 u32 | reads of 64 u32 | writes of 64 u32 |
//! ```
//! An access of 8 bytes, the most frequent, is one increment. A counter that wraps is noticed at once, by the flag
//! that the increment sets (`overflow`).
//!
//! # Signal context
//! Atomic operations on single words.

use crate::access::{Access, By, Kind};
use crate::counter::Counter;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bytes of a granule of the sheets, and of a cell.
pub const GRANULE: usize = 16;
/// What a counter that has wrapped has lost.
const WRAP: u64 = 1 << 32;
/// Bytes of an access that needs no extra.
const PLAIN: usize = 8;

/// Offset in a narrow cell of the counter of accesses of a kind; its extra follows 4 bytes on.
pub const fn narrow_offset(kind: Kind) -> usize {
    match kind {
        Kind::Read => 0,
        Kind::Write => 8,
    }
}

/// Offset in a wide cell of the counter of accesses of a kind and size; none for sizes that have no counter.
pub const fn wide_offset(kind: Kind, len: usize) -> Option<usize> {
    let first = match len {
        32 => 0,
        64 => 8,
        _ => return None,
    };
    Some(match kind {
        Kind::Read => first,
        Kind::Write => first + 4,
    })
}

/// Accesses of one kind and size that begin in one granule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    /// The first; with its length as if all had 8 bytes, where they are narrow.
    pub access: Access,
    /// How many.
    pub count: u64,
    /// Their bytes beyond `count` times the length.
    pub extra: i64,
}

impl Tally {
    /// One access.
    pub fn one(access: Access) -> Self {
        Self { access, count: 1, extra: 0 }
    }

    /// The bytes of those parts of the accesses that lie within `len` bytes.
    pub fn bytes(&self, len: u64) -> u64 {
        self.count.wrapping_mul(len).wrapping_add_signed(self.extra)
    }

    fn of(addr: usize, len: usize, kind: Kind, count: u64, extra: i64) -> Self {
        Self { access: Access { addr, len, kind, by: By::Program }, count, extra }
    }
}

/// Four words of a sheet.
#[repr(C)]
pub(super) struct Cell([AtomicU32; 4]);

const _: () = assert!(size_of::<Cell>() == GRANULE);

impl Cell {
    /// What is in the cell, which is empty then. Each count is taken once, whoever else takes at the same time.
    pub fn take(&self) -> Self {
        Self([0, 1, 2, 3].map(|word| AtomicU32::new(self.0[word].take())))
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|word| word.load(Relaxed) == 0)
    }

    /// Counts an access of this kind and size, or takes it back, as inline code would: in the narrow or in the wide cell of its
    /// granule. False, and nothing done, if a counter would wrap. For the thread whose sheet it is.
    pub fn count(&self, kind: Kind, len: usize, up: bool) -> bool {
        let sign = if up { 1 } else { -1 };
        let (word, extra) = match wide_offset(kind, len) {
            Some(offset) => (offset / 4, 0),
            None => (narrow_offset(kind) / 4, sign * (len as i32 - PLAIN as i32)),
        };
        let count = self.0[word].load(Relaxed).checked_add_signed(sign);
        let beyond = (self.0[(word + 1) % 4].load(Relaxed) as i32).checked_add(extra);
        let (Some(count), Some(beyond)) = (count, beyond) else { return false };
        self.0[word].store(count, Relaxed);
        if extra != 0 {
            self.0[word + 1].store(beyond as u32, Relaxed);
        }
        true
    }

    /// What a narrow cell of the granule at `addr` says, by kind.
    pub fn narrow(&self, addr: usize) -> impl Iterator<Item = Tally> {
        let [reads, read_extra, writes, write_extra] = self.words();
        let of = move |kind, count: u32, extra: u32| {
            Tally::of(addr, PLAIN, kind, count.into(), (extra as i32).into())
        };
        [of(Kind::Read, reads, read_extra), of(Kind::Write, writes, write_extra)].into_iter().filter(is_any)
    }

    /// What a wide cell of the granule at `addr` says, by kind and size.
    pub fn wide(&self, addr: usize) -> impl Iterator<Item = Tally> {
        let [reads32, writes32, reads64, writes64] = self.words();
        let of = move |len, kind, count: u32| Tally::of(addr, len, kind, count.into(), 0);
        [
            of(32, Kind::Read, reads32),
            of(32, Kind::Write, writes32),
            of(64, Kind::Read, reads64),
            of(64, Kind::Write, writes64),
        ]
        .into_iter()
        .filter(is_any)
    }

    fn words(&self) -> [u32; 4] {
        [0, 1, 2, 3].map(|word| self.0[word].load(Relaxed))
    }
}

fn is_any(tally: &Tally) -> bool {
    tally.count != 0 || tally.extra != 0
}

/// What is lost when the word at byte `offset` of a narrow cell of the granule at `addr` wraps. `value` is what it holds now.
pub(super) fn lost_narrow(addr: usize, offset: usize, value: u32) -> Tally {
    let kind = if offset < 8 { Kind::Read } else { Kind::Write };
    if offset.is_multiple_of(8) {
        return Tally::of(addr, PLAIN, kind, WRAP, 0);
    }
    // A sum that ran over its upper end came out negative.
    let lost = if (value as i32) < 0 { WRAP as i64 } else { -(WRAP as i64) };
    Tally::of(addr, PLAIN, kind, 0, lost)
}

/// What is lost when the word at byte `offset` of a wide cell of the granule at `addr` wraps.
pub(super) fn lost_wide(addr: usize, offset: usize) -> Tally {
    let kind = if offset.is_multiple_of(8) { Kind::Read } else { Kind::Write };
    Tally::of(addr, if offset < 8 { 32 } else { 64 }, kind, WRAP, 0)
}
