//! Sheets: for each thread, cells for the whole covered part of the arena, which inline code bumps without a lock.
//!
//! A sheet is address space, two cells for each granule (narrow, then wide), and takes memory where its thread has counted.
//! Pieces of it begin inaccessible: the first count in one faults, and the handler opens the piece and notes it
//! ([`Sheets::on_fault`]). So whoever looks for an object's counts reads only the sheets whose threads came near it.
//!
//! Only the thread itself takes counts out of its sheet while it runs, at any instruction, for a count is
//! one instruction; others take those of objects that die, which nobody may access any more.
//!
//! # Safety
//! A sheet's memory belongs to this module; cells are handed out by shared reference and change through atomics alone.
//!
//! # Signal context
//! [`Sheets::on_fault`] and the visits take no lock and allocate nothing.
#![allow(unsafe_code)]

use super::SLOT;
use super::cell::{Cell, GRANULE, Tally, lost_narrow, lost_wide};
use crate::access::{Access, By, Kind};
use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use thermalloc_sys::gate;
use thermalloc_sys::mem::{self, Errno, PAGE};

/// The planes of a sheet.
const NARROW: usize = 0;
const WIDE: usize = 1;
/// Sheets at most: threads beyond count elsewhere.
const MOST: usize = 512;
/// Bytes of arena whose cells become accessible together.
const PIECE: usize = 64 << 10;
/// Accesses reach so many bytes beyond the granule that counts them.
const REACH: usize = 64 - GRANULE;
/// Bytes of arena above which a visit asks the kernel which pages of a sheet exist.
const SPARSE: usize = 4 * PIECE;

/// One thread's counters.
pub struct Sheet {
    /// The narrow cells; the wide ones follow `covered` bytes on.
    base: usize,
    arena: usize,
    covered: usize,
    ordinal: AtomicU32,
    taken: AtomicBool,
    /// A bit for each piece that is accessible: those of the narrow cells, then those of the wide ones.
    pieces: [Box<[AtomicU64]>; 2],
}

impl Sheet {
    fn new(arena: usize, covered: usize) -> Result<Self, Errno> {
        let base = mem::reserve(0, 2 * covered)?.as_ptr() as usize;
        // Sparse by nature; both are advice.
        for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP] {
            // SAFETY: the advice keeps the contents.
            let _ = unsafe { mem::advise(base, 2 * covered, advice) };
        }
        let words = covered.div_ceil(PIECE).div_ceil(64);
        let pieces = [(); 2].map(|()| (0..words).map(|_| AtomicU64::new(0)).collect());
        Ok(Self { base, arena, covered, ordinal: AtomicU32::new(0), taken: AtomicBool::new(true), pieces })
    }

    /// What to add to the address of a granule in the covered part to reach its narrow cell.
    pub fn bias(&self) -> usize {
        self.base.wrapping_sub(self.arena)
    }

    /// From a narrow cell to the wide cell of the same granule.
    pub fn wide(&self) -> usize {
        self.covered
    }

    /// Counts an access of the calling thread, whose sheet this is, or takes it back; false if it must be charged another way. Not while
    /// the thread's inline code can run.
    pub fn count(&self, access: &Access, up: bool) -> bool {
        let offset = access.addr.wrapping_sub(self.arena) / GRANULE * GRANULE;
        let plane = match access.len {
            1..=16 => NARROW,
            32 | 64 => WIDE,
            _ => return false,
        };
        if offset >= self.covered || access.by != By::Program {
            return false;
        }
        let cell = self.cell(plane, offset);
        if !self.is_open(plane, offset / PIECE) && !self.open(cell) {
            return false;
        }
        // SAFETY: an accessible piece of the sheet.
        unsafe { &*(cell as *const Cell) }.count(access.kind, access.len, up)
    }

    fn owner(&self) -> u32 {
        self.ordinal.load(Relaxed)
    }

    /// Makes the piece accessible that a cell's address lies in.
    fn open(&self, cell: usize) -> bool {
        let (plane, piece) = ((cell - self.base) / self.covered, (cell - self.base) % self.covered / PIECE);
        let start = self.cell(plane, piece * PIECE);
        // SAFETY: the sheet's own memory, of which nothing has been used yet.
        if unsafe { mem::protect(start, PIECE, libc::PROT_READ | libc::PROT_WRITE) }.is_err() {
            return false;
        }
        // Release pairs with the Acquire of `is_open`: whoever sees the bit may read the piece.
        self.pieces[plane][piece / 64].fetch_or(1 << (piece % 64), Release);
        true
    }

    fn cell(&self, plane: usize, offset: usize) -> usize {
        self.base + plane * self.covered + offset
    }

    fn is_open(&self, plane: usize, piece: usize) -> bool {
        // Acquire pairs with the Release of `open`.
        self.pieces[plane].get(piece / 64).is_some_and(|word| word.load(Acquire) >> (piece % 64) & 1 != 0)
    }

    /// Accessible pieces, as offsets in the covered part, clipped to `range`.
    fn opened(&self, plane: usize, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let pieces = range.start / PIECE..range.end.min(self.covered).div_ceil(PIECE);
        let mut next = pieces.start;
        let open = std::iter::from_fn(move || {
            while next < pieces.end {
                let piece = next;
                // Whole words without a bit are passed over.
                if piece.is_multiple_of(64) && self.pieces[plane][piece / 64].load(Relaxed) == 0 {
                    next += 64;
                    continue;
                }
                next += 1;
                if self.is_open(plane, piece) {
                    return Some(piece);
                }
            }
            None
        });
        open.map(move |piece| (piece * PIECE).max(range.start)..((piece + 1) * PIECE).min(range.end))
    }

    /// Calls back for each cell that is not zero of the granules of a range of offsets in the covered part.
    fn for_each(&self, plane: usize, range: Range<usize>, visit: &mut impl FnMut(usize, &Cell)) {
        let sparse = range.len() > SPARSE;
        if range.start / PIECE == range.end.saturating_sub(1) / PIECE {
            if self.is_open(plane, range.start / PIECE) {
                self.each(plane, range, visit);
            }
            return;
        }
        for piece in self.opened(plane, range) {
            let present = if sparse { self.present(plane, &piece) } else { u64::MAX };
            for page in piece.start / PAGE..piece.end.div_ceil(PAGE) {
                if present >> (page % (PIECE / PAGE)) & 1 == 0 {
                    continue;
                }
                let cells = (page * PAGE).max(piece.start)..((page + 1) * PAGE).min(piece.end);
                self.each(plane, cells, visit);
            }
        }
    }

    /// As [`for_each`](Self::for_each), within one piece, which is accessible.
    #[inline]
    fn each(&self, plane: usize, offsets: Range<usize>, visit: &mut impl FnMut(usize, &Cell)) {
        let mut offset = offsets.start;
        while offset < offsets.end {
            // SAFETY: an accessible piece of the sheet.
            let cell = unsafe { &*(self.cell(plane, offset) as *const Cell) };
            if !cell.is_zero() {
                visit(self.arena + offset, cell);
            }
            offset += GRANULE;
        }
    }

    /// Which pages of a piece exist, a bit each.
    fn present(&self, plane: usize, piece: &Range<usize>) -> u64 {
        let start = piece.start / PIECE * PIECE;
        let mut pages = [1u8; PIECE / PAGE];
        let args = [self.cell(plane, start), PIECE, pages.as_mut_ptr() as usize];
        // SAFETY: the kernel writes a byte for each page of the piece.
        unsafe { gate::syscall(libc::SYS_mincore, &args) };
        pages.iter().rev().fold(0, |bits, page| bits << 1 | u64::from(page & 1))
    }

    /// Forgets everything, and gives the memory back. Pieces stay accessible: another thread may be reading them.
    fn clear(&self) {
        // SAFETY: the sheet's own memory, which reads as zero from here on; MADV_DONTNEED of private memory does not fail.
        let _ = unsafe { mem::advise(self.base, 2 * self.covered, libc::MADV_DONTNEED) };
    }
}

/// All threads' sheets.
pub(super) struct Sheets {
    arena: usize,
    covered: usize,
    /// Whether loads are watched; else code that counts them all the same counts for nothing.
    loads: bool,
    /// Addresses of the sheets; those that exist come first.
    all: [AtomicUsize; MOST],
    count: AtomicUsize,
}

impl Sheets {
    /// `covered` is how many bytes of the arena, from its start, have cells: a multiple of the slot.
    pub fn new(arena: &Range<usize>, covered: usize, loads: bool) -> Self {
        let covered = covered.min(arena.len()) / SLOT * SLOT;
        Self {
            arena: arena.start,
            covered,
            loads,
            all: [const { AtomicUsize::new(0) }; MOST],
            count: AtomicUsize::new(0),
        }
    }

    /// The addresses that have cells.
    pub fn covered(&self) -> Range<usize> {
        self.arena..self.arena + self.covered
    }

    /// A sheet for a thread: a retired one, or a new one while there is room. Not for handlers of code that may
    /// hold the private heap.
    pub fn take(&self, ordinal: u32) -> Option<&'static Sheet> {
        // AcqRel pairs with the Release of `retire`: the sheet is empty.
        let retired = self.iter().find(|sheet| !sheet.taken.load(Relaxed) && !sheet.taken.swap(true, AcqRel));
        let sheet = match retired {
            Some(sheet) => sheet,
            None => self.add()?,
        };
        sheet.ordinal.store(ordinal, Relaxed);
        Some(sheet)
    }

    fn add(&self) -> Option<&'static Sheet> {
        let at =
            self.count.fetch_update(Relaxed, Relaxed, |count| (count < MOST).then_some(count + 1)).ok()?;
        let sheet = Sheet::new(self.arena, self.covered).ok()?;
        let sheet: &'static Sheet = Box::leak(Box::new(sheet));
        // Release pairs with the Acquire of `iter`.
        self.all[at].store(sheet as *const Sheet as usize, Release);
        Some(sheet)
    }

    /// Gives an empty sheet back.
    pub fn retire(&self, sheet: &Sheet) {
        sheet.clear();
        // Release pairs with the AcqRel of `take`.
        sheet.taken.store(false, Release);
    }

    /// In the child of a fork: only `own` has a thread, and nothing has been counted.
    pub fn forked(&self, own: Option<&Sheet>) {
        for sheet in self.iter() {
            sheet.clear();
            sheet.taken.store(own.is_some_and(|own| std::ptr::eq(own, sheet)), Relaxed);
        }
    }

    /// Whether a fault at `address` was the first count of a piece; it is accessible now.
    pub fn on_fault(&self, address: usize) -> bool {
        self.owner_of(address).is_some_and(|sheet| sheet.open(address))
    }

    /// What is lost when the counter at `word` wraps, and whose it is.
    pub fn lost(&self, word: usize) -> Option<(Tally, u32)> {
        let sheet = self.owner_of(word)?;
        let offset = (word - sheet.base) % self.covered;
        let granule = self.arena + offset / GRANULE * GRANULE;
        let tally = if word - sheet.base < self.covered {
            // SAFETY: a word of the sheet that its thread has just written.
            let value = unsafe { (*(word as *const AtomicU32)).load(Relaxed) };
            lost_narrow(granule, offset % GRANULE, value)
        } else {
            lost_wide(granule, offset % GRANULE)
        };
        Some((tally, sheet.owner()))
    }

    /// The sheet of a thread, made when first asked for.
    #[cfg(test)]
    pub fn of(&self, ordinal: u32) -> &'static Sheet {
        self.iter().find(|sheet| sheet.owner() == ordinal).or_else(|| self.take(ordinal)).unwrap()
    }

    fn owner_of(&self, address: usize) -> Option<&'static Sheet> {
        self.iter().find(|sheet| (sheet.base..sheet.base + 2 * self.covered).contains(&address))
    }

    fn iter(&self) -> impl Iterator<Item = &'static Sheet> {
        let count = self.count.load(Relaxed);
        self.all[..count].iter().filter_map(|address| {
            // SAFETY: sheets live as long as the process. Acquire pairs with the Release of `add`.
            unsafe { (address.load(Acquire) as *const Sheet).as_ref() }
        })
    }

    /// Calls back for all accesses counted so far that may concern a range of addresses, with their thread.
    pub fn peek(&self, range: Range<usize>, visit: &mut impl FnMut(Tally, u32)) {
        self.iter().for_each(|sheet| self.each_cell(sheet, range.clone(), false, visit));
    }

    /// As [`Sheets::peek`], and takes them out. Nobody counts there meanwhile.
    pub fn take_out(&self, range: Range<usize>, visit: &mut impl FnMut(Tally, u32)) {
        self.iter().for_each(|sheet| self.take_from(sheet, range.clone(), visit));
    }

    /// As [`Sheets::take_out`], of one sheet: the calling thread's own, or one whose thread is gone.
    pub fn take_from(&self, sheet: &Sheet, range: Range<usize>, visit: &mut impl FnMut(Tally, u32)) {
        self.each_cell(sheet, range, true, visit);
    }

    fn each_cell(&self, sheet: &Sheet, range: Range<usize>, take: bool, visit: &mut impl FnMut(Tally, u32)) {
        let (narrow, wide) = self.granules(range);
        let owner = sheet.owner();
        let mut hand_on = |tally: Tally| {
            if self.loads || tally.access.kind == Kind::Write {
                visit(tally, owner);
            }
        };
        sheet.for_each(NARROW, narrow, &mut |addr, cell| {
            let taken = take.then(|| cell.take());
            taken.as_ref().unwrap_or(cell).narrow(addr).for_each(&mut hand_on);
        });
        sheet.for_each(WIDE, wide, &mut |addr, cell| {
            let taken = take.then(|| cell.take());
            taken.as_ref().unwrap_or(cell).wide(addr).for_each(&mut hand_on);
        });
    }

    /// The granules, as offsets, whose narrow and whose wide cells may concern a range of addresses.
    fn granules(&self, range: Range<usize>) -> (Range<usize>, Range<usize>) {
        let end = range.end.saturating_sub(self.arena).min(self.covered);
        let start = (range.start.saturating_sub(self.arena) / GRANULE * GRANULE).min(end);
        (start..end, start.saturating_sub(REACH)..end)
    }
}
