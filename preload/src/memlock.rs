//! mlockall: pages are locked as they are touched, for the arena is a terabyte of reserved addresses, which the kernel would
//! otherwise walk and, where they are writable, fill.
//!
//! While system calls are caught the monitor sets the flag in every `mlockall` (`handlers::on_call`); in mode `off`, where
//! none is, this function is all there is, and `syscall(SYS_mlockall, ...)` goes past it.
//!
//! # Safety
//! A system call without pointers.
#![allow(unsafe_code)]

use libc::c_int;

/// POSIX: mlockall.
#[unsafe(no_mangle)]
pub extern "C" fn mlockall(flags: c_int) -> c_int {
    // SAFETY: takes no pointers; libc sets errno.
    unsafe { libc::syscall(libc::SYS_mlockall, flags | libc::MCL_ONFAULT) as c_int }
}
