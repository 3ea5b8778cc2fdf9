//! Mappings, by way of the [`gate`](crate::gate).
//!
//! # Safety
//! Mapping fresh memory is safe; replacing, protecting or unmapping existing memory is `unsafe`, for it pulls
//! the rug from under whoever uses it.
//!
//! # Signal context
//! System calls only; all may be used in a handler.
#![allow(unsafe_code)]

use crate::gate::syscall;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

/// A positive `errno` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// Page size of x86-64.
pub const PAGE: usize = 4096;

/// `-errno` of a raw system call as a `Result`.
pub fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&result) { Err(Errno(-result as i32)) } else { Ok(result as usize) }
}

/// Maps `len` bytes of zeroed private memory, readable and writable, charged only as it is touched.
pub fn map(len: usize) -> Result<NonNull<u8>, Errno> {
    map_with(0, len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
}

/// Maps `len` bytes of zeroed shared memory without a file, readable and writable, charged only as it is touched.
pub fn shared(len: usize) -> Result<NonNull<u8>, Errno> {
    map_with(0, len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)
}

/// Moves a mapping to `to`, in place of what is there; with an `old_len` of 0, maps its shared memory a second time.
///
/// # Safety
/// Both ranges belong to the caller, and nobody relies on the old address (unless it stays) or on what was at the new one.
pub unsafe fn remap(at: usize, old_len: usize, len: usize, to: usize) -> Result<(), Errno> {
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
    // SAFETY: the caller owns both ranges.
    check(unsafe { syscall(libc::SYS_mremap, &[at, old_len, len, flags, to]) }).map(drop)
}

/// Reserves `len` bytes of address space without access; `hint` is where it should lie if it can.
pub fn reserve(hint: usize, len: usize) -> Result<NonNull<u8>, Errno> {
    map_with(hint, len, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
}

/// Where large reservations go: far from the loaded files, whose neighbourhood is wanted for code.
static FAR: AtomicUsize = AtomicUsize::new(0x2000_0000_0000);
/// What is large, in bytes.
const LARGE: usize = 16 << 20;

/// A place for a mapping whose place does not matter; 0: the kernel's choice.
fn far(len: usize) -> usize {
    if len < LARGE { 0 } else { FAR.fetch_add(len.next_multiple_of(1 << 30) + (1 << 30), Ordering::Relaxed) }
}

fn map_with(hint: usize, len: usize, prot: i32, flags: i32, fd: i32) -> Result<NonNull<u8>, Errno> {
    let flags = flags | libc::MAP_NORESERVE;
    let hint = if hint == 0 { far(len) } else { hint };
    // SAFETY: without MAP_FIXED the kernel chooses free addresses; nothing mapped is touched.
    let at = check(unsafe {
        syscall(libc::SYS_mmap, &[hint, len, prot as usize, flags as usize, fd as isize as usize, 0])
    })?;
    NonNull::new(at as *mut u8).ok_or(Errno(libc::ENOMEM))
}

/// Replaces `[at, at + len)` by a fresh mapping with the given protection, flags and file.
///
/// # Safety
/// The range belongs to the caller and nobody relies on what is mapped there.
pub unsafe fn map_fixed(
    at: usize,
    len: usize,
    prot: i32,
    flags: i32,
    fd: i32,
    offset: usize,
) -> Result<(), Errno> {
    let flags = flags | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the caller owns the range.
    check(unsafe {
        syscall(libc::SYS_mmap, &[at, len, prot as usize, flags as usize, fd as isize as usize, offset])
    })
    .map(drop)
}

/// Unmaps a range.
///
/// # Safety
/// The range belongs to the caller and nobody uses it any more.
pub unsafe fn unmap(at: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: the caller owns the range.
    check(unsafe { syscall(libc::SYS_munmap, &[at, len]) }).map(drop)
}

/// Sets the protection (`PROT_*`) of a range of whole pages.
///
/// # Safety
/// Whoever uses the range gets along with the new protection.
pub unsafe fn protect(at: usize, len: usize, prot: i32) -> Result<(), Errno> {
    // SAFETY: the caller vouches for the range.
    check(unsafe { syscall(libc::SYS_mprotect, &[at, len, prot as usize]) }).map(drop)
}

/// `madvise(2)`.
///
/// # Safety
/// Nobody relies on contents that the advice discards.
pub unsafe fn advise(at: usize, len: usize, advice: i32) -> Result<(), Errno> {
    // SAFETY: the caller vouches for the range.
    check(unsafe { syscall(libc::SYS_madvise, &[at, len, advice as usize]) }).map(drop)
}

/// A new anonymous file of `len` bytes, all holes; closed on exec.
pub fn anonymous_file(len: usize) -> Result<i32, Errno> {
    // SAFETY: the name is a static C string; ftruncate acts on the new descriptor only.
    unsafe {
        let fd = check(syscall(
            libc::SYS_memfd_create,
            &[c"thermalloc".as_ptr() as usize, libc::MFD_CLOEXEC as usize],
        ))?;
        if let Err(errno) = check(syscall(libc::SYS_ftruncate, &[fd, len])) {
            syscall(libc::SYS_close, &[fd]);
            return Err(errno);
        }
        Ok(fd as i32)
    }
}
