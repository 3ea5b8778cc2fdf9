//! System calls without Syscall User Dispatch: each `syscall` instruction of the loaded files becomes a breakpoint, whose
//! SIGTRAP stands for the SIGSYS that the kernel would have sent.
//!
//! Sites are found by disassembling each executable file mapping from its start, and only in mappings that hold the
//! instruction's two bytes at all. Code that is no file's (a JIT's) and the kernel's own vDSO are left alone: calls made
//! there with pointers into the heap fail with EFAULT, which is why Syscall User Dispatch is preferred.
//!
//! # Safety
//! Only bytes that disassemble as `syscall` are replaced, by a single one-byte store, so that other threads find either
//! instruction.
//!
//! # Signal context
//! [`is_site`] and [`scan`] run in handlers: no allocation, no locks.
#![allow(unsafe_code)]

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use thermalloc_sys::gate;
use thermalloc_sys::mem::{self, Errno, PAGE};

const BREAKPOINT: u8 = 0xcc;
const SYSCALL: [u8; 2] = [0x0f, 0x05];

static ON: AtomicBool = AtomicBool::new(false);

/// Whether system calls arrive by way of rewritten instructions.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Rewrites what is loaded now.
pub fn start() -> Result<(), Errno> {
    ON.store(true, Ordering::Relaxed);
    for mapping in executable_mappings() {
        scan(mapping).inspect_err(|_| ON.store(false, Ordering::Relaxed))?;
    }
    Ok(())
}

/// Whether the trap before `rip` stands for a system call: a breakpoint followed by what remains of `syscall`.
pub fn is_site(rip: u64) -> bool {
    let mut bytes = [0u8; 2];
    is_on() && crate::memory::read(rip as usize - 1, &mut bytes) && bytes == [BREAKPOINT, SYSCALL[1]]
}

/// Rewrites the `syscall` instructions of an executable mapping.
pub fn scan(mapping: Range<usize>) -> Result<(), Errno> {
    // SAFETY: the mapping is readable: it was just read from the process's own list, or just made.
    let code = unsafe { core::slice::from_raw_parts(mapping.start as *const u8, mapping.len()) };
    if !code.windows(2).any(|pair| pair == SYSCALL) {
        return Ok(());
    }
    let mut decoder = Decoder::with_ip(64, code, mapping.start as u64, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.mnemonic() == Mnemonic::Syscall
            && !gate::range().contains(&(instruction.ip() as usize))
        {
            replace(instruction.ip() as usize)?;
        }
    }
    Ok(())
}

fn replace(at: usize) -> Result<(), Errno> {
    let page = at & !(PAGE - 1);
    // SAFETY: the page is code that stays executable; one byte changes, to an instruction that the monitor answers for.
    unsafe {
        mem::protect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)?;
        AtomicU8::from_ptr(at as *mut u8).store(BREAKPOINT, Ordering::SeqCst);
        mem::protect(page, PAGE, libc::PROT_READ | libc::PROT_EXEC)
    }
}

/// Readable, executable mappings of files, by `/proc/self/maps`.
pub fn executable_mappings() -> Vec<Range<usize>> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter_map(mapping).collect()
}

/// A line of the list, if it is an executable mapping of a file.
fn mapping(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let path = fields.nth(3)?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    (permissions.starts_with("r-x") && path.starts_with('/')).then_some(address(start)?..address(end)?)
}

#[cfg(test)]
mod tests {
    use super::mapping;

    #[test]
    fn takes_code_of_files_alone() {
        let code = "7f0000001000-7f0000002000 r-xp 00001000 fe:01 12 /usr/lib/libx.so";
        assert_eq!(mapping(code), Some(0x7f00_0000_1000..0x7f00_0000_2000));
        assert_eq!(mapping("7f0000001000-7f0000002000 r--p 00001000 fe:01 12 /usr/lib/libx.so"), None);
        assert_eq!(mapping("7f0000001000-7f0000002000 r-xp 00000000 00:00 0 [vdso]"), None);
        assert_eq!(mapping("7f0000001000-7f0000002000 rwxp 00000000 00:00 0"), None);
        assert_eq!(mapping(""), None);
    }
}
