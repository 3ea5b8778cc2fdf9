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

/// A code cache.
pub struct Zone {
    /// The code that it is for: one module's, or a part of a large one; where there is no room for another zone, also that of others.
    pub codes: Vec<Range<u64>>,
    /// All of the zone.
    pub range: Range<u64>,
    /// Index of the zone for jumps that end in another jump's first byte.
    pub far: Option<usize>,
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
        pairs.find_map(|top| Self::at(&code, top, 2))
    }

    /// The bytes of the zone to which jumps from all of some code have a top byte that traps.
    pub fn reach(&self, code: &Range<u64>) -> u64 {
        let of_top = |top: u8| {
            let Some((start, end)) = Self::span(code, top, 2) else { return 0 };
            end.min(self.range.end).saturating_sub(start.max(self.range.start))
        };
        (0..=u8::MAX).filter(|&top| traps(top) && traps(top.wrapping_add(1))).map(of_top).max().unwrap_or(0)
    }

    /// The code of its own that an address is in.
    pub fn code_at(&self, ip: u64) -> Option<&Range<u64>> {
        self.codes.iter().find(|code| code.contains(&ip))
    }

    /// A zone whose jumps have a given top byte.
    pub fn with_top(code: &Range<u64>, top: u8) -> Option<Self> {
        Self::at(code, top, 1)
    }

    /// The addresses to which the displacement from any of the code has one of `tops` top bytes from `top` on.
    fn span(code: &Range<u64>, top: u8, tops: u64) -> Option<(u64, u64)> {
        let distance = i64::from(top as i8) * STEP as i64;
        let start = (code.end + JUMP as u64).checked_add_signed(distance)?.next_multiple_of(PAGE);
        let end = code.start.checked_add_signed(distance)?.checked_add(tops * STEP)? / PAGE * PAGE;
        (start >= 1 << 16 && end > start + STEP / 4 && end < 1 << 47).then_some((start, end))
    }

    /// Maps a zone in such a span.
    fn at(code: &Range<u64>, top: u8, tops: u64) -> Option<Self> {
        let (start, end) = Self::span(code, top, tops)?;
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
        Some(Self {
            codes: vec![code.clone()],
            range: start..end,
            far: None,
            next: start,
            stubs: BTreeMap::new(),
        })
    }

    /// The top byte of displacements from an address to the zone's end, where its stubs are.
    pub fn top(&self, from: u64) -> u8 {
        ((self.range.end - 1).wrapping_sub(from + JUMP as u64) as u32).to_le_bytes()[3]
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
