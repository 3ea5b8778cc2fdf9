//! What the loader says about one module, and what the module's own memory adds to it.
//!
//! # Safety
//! [`Image::read`] believes the program headers that `dl_iterate_phdr` hands to its callback; while that runs, glibc
//! holds the lock without which it unmaps nothing.
#![allow(unsafe_code)]

use crate::memory;
use std::fmt::Write;
use std::ops::Range;

/// A loaded segment, in addresses of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub range: Range<u64>,
    pub readable: bool,
    pub executable: bool,
}

/// A module as it lies in memory.
#[derive(Clone, Debug)]
pub struct Image {
    /// As the loader has it: empty for the main program.
    pub name: String,
    /// Load bias: what to subtract from an address to get the file's own.
    pub base: u64,
    pub segments: Vec<Segment>,
    /// `.eh_frame_hdr`; empty if there is none.
    pub unwind_header: Range<u64>,
    /// NT_GNU_BUILD_ID in hexadecimal, or empty.
    pub build_id: String,
}

const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const NT_GNU_BUILD_ID: u32 = 3;

impl Image {
    /// Reads what the loader reports.
    ///
    /// # Safety
    /// `info` is what a running callback of `dl_iterate_phdr` has been handed.
    pub unsafe fn read(info: &libc::dl_phdr_info) -> Self {
        let headers = match info.dlpi_phdr.is_null() {
            true => &[][..],
            // SAFETY: the loader's own array, alive during the callback.
            false => unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) },
        };
        let name = text(info.dlpi_name as usize);
        let mut image = Self {
            name,
            base: info.dlpi_addr,
            segments: headers
                .iter()
                .filter(|h| h.p_type == libc::PT_LOAD)
                .map(|h| segment(info, h))
                .collect(),
            unwind_header: 0..0,
            build_id: String::new(),
        };
        if let Some(header) = headers.iter().find(|h| h.p_type == PT_GNU_EH_FRAME) {
            image.unwind_header = segment(info, header).range;
        }
        let notes = headers.iter().filter(|h| h.p_type == libc::PT_NOTE).map(|h| segment(info, h).range);
        for range in notes {
            // SAFETY: the module is loaded, as the caller vouches.
            if let Some(id) = unsafe { image.bytes(range) }.and_then(build_id) {
                image.build_id = id;
            }
        }
        image
    }

    /// The module's memory in `range`, if all of it lies in one readable segment.
    ///
    /// # Safety
    /// The module stays loaded as long as the slice is used.
    pub unsafe fn bytes<'a>(&self, range: Range<u64>) -> Option<&'a [u8]> {
        let segment = self.readable(range.start)?;
        let len = range.end.checked_sub(range.start)?;
        // SAFETY: inside a readable segment of a loaded module.
        (range.end <= segment.range.end)
            .then(|| unsafe { std::slice::from_raw_parts(range.start as *const u8, len as usize) })
    }

    /// The module's memory from `at` to the end of the segment.
    ///
    /// # Safety
    /// As [`bytes`](Self::bytes).
    pub unsafe fn bytes_from<'a>(&self, at: u64) -> Option<&'a [u8]> {
        let end = self.readable(at)?.range.end;
        // SAFETY: forwarded to the caller.
        unsafe { self.bytes(at..end) }
    }

    fn readable(&self, at: u64) -> Option<&Segment> {
        self.segments.iter().find(|s| s.readable && s.range.contains(&at))
    }
}

/// A string of the loader's, which may lie in the heap: read in pieces there, not byte by byte, each of which would fault.
fn text(mut at: usize) -> String {
    const PIECE: usize = 64;
    let mut bytes = Vec::new();
    let mut piece = [0; PIECE];
    while bytes.len() < libc::PATH_MAX as usize {
        // Aligned, so that no piece reaches into a page that the string does not.
        let into = &mut piece[..PIECE - at % PIECE];
        if at == 0 || !memory::read(at, into) {
            break;
        }
        let end = into.iter().position(|&byte| byte == 0);
        bytes.extend_from_slice(&into[..end.unwrap_or(into.len())]);
        if end.is_some() {
            break;
        }
        at += into.len();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn segment(info: &libc::dl_phdr_info, header: &libc::Elf64_Phdr) -> Segment {
    let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
    Segment {
        range: start..start.saturating_add(header.p_memsz),
        readable: header.p_flags & libc::PF_R != 0,
        executable: header.p_flags & libc::PF_X != 0,
    }
}

/// The build id among the notes of one PT_NOTE segment.
fn build_id(mut notes: &[u8]) -> Option<String> {
    let word = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    loop {
        let (name_len, len, kind) = (word(notes, 0)? as usize, word(notes, 4)? as usize, word(notes, 8)?);
        let body = 12 + name_len.next_multiple_of(4);
        let name = notes.get(12..12 + name_len)?;
        let description = notes.get(body..body.checked_add(len)?)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return Some(description.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            }));
        }
        notes = notes.get(body + len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(name: &[u8], kind: u32, description: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [name.len() as u32, description.len() as u32, kind] {
            note.extend(word.to_le_bytes());
        }
        for part in [name, description] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let mut notes = note(b"GNU\0", 5, &[1; 9]);
        notes.extend(note(b"stapsdt\0", 3, &[2; 4]));
        assert_eq!(build_id(&notes), None);
        notes.extend(note(b"GNU\0", 3, &[0xab, 0x01, 0xff]));
        assert_eq!(build_id(&notes).as_deref(), Some("ab01ff"));
    }

    proptest! {
        #[test]
        fn arbitrary_notes_are_survived(notes: Vec<u8>) {
            build_id(&notes);
        }
    }
}
