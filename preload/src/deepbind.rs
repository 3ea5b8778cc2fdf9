//! dlopen without RTLD_DEEPBIND: a library loaded with it would find libc's malloc and free before these, and free there
//! what was allocated here. (ASan refuses such calls for the same reason.)
//!
//! # Safety
//! The call goes on to the next `dlopen` with the caller's return address, by which libc tells whose search path counts.
#![allow(unsafe_code)]

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The `dlopen` behind this one; until it is looked up, the function that does so.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// POSIX: dlopen.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "and esi, {keep}",
        "mov rax, [rip + {next}]",
        "test rax, rax",
        "jz {early}",
        "jmp rax",
        keep = const !libc::RTLD_DEEPBIND,
        next = sym NEXT,
        early = sym before_start,
    )
}

/// Looks the next `dlopen` up, in a constructor.
pub fn find_next() {
    // SAFETY: the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) };
    NEXT.store(next as usize, Ordering::Relaxed);
}

/// A call from a constructor that runs before this library's.
unsafe extern "C" fn before_start(file: *const c_char, flags: c_int) -> *mut c_void {
    find_next();
    let next = NEXT.load(Ordering::Relaxed);
    if next == 0 {
        return core::ptr::null_mut();
    }
    // SAFETY: the address of libc's dlopen.
    let next: extern "C" fn(*const c_char, c_int) -> *mut c_void = unsafe { core::mem::transmute(next) };
    next(file, flags)
}
