//! Memory for translated code, near the module that it was translated from.
//!
//! A zone lies at such a distance from the module's code that the top byte of a jump's displacement traps: so the most frequent windows,
//! whose second instruction begins at the fifth byte, fit wherever in the zone their target is.
//!
//! # Safety
//! Zones are mapped where nothing was, and never unmapped.
//!
//! # Signal context
//! System calls of the runtime, and the private heap.
#![allow(unsafe_code)]

use super::window::{JUMP, Window, traps};
use std::collections::BTreeMap;
use std::ops::Range;
use thermalloc_sys::gate::syscall;
use thermalloc_sys::mem::check;

/// What a displacement's top byte stands for.
const STEP: u64 = 16 << 20;
/// Bytes of a page for stubs.
const PAGE: u64 = 4096;

/// The code cache of one module.
pub struct Zone {
    /// The module's code.
    pub code: Range<u64>,
    /// All of the zone.
    pub range: Range<u64>,
    /// Where the next body goes.
    next: u64,
    /// Pages with stubs: how many of their bytes are used.
    stubs: BTreeMap<u64, u64>,
}

impl Zone {
    /// Maps a zone for the code at `code`; none if there is no room in reach.
    pub fn new(code: Range<u64>) -> Option<Self> {
        // Pairs of neighbouring top bytes that trap, nearest first, above the module and below.
        let tops = (0u8..0x70).flat_map(|distance| [distance, 0u8.wrapping_sub(distance + 2)]);
        let mut pairs = tops.filter(|&top| traps(top) && traps(top.wrapping_add(1)));
        pairs.find_map(|top| Self::at(&code, i64::from(top as i8) * STEP as i64))
    }

    fn at(code: &Range<u64>, distance: i64) -> Option<Self> {
        // From the code's end on, so that the displacement from any of it has one of the two top bytes.
        let start = code.end.checked_add_signed(distance)?.next_multiple_of(PAGE);
        let end = code.start.checked_add_signed(distance)?.checked_add(2 * STEP)? / PAGE * PAGE;
        if start < 1 << 16 || end <= start + (STEP / 2) || end >= 1 << 47 {
            return None;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        let prot = libc::PROT_READ | libc::PROT_EXEC;
        let args = [start as usize, (end - start) as usize, prot as usize, flags as usize, usize::MAX, 0];
        // SAFETY: a new mapping, where nothing is.
        let at = check(unsafe { syscall(libc::SYS_mmap, &args) }).ok()?;
        if at as u64 != start {
            // A kernel that takes the address for a hint.
            // SAFETY: the mapping was made just now.
            unsafe { syscall(libc::SYS_munmap, &[at, (end - start) as usize]) };
            return None;
        }
        Some(Self { code: code.clone(), range: start..end, next: start, stubs: BTreeMap::new() })
    }

    /// Where the next body will be.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether a body of `len` bytes has room.
    pub fn has_room(&self, len: usize) -> bool {
        self.next + len as u64 + PAGE <= self.lowest_stub()
    }

    /// Takes the room for a body.
    pub fn take(&mut self, len: usize) {
        self.next = (self.next + len as u64).next_multiple_of(16);
    }

    fn lowest_stub(&self) -> u64 {
        self.stubs.keys().next().copied().unwrap_or(self.range.end)
    }

    /// Room for a jump that a window can reach: in a page that has some already, or in the highest that fits.
    pub fn stub(&mut self, window: &Window) -> Option<u64> {
        const ROOM: u64 = JUMP as u64;
        for (&page, used) in &mut self.stubs {
            if let Some(target) = window.targets(page + *used..page + PAGE, ROOM).next() {
                *used = target + ROOM - page;
                return Some(target);
            }
        }
        // Bodies grow from below: new pages come from the upper half.
        let middle = (self.next + (self.range.end - self.next) / 2) / PAGE * PAGE;
        let target = window.targets(middle..self.range.end, ROOM).find(|target| {
            target % PAGE + ROOM <= PAGE && !self.stubs.contains_key(&(target / PAGE * PAGE))
        })?;
        self.stubs.insert(target / PAGE * PAGE, target % PAGE + ROOM);
        Some(target)
    }
}
