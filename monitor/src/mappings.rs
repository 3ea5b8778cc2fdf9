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
use crate::protect;
use crate::signals::Answer;
use core::ops::Range;
use thermalloc_alloc as alloc;
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
    let inside = start >= arena.start && end <= arena.end && start % PAGE == 0;
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
            discard(start..end);
            protect::wish(start..end, libc::PROT_NONE);
            Some(Ok(0))
        }
        libc::SYS_mremap => Some(Err(libc::ENOMEM)),
        _ => None,
    }
}

fn advise(range: Range<usize>, advice: i32) -> Option<Answer> {
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE if control::is_aliased() => {
            discard(range);
            Some(Ok(0))
        }
        // Contents of shared memory stay over a fork by being copied; there is nothing to exempt.
        libc::MADV_DONTFORK | libc::MADV_DOFORK | libc::MADV_MERGEABLE | libc::MADV_UNMERGEABLE => Some(Ok(0)),
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
