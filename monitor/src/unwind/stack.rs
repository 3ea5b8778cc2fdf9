//! Reads stack memory that may not be there.
//!
//! Every thread has a stack of its own that is mapped as long as the thread lives: where that is, is looked up once, and
//! addresses in it (above the lowest stack pointer seen, for a thread may protect the far end) are simply read. All
//! other memory (coroutines, signal stacks, garbage) is tried first, page by page and in each capture anew, by
//! a system call that reads a word and otherwise fails: rt_sigprocmask with an invalid first argument (the trick is
//! Abseil's). Unlike process_vm_readv no sandbox forbids it.
//!
//! # Safety
//! A word is read if it lies in the thread's own stack or if the kernel could just read its page.
//!
//! # Signal context
//! System calls and plain reads.
#![allow(unsafe_code)]

use super::maps;
use std::ops::Range;
use thermalloc_sys::gate;

const PAGE: u64 = 4096;

/// How often a thread may look for its own stack in /proc/self/maps, which can be long: a thread may have
/// started on another stack.
const ATTEMPTS: u32 = 16;

/// A stack pointer so little below the known part of the stack is likely to be the same stack grown, in bytes.
const NEAR: u64 = 16 * PAGE;

/// One thread's view of stack memory. All bytes zero: nothing known yet.
#[derive(Debug, Default)]
#[repr(C)]
pub struct StackReader {
    low: u64,
    high: u64,
    /// One past the page that has been tried last; 0 is none.
    tried_page: u64,
    attempts: u32,
}

impl StackReader {
    /// Knows nothing yet.
    pub const fn new() -> Self {
        Self { low: 0, high: 0, tried_page: 0, attempts: 0 }
    }

    /// Makes ready for a capture that starts at stack pointer `sp`.
    #[inline]
    pub fn begin(&mut self, sp: u64) {
        self.tried_page = 0;
        if sp.wrapping_sub(self.low) >= self.high.wrapping_sub(self.low) {
            self.find_own(sp);
        }
    }

    /// The word at `address`, if it is aligned and can be read.
    #[inline]
    pub fn read(&mut self, address: u64) -> Option<u64> {
        if !address.is_multiple_of(8) {
            return None;
        }
        if (self.low..self.high).contains(&address) || self.is_readable(address) {
            // SAFETY: see the head of this file; aligned, and any bit pattern is a number.
            return Some(unsafe { (address as *const u64).read_volatile() });
        }
        None
    }

    #[cold]
    fn find_own(&mut self, sp: u64) {
        if self.high != 0 && sp < self.low && self.low - sp < NEAR && self.grows_to(sp) {
            self.low = page_start(sp);
        } else if self.attempts < ATTEMPTS {
            self.attempts += 1;
            if let Some(range) = own_stack(sp) {
                (self.low, self.high) = (range.start, range.end);
            }
        }
    }

    /// True if every page from `sp` to the known part of the stack is there: then it is the same stack.
    fn grows_to(&self, sp: u64) -> bool {
        (sp / PAGE..self.low / PAGE).all(|page| can_read(page * PAGE))
    }

    #[cold]
    fn is_readable(&mut self, address: u64) -> bool {
        let page = address / PAGE;
        if self.tried_page != page + 1 {
            if !can_read(address) {
                return false;
            }
            self.tried_page = page + 1;
        }
        true
    }
}

/// The part of the calling thread's own stack that lies above `sp`, if `sp` is in it.
fn own_stack(sp: u64) -> Option<Range<u64>> {
    let mapping = maps::holding(sp)?;
    let thread = thread_pointer();
    if mapping.is_main_stack {
        Some(page_start(sp)..mapping.range.end)
    } else if mapping.range.contains(&thread) && thread > sp {
        // glibc puts a thread's control block at the top of its stack; what lies above may be another's.
        Some(page_start(sp)..thread)
    } else {
        None
    }
}

fn page_start(address: u64) -> u64 {
    address / PAGE * PAGE
}

fn thread_pointer() -> u64 {
    let value: u64;
    // SAFETY: x86-64's ABI has the thread pointer point to itself.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) value, options(nostack, preserves_flags, readonly));
    }
    value
}

/// True if the kernel can read the eight bytes at `address`, which lie in one page.
fn can_read(address: u64) -> bool {
    const NO_SUCH_OPERATION: usize = usize::MAX;
    // SAFETY: the kernel copies the word with faults handled, then rejects the operation: nothing changes.
    let result =
        unsafe { gate::syscall(libc::SYS_rt_sigprocmask, &[NO_SUCH_OPERATION, address as usize, 0, 8]) };
    result == -(libc::EINVAL as isize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thermalloc_sys::mem;

    #[test]
    fn the_own_stack_is_found_and_read() {
        let check = || {
            let local = 0x1234_5678_9abc_u64;
            let at = &raw const local as u64;
            let mut reader = StackReader::new();
            reader.begin(at);
            assert!((reader.low..reader.high).contains(&at), "{reader:?}");
            assert_eq!(reader.read(at), Some(local));
            assert_eq!(reader.read(at + 1), None);
        };
        check();
        std::thread::spawn(check).join().expect("also on another thread");
    }

    #[test]
    fn what_is_not_there_or_protected_is_not_read() {
        let page = mem::map(2 * PAGE as usize).expect("memory").as_ptr() as u64;
        // SAFETY: the mapping is this test's own.
        unsafe {
            mem::protect((page + PAGE) as usize, PAGE as usize, libc::PROT_NONE).expect("protect");
            (page as *mut u64).write(77);
        }
        let mut reader = StackReader::new();
        reader.begin(page);
        assert_eq!(reader.read(page), Some(77));
        assert_eq!(reader.read(page + PAGE), None);
        assert_eq!(reader.read(page + PAGE - 8), Some(0));
        for wild in [0, 8, 1 << 63, u64::MAX - 7, 0xffff_8000_0000_0000] {
            assert_eq!(reader.read(wild), None, "{wild:#x}");
        }
        // SAFETY: as above.
        unsafe { mem::unmap(page as usize, 2 * PAGE as usize).expect("unmap") };
        reader.begin(page);
        assert_eq!(reader.read(page), None);
    }
}
