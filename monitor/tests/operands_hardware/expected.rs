//! What the pages and bytes of the scratch memory must show for a list of accesses.

use crate::machine::{PAGE, PAGES, Run, SCRATCH, SCRATCH_END};
use crate::safety::checks_more;
use iced_x86::Instruction;
use std::ops::Range;
use thermalloc_monitor::operands::{Access, Kind};

/// What the pages and bytes must show for a list of accesses.
pub struct Expected<'a> {
    accesses: &'a [Access],
    read: u32,
    written: u32,
    /// Pages that the processor may check without transferring anything.
    pub checked: u32,
    sparse: bool,
}

impl<'a> Expected<'a> {
    pub fn new(accesses: &'a [Access], instruction: &Instruction) -> Self {
        let of =
            |kind| accesses.iter().filter(|a| a.kind == kind).fold(0, |set, access| set | pages_of(access));
        Self {
            accesses,
            read: of(Kind::Read),
            written: of(Kind::Write),
            checked: if checks_more(instruction) { u32::MAX } else { 0 },
            sparse: instruction.is_save_restore_instruction(),
        }
    }

    pub fn touchable(&self) -> u32 {
        self.read | self.written | self.checked
    }

    pub fn pages(&self, run: &Run) -> Result<(), &'static str> {
        let touched = run.read | run.written;
        match () {
            () if run.read & !(self.read | self.checked) != 0 => {
                Err("reads a page that no predicted read touches")
            }
            () if run.written & !(self.written | self.checked) != 0 => {
                Err("writes a page that no predicted write touches")
            }
            () if self.sparse => Ok(()),
            () if self.written & !run.written != 0 => Err("does not write a page of a predicted write"),
            // A page opened for writing shows no reads any more.
            () if self.read & !touched != 0 => Err("does not read a page of a predicted read"),
            () => Ok(()),
        }
    }

    /// The memory with every byte that is not predicted to be read turned into its complement, in touched pages.
    pub fn complement_unread(&self, memory: &[u8]) -> Vec<u8> {
        let mut changed = memory.to_vec();
        for page in self.touched_pages() {
            changed[page].iter_mut().for_each(|byte| *byte = !*byte);
        }
        for access in self.accesses.iter().filter(|access| access.kind == Kind::Read) {
            let range = range_of(access);
            changed[range.clone()].copy_from_slice(&memory[range]);
        }
        changed
    }

    fn touched_pages(&self) -> impl Iterator<Item = Range<usize>> {
        let pages = self.touchable();
        let range = |page: usize| page * PAGE as usize..(page + 1) * PAGE as usize;
        (0..PAGES).filter(move |page| pages & (1 << page) != 0).map(range)
    }

    /// Bytes outside predicted writes stay; bytes inside become the same from whatever was there before.
    pub fn bytes(&self, before: &[u8], after: &[u8], before2: &[u8], after2: &[u8]) -> Result<(), String> {
        let mut write = vec![false; before.len()];
        for access in self.accesses.iter().filter(|access| access.kind == Kind::Write) {
            write[range_of(access)].fill(true);
        }
        for at in self.touched_pages().flatten() {
            let addr = SCRATCH + at as u64;
            let kept = before[at] == after[at] && before2[at] == after2[at];
            if !write[at] && !kept {
                return Err(format!("writes {addr:#x}, which no predicted write covers"));
            }
            if write[at] && !self.sparse && after[at] != after2[at] {
                return Err(format!("does not write {addr:#x}, or reads more than predicted"));
            }
        }
        Ok(())
    }
}

/// Does the whole access lie in the scratch memory?
pub fn within_scratch(access: &Access) -> bool {
    access.addr >= SCRATCH && access.len <= SCRATCH_END - SCRATCH && access.addr <= SCRATCH_END - access.len
}

fn range_of(access: &Access) -> Range<usize> {
    let start = (access.addr - SCRATCH) as usize;
    start..start + access.len as usize
}

fn pages_of(access: &Access) -> u32 {
    let range = range_of(access);
    (range.start / PAGE as usize..=(range.end - 1) / PAGE as usize).fold(0, |set, page| set | 1 << page)
}
