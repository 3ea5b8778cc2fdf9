//! System calls by which the program changes mappings: where they concern the arena, the monitor answers them, so that
//! neither protection nor contents are lost.
//!
//! # Safety
//! Only pages that the program names, and that belong to its own heap, are discarded.
//!
//! # Signal context
//! Runs in the SIGSYS handler.
#![allow(unsafe_code)]

use crate::control;
use crate::memory;
use crate::protect;
use crate::signals::Answer;
use core::ops::Range;
use thermalloc_alloc as alloc;
use thermalloc_sys::gate::syscall;
use thermalloc_sys::mem::{self, PAGE};

/// The monitor's answer to a call on pages of the arena; `None` if the call is the kernel's.
pub fn answer(nr: i64, args: &[u64; 6]) -> Option<Answer> {
    let arena = alloc::arena();
    let start = args[0] as usize;
    let end = start.checked_add(args[1] as usize)?.checked_next_multiple_of(PAGE)?;
    let touches = start < arena.end && end > arena.start && start < end;
    if !touches {
        return None;
    }
    let inside = start >= arena.start && end <= arena.end && start.is_multiple_of(PAGE);
    match nr {
        libc::SYS_mprotect | libc::SYS_pkey_mprotect | libc::SYS_munmap | libc::SYS_madvise if !inside => {
            Some(Err(libc::EINVAL))
        }
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => {
            protect::wish(start..end, args[2] as i32);
            Some(Ok(0))
        }
        libc::SYS_madvise => advise(start..end, args[2] as i32),
        libc::SYS_munmap => {
            unmap(start..end);
            Some(Ok(0))
        }
        libc::SYS_mremap => Some(remap(args, inside)),
        libc::SYS_mmap if inside && control::is_aliased() => replace(start..end, args),
        _ => None,
    }
}

/// mmap in place of pages of the heap, which both views have to show: the pages stay the heap's, with the new mapping's contents. `None`:
/// a shared file, which no copy can stand for.
fn replace(range: Range<usize>, args: &[u64; 6]) -> Option<Answer> {
    let (prot, flags) = (args[2] as i32, args[3] as i32);
    if flags & libc::MAP_FIXED == 0 {
        return None;
    }
    if flags & libc::MAP_ANONYMOUS == 0 {
        if flags & libc::MAP_TYPE != libc::MAP_PRIVATE {
            return None;
        }
        discard(range.clone());
        let to = alloc::alias_of(range.start);
        // SAFETY: the kernel writes to pages whose contents the program has given up.
        let read =
            unsafe { syscall(libc::SYS_pread64, &[args[4] as usize, to, range.len(), args[5] as usize]) };
        if let Err(mem::Errno(errno)) = mem::check(read) {
            return Some(Err(errno));
        }
    } else {
        discard(range.clone());
    }
    protect::wish(range.clone(), prot);
    Some(Ok(range.start as u64))
}

/// mremap of pages of the heap: shrinks in place, or copies to a mapping outside the arena, since the arena's own pages stay
/// where they are.
fn remap(args: &[u64; 6], inside: bool) -> Answer {
    let [old, old_len, new_len, flags, fixed, _] = args.map(|arg| arg as usize);
    let fixed_at = flags as i32 & libc::MREMAP_FIXED != 0;
    let old_len = old_len.next_multiple_of(PAGE);
    let new_len = new_len.checked_next_multiple_of(PAGE).ok_or(libc::ENOMEM)?;
    if !inside || new_len == 0 {
        return Err(libc::EINVAL);
    }
    if new_len <= old_len && !fixed_at {
        unmap(old + new_len..old + old_len);
        return Ok(old as u64);
    }
    if flags as i32 & libc::MREMAP_MAYMOVE == 0 {
        return Err(libc::ENOMEM);
    }
    let map_flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if fixed_at { libc::MAP_FIXED } else { 0 };
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let at = if fixed_at { fixed } else { 0 };
    // SAFETY: a fresh mapping, or one where the program asked for it.
    let new = unsafe { syscall(libc::SYS_mmap, &[at, new_len, prot, map_flags as usize, usize::MAX, 0]) };
    let new = mem::check(new).map_err(|mem::Errno(errno)| errno)?;
    // SAFETY: the new mapping has at least so many bytes, and nobody else knows it yet.
    let copy = unsafe { core::slice::from_raw_parts_mut(new as *mut u8, old_len.min(new_len)) };
    if !memory::read(old, copy) {
        return Err(libc::EFAULT);
    }
    unmap(old..old + old_len);
    Ok(new as u64)
}

/// The program gives pages up: they are gone for it until they are allocated again.
fn unmap(range: Range<usize>) {
    if !range.is_empty() {
        discard(range.clone());
        protect::wish(range, libc::PROT_NONE);
    }
}

fn advise(range: Range<usize>, advice: i32) -> Option<Answer> {
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE if control::is_aliased() => {
            discard(range);
            Some(Ok(0))
        }
        // Contents of shared memory stay over a fork by being copied; there is nothing to exempt.
        libc::MADV_DONTFORK | libc::MADV_DOFORK | libc::MADV_MERGEABLE | libc::MADV_UNMERGEABLE => {
            Some(Ok(0))
        }
        _ => None,
    }
}

/// The pages read as zero from here on.
fn discard(range: Range<usize>) {
    let advice = if control::is_aliased() { libc::MADV_REMOVE } else { libc::MADV_DONTNEED };
    let at = if control::is_aliased() { alloc::alias_of(range.start) } else { range.start };
    // SAFETY: the program gave the contents of its pages up.
    let _ = unsafe { mem::advise(at, range.len(), advice) };
}
