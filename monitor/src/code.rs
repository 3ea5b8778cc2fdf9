//! Changing code, and memory for code of the runtime's own.
//!
//! Bytes are written by way of `/proc/self/mem`, which the kernel lets a process do whatever the protection: no page is ever writable
//! and executable, and other threads go on executing meanwhile. Where that is refused, the pages become
//! writable for the moment. Pages are private, so a forked child has its own.
//!
//! # Safety
//! The callers know what they overwrite.
//!
//! # Signal context
//! System calls of the runtime alone.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering};
use thermalloc_sys::alone;
use thermalloc_sys::gate::syscall;
use thermalloc_sys::mem::{self, Errno, PAGE, check};

const MEMBARRIER_REGISTER: usize = 1 << 6;
const MEMBARRIER_SYNC_CORE: usize = 1 << 5;

static SHARED: AtomicBool = AtomicBool::new(false);

/// From here on other threads execute code too.
pub fn share() {
    // Each time: a forked child has to register anew.
    // SAFETY: takes no pointers.
    unsafe { syscall(libc::SYS_membarrier, &[MEMBARRIER_REGISTER, 0, 0]) };
    SHARED.store(true, Ordering::SeqCst);
    alone::set(false);
}

/// Whether a second thread has ever existed.
pub fn is_shared() -> bool {
    SHARED.load(Ordering::SeqCst)
}

/// Makes every thread forget instructions that it has fetched but not executed.
pub fn synchronize() {
    if SHARED.load(Ordering::SeqCst) {
        // SAFETY: takes no pointers.
        unsafe { syscall(libc::SYS_membarrier, &[MEMBARRIER_SYNC_CORE, 0, 0]) };
    }
}

/// Writes code. What other threads find meanwhile is old or new, byte by byte.
///
/// # Safety
/// Nobody relies on the old bytes.
pub unsafe fn write(at: usize, bytes: &[u8]) -> Result<(), Errno> {
    // SAFETY: a constant string; the bytes are alive.
    unsafe {
        let path = c"/proc/self/mem".as_ptr() as usize;
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
        if let Ok(fd) = check(syscall(libc::SYS_openat, &[libc::AT_FDCWD as usize, path, flags, 0])) {
            let written = check(syscall(libc::SYS_pwrite64, &[fd, bytes.as_ptr() as usize, bytes.len(), at]));
            syscall(libc::SYS_close, &[fd]);
            if written == Ok(bytes.len()) {
                return Ok(());
            }
        }
    }
    // SAFETY: forwarded to the caller.
    unsafe { write_openly(at, bytes) }
}

/// Makes the pages writable for the moment.
unsafe fn write_openly(at: usize, bytes: &[u8]) -> Result<(), Errno> {
    let start = at & !(PAGE - 1);
    let len = (at + bytes.len()).next_multiple_of(PAGE) - start;
    // SAFETY: forwarded to the caller.
    unsafe {
        mem::protect(start, len, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)?;
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len());
        mem::protect(start, len, libc::PROT_READ | libc::PROT_EXEC)
    }
}

/// Fresh private memory for code, executable and not writable.
pub fn map(len: usize) -> Result<usize, Errno> {
    let at = mem::map(len)?.as_ptr() as usize;
    // SAFETY: nobody knows the memory yet.
    unsafe { mem::protect(at, len, libc::PROT_READ | libc::PROT_EXEC) }?;
    Ok(at)
}
