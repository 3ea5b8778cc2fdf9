//! The arena: reserving it with its tables, committing slots before first use, and giving memory back.
//!
//! # Safety
//! Only ranges of the arena and its tables are mapped over, and only those whose slots the caller owns.
//!
//! # Signal context
//! [`contains`], [`arena`] and [`alias_of`] may be used in a handler. The rest makes system calls under the
//! pool's lock.
#![allow(unsafe_code)]

use crate::config::{InitError, ViewKind};
use crate::meta::{BIT_WORDS, GRANULE_SHIFT, HEAP, SLOT_BYTES, SLOT_SHIFT, Slot};
use core::ops::Range;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use thermalloc_sys::gate::syscall;
use thermalloc_sys::mem::{self, Errno};

/// Where the arena should lie: 16 TiB, far from executables, libraries and stacks.
const HINT: usize = 0x1000_0000_0000;
const LARGEST_PRIVATE: usize = 1 << 40;
const LARGEST_ALIAS: usize = 1 << 38;
const SMALLEST: usize = 64 << 20;
/// Descriptors from here on are out of the way of programs that count on low ones.
const FD_FROM: usize = 1000;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// The memory file of the alias view, or -1, and its inode: a program may close descriptors that are not its
/// own.
static FILE: AtomicI32 = AtomicI32::new(-1);
static FILE_INODE: AtomicU64 = AtomicU64::new(0);

/// Does an address lie in the program view of the arena?
#[inline(always)]
pub fn contains(addr: usize) -> bool {
    HEAP.offset(addr) < HEAP.len.get()
}

/// The program view; empty before the heap is set up.
#[inline]
pub fn arena() -> Range<usize> {
    let base = HEAP.base.get();
    base..base + HEAP.len.get()
}

/// Where an address of the program view can be accessed whatever its protection. The address itself if the
/// view is private or the address is not ours.
#[inline(always)]
pub fn alias_of(addr: usize) -> usize {
    if contains(addr) { addr + HEAP.displacement.get() } else { addr }
}

/// From the program view to the alias view; 0 if the view is private.
pub fn displacement() -> usize {
    HEAP.displacement.get()
}

/// Reserves the largest arena that the system grants and publishes it in [`HEAP`], `len` last.
pub(crate) fn reserve(view: ViewKind, most: Option<usize>) -> Result<(), InitError> {
    let largest = if view == ViewKind::Alias { LARGEST_ALIAS } else { LARGEST_PRIVATE };
    let wanted = most.unwrap_or(largest).clamp(SMALLEST, largest) & !(SLOT_BYTES - 1);
    let mut len = wanted;
    loop {
        match reserve_exactly(view, len) {
            Ok(()) => return Ok(()),
            Err(Errno(errno)) if len <= SMALLEST => return Err(InitError::NoArena(errno)),
            Err(_) => len = (len / 2).max(SMALLEST) & !(SLOT_BYTES - 1),
        }
    }
}

fn reserve_exactly(view: ViewKind, len: usize) -> Result<(), Errno> {
    let views = if view == ViewKind::Alias { 2 } else { 1 };
    let slots = len >> SLOT_SHIFT;
    let states = len >> GRANULE_SHIFT;
    let bits = slots * size_of::<[u64; BIT_WORDS]>();
    let entries = slots * size_of::<Slot>() + slots;
    // The program needs room too: leave it half of what it may map.
    let total = views * len + SLOT_BYTES + states + bits + entries;
    if total > address_limit() / 2 || (view == ViewKind::Alias && len > limit(libc::RLIMIT_FSIZE)) {
        return Err(Errno(libc::ENOMEM));
    }
    let mut held = Held::default();
    let arena =
        held.keep(mem::reserve(HINT, views * len + SLOT_BYTES)?.as_ptr() as usize, views * len + SLOT_BYTES);
    let base = arena.next_multiple_of(SLOT_BYTES);
    let table = held.keep(mem::reserve(0, states + bits)?.as_ptr() as usize, states + bits);
    // Readable everywhere, so that any address can be asked about; writable once committed.
    // SAFETY: reserved above.
    unsafe { mem::protect(table, states + bits, libc::PROT_READ)? };
    let entries = held.keep(mem::map(entries)?.as_ptr() as usize, entries);
    if view == ViewKind::Alias {
        map_views(base, len)?;
        HEAP.displacement.set(len);
    }
    held.release();
    HEAP.base.set(base);
    HEAP.states.set(table);
    HEAP.state_bias.set(table.wrapping_sub(base >> GRANULE_SHIFT));
    HEAP.bits.set(table + states);
    HEAP.slots.set(entries);
    HEAP.bins.set(entries + slots * size_of::<Slot>());
    HEAP.len.set(len);
    Ok(())
}

/// Mappings of an attempt, unmapped when it fails.
#[derive(Default)]
struct Held {
    ranges: [(usize, usize); 3],
    count: usize,
}

impl Held {
    fn keep(&mut self, at: usize, len: usize) -> usize {
        self.ranges[self.count] = (at, len);
        self.count += 1;
        at
    }

    fn release(&mut self) {
        self.count = 0;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for (at, len) in &self.ranges[..self.count] {
            // SAFETY: mapped by this attempt and published nowhere. A failure leaves address space reserved.
            let _ = unsafe { mem::unmap(*at, *len) };
        }
    }
}

/// Maps one memory file over both views.
fn map_views(base: usize, len: usize) -> Result<(), Errno> {
    let fd = new_file(len)?;
    let mapped = map_file(fd, base, len);
    if mapped.is_err() {
        close(fd);
        return mapped;
    }
    adopt_file(fd);
    mapped
}

/// Maps the file over program view and alias view, both readable and writable.
pub(crate) fn map_file(fd: i32, base: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: the arena is ours; in a fork's child, the file holds a copy of what was mapped.
    unsafe {
        mem::map_fixed(base, len, READ_WRITE, libc::MAP_SHARED, fd, 0)?;
        mem::map_fixed(base + len, len, READ_WRITE, libc::MAP_SHARED, fd, 0)?;
        // A core dump would read all of the file, and so fill it: it gets what is committed, once.
        let _ = mem::advise(base, 2 * len, libc::MADV_DONTDUMP);
    }
    Ok(())
}

/// A memory file whose descriptor is out of the program's way.
pub(crate) fn new_file(len: usize) -> Result<i32, Errno> {
    let low = mem::anonymous_file(len)?;
    // SAFETY: acts on our own descriptor.
    let high = unsafe { syscall(libc::SYS_fcntl, &[low as usize, libc::F_DUPFD_CLOEXEC as usize, FD_FROM]) };
    if high < 0 {
        return Ok(low);
    }
    close(low);
    Ok(high as i32)
}

pub(crate) fn close(fd: i32) {
    // SAFETY: the descriptor is ours.
    unsafe { syscall(libc::SYS_close, &[fd as usize]) };
}

/// Remembers the file behind the views.
pub(crate) fn adopt_file(fd: i32) {
    FILE_INODE.store(inode(fd).unwrap_or(0), Relaxed);
    FILE.store(fd, Relaxed);
}

/// The file behind the views, unless the program has closed its descriptor.
pub(crate) fn file() -> Option<i32> {
    let fd = FILE.load(Relaxed);
    let ours = inode(fd).is_some_and(|inode| inode == FILE_INODE.load(Relaxed) && inode != 0);
    ours.then_some(fd)
}

fn inode(fd: i32) -> Option<u64> {
    let mut stat = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel writes a struct stat (the same as libc's on x86-64) into a live local.
    let result = unsafe { syscall(libc::SYS_fstat, &[fd as isize as usize, stat.as_mut_ptr() as usize]) };
    // SAFETY: all zeroes is a valid struct stat.
    (result == 0).then(|| unsafe { stat.assume_init() }.st_ino)
}

fn address_limit() -> usize {
    limit(libc::RLIMIT_AS)
}

fn limit(resource: libc::__rlimit_resource_t) -> usize {
    let mut old = [u64::MAX; 2];
    // SAFETY: the kernel writes a struct rlimit64, two words, into a live local.
    unsafe { syscall(libc::SYS_prlimit64, &[0, resource as usize, 0, old.as_mut_ptr() as usize]) };
    usize::try_from(old[0]).unwrap_or(usize::MAX)
}

/// Makes slots and their table entries writable.
pub(crate) fn commit(slots: Range<u32>) -> Result<(), Errno> {
    let count = (slots.end - slots.start) as usize;
    let bytes = count << SLOT_SHIFT;
    let states = core::ptr::from_ref(HEAP.state((slots.start as usize) << SLOT_SHIFT)) as usize;
    let bits = core::ptr::from_ref(HEAP.free_bits(slots.start)) as usize;
    // SAFETY: parts of the arena and its tables that nobody uses yet.
    unsafe {
        mem::protect(states, bytes >> GRANULE_SHIFT, READ_WRITE)?;
        mem::protect(bits, count * size_of::<[u64; BIT_WORDS]>(), READ_WRITE)?;
        if HEAP.displacement.get() == 0 {
            mem::protect(HEAP.slot_addr(slots.start), bytes, READ_WRITE)?;
        } else {
            let _ = mem::advise(HEAP.slot_addr(slots.start), bytes, libc::MADV_DODUMP);
        }
    }
    Ok(())
}

/// Gives the memory of a range of whole pages back; it reads as zero afterwards. Returns false if the system
/// refused.
///
/// # Safety
/// No live object lies in the range, and the caller owns its slots.
pub(crate) unsafe fn give_back(at: usize, len: usize) -> bool {
    let displacement = HEAP.displacement.get();
    let advice = if displacement == 0 { libc::MADV_DONTNEED } else { libc::MADV_REMOVE };
    // SAFETY: forwarded to the caller. The alias view is writable, as MADV_REMOVE demands.
    unsafe { mem::advise(at + displacement, len, advice) }.is_ok()
}

/// Replaces a private range by a fresh mapping, undoing mremap's traces. Returns false if the system refused.
///
/// # Safety
/// As [`give_back`].
pub(crate) unsafe fn map_afresh(at: usize, len: usize) -> bool {
    // SAFETY: forwarded to the caller.
    unsafe { mem::map_fixed(at, len, READ_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) }.is_ok()
}

/// Asks for huge pages in a private range; where the system has none to give, nothing changes.
pub(crate) fn prefer_huge(range: Range<usize>) {
    // SAFETY: advice that changes no contents.
    let _ = unsafe { mem::advise(range.start, range.len(), libc::MADV_HUGEPAGE) };
}

/// Moves `len` bytes of pages from one private range to another; the old range reads as zero afterwards.
/// Returns false, with nothing changed, if the system cannot.
///
/// # Safety
/// The caller owns both ranges; nobody relies on what is in the new one.
pub(crate) unsafe fn move_pages(from: usize, to: usize, len: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: forwarded to the caller.
    let result = unsafe { syscall(libc::SYS_mremap, &[from, len, len, flags as usize, to]) };
    result == to as isize
}

/// Gives back the states of a slot, which read as VIRGIN afterwards.
pub(crate) fn forget_states(slot: u32) {
    let at = core::ptr::from_ref(HEAP.state((slot as usize) << SLOT_SHIFT)) as usize;
    // SAFETY: the caller owns the slot, and no object is live in it.
    let forgotten = unsafe { mem::advise(at, SLOT_BYTES >> GRANULE_SHIFT, libc::MADV_DONTNEED) };
    if forgotten.is_err() {
        for offset in (0..SLOT_BYTES).step_by(1 << GRANULE_SHIFT) {
            HEAP.state(((slot as usize) << SLOT_SHIFT) + offset).set(crate::meta::VIRGIN);
        }
    }
}
