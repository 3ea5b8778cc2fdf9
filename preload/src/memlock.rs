//! mlockall: pages are locked as they are touched, for the arena is a terabyte of reserved addresses, which the kernel would
//! otherwise walk and, where they are writable, fill.
//!
//! # Safety
//! A system call without pointers.
#![allow(unsafe_code)]

use libc::c_int;

/// mlockall(2): lock pages as they are touched.
const MCL_ONFAULT: c_int = 4;

/// POSIX: mlockall.
#[unsafe(no_mangle)]
pub extern "C" fn mlockall(flags: c_int) -> c_int {
    // SAFETY: takes no pointers; libc sets errno.
    unsafe { libc::syscall(libc::SYS_mlockall, flags | MCL_ONFAULT) as c_int }
}
