//! Words of a thread that the kernel accesses by itself, at any time or when the thread ends: its rseq area, its
//! robust-futex list, and the word that it clears at the end. Where they lie in the heap (a thread whose stack was
//! allocated, say), their pages stay open while the thread lives: accesses to these pages go unseen in mode `pp`.
//!
//! The robust list's entries are mutexes, which may lie anywhere in the heap. A thread that ends therefore walks its list
//! itself, as the kernel would (kernel/futex/core.c, exit_robust_list): each word that it still owns is marked, and one
//! waiter woken.
//!
//! # Safety
//! Words are changed that the thread registered for exactly this change.
//!
//! # Signal context
//! Runs in the SIGSYS handler.
#![allow(unsafe_code)]

use crate::memory;
use crate::protect;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use thermalloc_sys::gate::syscall;

/// Registrations that one thread can have: rseq, robust list, clear_child_tid, and one to spare.
const MAX: usize = 4;
/// Entries of a robust list that are followed (ROBUST_LIST_LIMIT).
const ROBUST_LIMIT: usize = 2048;

/// The pages that are open for a thread's registrations.
#[derive(Clone, Copy, Default)]
pub struct Registrations {
    ranges: [(usize, usize); MAX],
    count: usize,
}

impl Registrations {
    /// A system call registers memory, perhaps.
    pub fn note(&mut self, nr: i64, args: &[u64; 6]) {
        let (at, len) = match nr {
            libc::SYS_rseq => (args[0], args[1]),
            libc::SYS_set_robust_list => (args[0], args[1]),
            libc::SYS_set_tid_address => (args[0], 4),
            _ => return,
        };
        self.add(at as usize, len as usize);
    }

    /// Keeps the pages of a range open.
    pub fn add(&mut self, at: usize, len: usize) {
        let range = at..at.saturating_add(len);
        if self.count < MAX && overlaps(&protect::watched_extent(), &range) {
            protect::pin(range.clone());
            self.ranges[self.count] = (range.start, range.end);
            self.count += 1;
        }
    }

    /// The registered ranges: start and end.
    pub fn ranges(&self) -> &[(usize, usize)] {
        &self.ranges[..self.count]
    }

    /// The thread is gone: closes its pages.
    pub fn clear(&mut self) {
        for &(start, end) in self.ranges() {
            protect::unpin(start..end);
        }
        self.count = 0;
    }
}

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Does for the ending thread what the kernel does with its robust list, as far as it lies in the heap.
pub fn release_robust(tid: u32) {
    let (mut head, mut len) = (0usize, 0usize);
    let out = [0, &raw mut head as usize, &raw mut len as usize];
    // SAFETY: the kernel writes two words, which are alive.
    if unsafe { syscall(libc::SYS_get_robust_list, &out) } < 0 || head == 0 {
        return;
    }
    // struct robust_list_head: next, futex_offset, list_op_pending.
    let Some([first, offset, pending]) = memory::read_value::<[u64; 3]>(head) else { return };
    let mut entry = first;
    for _ in 0..ROBUST_LIMIT {
        // Bit 0 marks a priority-inheritance futex, which the kernel knows by its own means.
        let at = entry & !1;
        if at == 0 || at as usize == head {
            break;
        }
        let next = memory::read_value::<u64>(at as usize);
        if at != pending & !1 {
            mark_owner_dead(at.wrapping_add(offset) as usize, tid);
        }
        let Some(next) = next else { break };
        entry = next;
    }
    if pending & !1 != 0 {
        mark_owner_dead((pending & !1).wrapping_add(offset) as usize, tid);
    }
}

/// Marks a futex word of the heap whose owner ends, and wakes a waiter.
fn mark_owner_dead(at: usize, tid: u32) {
    if !thermalloc_alloc::contains(at) || !at.is_multiple_of(4) {
        return;
    }
    protect::window(at..at + 4, |open| {
        // SAFETY: an aligned word of the arena, which stays mapped; the window makes it accessible.
        let word = unsafe { AtomicU32::from_ptr(open as *mut u32) };
        let owned = |word: u32| word & libc::FUTEX_TID_MASK == tid;
        let died = |word: u32| owned(word).then_some((word & libc::FUTEX_WAITERS) | libc::FUTEX_OWNER_DIED);
        if let Ok(before) = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, died)
            && before & libc::FUTEX_WAITERS != 0
        {
            // Both ways to wait on the word: shared waiters are found by the memory behind it.
            // SAFETY: wakes whoever waits; touches no memory but the word.
            unsafe {
                syscall(libc::SYS_futex, &[open, libc::FUTEX_WAKE as usize, 1]);
            }
        }
    });
}
