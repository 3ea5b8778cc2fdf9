//! In the child after `fork`: memory of its own for the alias view, whose pages the kernel shares instead of
//! copying.
//!
//! A new memory file gets a copy of what the old one holds (its data ranges, or where the program has closed
//! our descriptor, the touched part of every run), and is mapped over both views. The parent must not touch
//! the heap meanwhile.
//!
//! # Safety
//! The child has a single thread, which is here.
#![allow(unsafe_code)]

use crate::arena;
use crate::hooks::hooks;
use crate::meta::{ANNOUNCED, HEAP, Kind};
use crate::pool;
use crate::shape::table;
use core::ops::Range;
use thermalloc_sys::gate::syscall;
use thermalloc_sys::mem::{self, Errno, check};

/// Copies the heap into a memory file of the child's own and maps it in place of the parent's. Nothing to do
/// in the private view. On an error, a positive `errno`, the heap is still the parent's, and the child must
/// not go on.
///
/// # Safety
/// Called in the child, between `fork` and [`fork_child`](crate::fork_child), while the parent waits.
pub unsafe fn fork_copy_alias() -> Result<(), i32> {
    if HEAP.len.get() == 0 || HEAP.displacement.get() == 0 {
        return Ok(());
    }
    copy_arena().map_err(|Errno(errno)| errno)
}

fn copy_arena() -> Result<(), Errno> {
    let old = arena::file();
    let len = HEAP.len.get();
    let Ok(new) = arena::new_file(len) else { return copy_without_file(len) };
    let copied = match old {
        Some(old) => copy_data_ranges(old, new, len),
        None => copy_runs(new),
    };
    copied.and_then(|()| arena::map_file(new, HEAP.base.get(), len)).inspect_err(|_| arena::close(new))?;
    if let Some(old) = old {
        arena::close(old);
    }
    arena::adopt_file(new);
    protect_again();
    Ok(())
}

/// The copy where no descriptor or no file can be had (RLIMIT_NOFILE, RLIMIT_FSIZE): shared anonymous memory, mapped a
/// second time by mremap with an old size of 0.
fn copy_without_file(len: usize) -> Result<(), Errno> {
    let new = mem::shared(len)?.as_ptr() as usize;
    let (program, alias) = (HEAP.base.get(), HEAP.base.get() + HEAP.displacement.get());
    let written = for_each_run(|run| {
        let range = data_of(run);
        // SAFETY: both are mappings of the arena's size, the old one readable, the new one nobody else's.
        unsafe {
            core::ptr::copy_nonoverlapping(
                (alias + range.start) as *const u8,
                (new + range.start) as *mut u8,
                range.len(),
            );
        }
        Ok(())
    });
    // SAFETY: the arena is ours, and the new mapping holds a copy of what was mapped.
    written.and_then(|()| unsafe {
        mem::remap(new, len, len, alias)?;
        mem::remap(alias, 0, len, program)
    })?;
    if let Some(old) = arena::file() {
        arena::close(old);
    }
    arena::adopt_file(-1);
    protect_again();
    Ok(())
}

/// Copies what the old file holds; holes stay holes.
fn copy_data_ranges(old: i32, new: i32, len: usize) -> Result<(), Errno> {
    let seek = |from: usize, whence: i32| {
        // SAFETY: moves the offset of our own descriptor, which nobody uses.
        check(unsafe { syscall(libc::SYS_lseek, &[old as usize, from, whence as usize]) })
    };
    let mut at = 0;
    while at < len {
        let start = match seek(at, libc::SEEK_DATA) {
            Err(Errno(libc::ENXIO)) => break,
            start => start?,
        };
        let end = seek(start, libc::SEEK_HOLE)?;
        copy(new, start..end)?;
        at = end;
    }
    Ok(())
}

/// Copies the part of every run that may hold data.
fn copy_runs(new: i32) -> Result<(), Errno> {
    for_each_run(|run| copy(new, data_of(run)))
}

/// Offsets of the part of a run that may hold data.
fn data_of(run: u32) -> Range<usize> {
    let entry = HEAP.slot(run);
    let mut touched = entry.touched.get();
    let start = HEAP.offset(HEAP.slot_addr(run));
    if entry.kind() == Kind::Slab {
        let class = table().class(crate::central::class_of(HEAP.bin(start).get() as usize));
        touched = touched.max(entry.fresh.get() as usize * class.chunk_size as usize);
    }
    start..start + touched
}

/// Writes a range of the old alias view into the new file.
fn copy(new: i32, range: Range<usize>) -> Result<(), Errno> {
    let alias = HEAP.base.get() + HEAP.displacement.get();
    let mut at = range.start;
    while at < range.end {
        // SAFETY: the kernel reads the alias view, which is readable.
        let written =
            check(unsafe { syscall(libc::SYS_pwrite64, &[new as usize, alias + at, range.end - at, at]) });
        match written {
            Ok(0) => return Err(Errno(libc::ENOSPC)),
            Err(Errno(libc::EINTR)) => {}
            written => at += written?,
        }
    }
    Ok(())
}

/// The mappings are new: the monitor's protection is gone from them.
fn protect_again() {
    let Some(hooks) = hooks() else { return };
    let _ = for_each_run(|run| {
        if HEAP.slot(run).has(ANNOUNCED) {
            (hooks.committed)(pool::addresses(run));
        }
        Ok(())
    });
}

/// Visits every run that is in use or retained.
fn for_each_run(mut visit: impl FnMut(u32) -> Result<(), Errno>) -> Result<(), Errno> {
    for slot in pool::used_slots().into_iter().flatten() {
        if !matches!(HEAP.slot(slot).kind(), Kind::Free | Kind::Tail) {
            visit(slot)?;
        }
    }
    Ok(())
}
