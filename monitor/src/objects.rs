//! Births and deaths of objects: which are watched, who allocated them, and their entry into the heat accounts.
//!
//! Runs inside malloc and free, between `Runtime::enter` and its end.
//!
//! # Safety
//! The unwinder's state is the thread's own.
#![allow(unsafe_code)]

use crate::clock;
use crate::config::{Config, MAX_DEPTH, Watch};
use crate::heat::{self, SiteId};
use crate::memory;
use crate::protect;
use crate::thread::Thread;
use crate::unwind::{self, Caller, ModuleMatcher};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;
use thermalloc_alloc as alloc;

static DEPTH: AtomicUsize = AtomicUsize::new(0);
static WATCH: OnceLock<(Watch, Option<ModuleMatcher>)> = OnceLock::new();
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Takes over the settings.
pub fn configure(config: &Config) {
    DEPTH.store(config.depth, Ordering::Relaxed);
    if !config.watch.is_everything() {
        let matcher = config.watch.module.as_deref().map(ModuleMatcher::new);
        let _ = WATCH.set((config.watch.clone(), matcher));
    }
}

/// Whether an object of `size` bytes, allocated by the code at `ip`, is to be watched.
pub fn is_wanted(size: usize, ip: u64) -> bool {
    let Some((watch, module)) = WATCH.get() else { return true };
    watch.min_size.is_none_or(|min| size >= min)
        && watch.max_size.is_none_or(|max| size <= max)
        && module.as_ref().is_none_or(|module| module.matches(ip))
        && watch.sample.is_none_or(|n| SEQUENCE.fetch_add(1, Ordering::Relaxed).is_multiple_of(n))
}

/// An object begins.
pub fn born(thread: &Thread, address: usize, size: usize, caller: Caller) {
    let Some(object) = alloc::object_at(address).filter(|object| object.watched) else { return };
    let site = site_of(thread, caller);
    let now = clock::now();
    thread.collect_on_time(now);
    heat::born(&object, size, site, now);
}

/// The call stack of `caller`.
fn site_of(thread: &Thread, caller: Caller) -> SiteId {
    let mut frames = [0u64; MAX_DEPTH + 1];
    // SAFETY: this is the thread's own state, and malloc does not nest inside the runtime.
    let state = unsafe { thread.unwind() };
    let depth = DEPTH.load(Ordering::Relaxed);
    let count = unwind::capture_with(state, caller, depth, &mut frames, &mut heap_word);
    heat::intern(&frames[..count])
}

/// Labels are cut to so many bytes.
const LABEL: usize = 250;

/// The program's own allocator has a pool at `range`, cut into chunks of `chunk` bytes. `label` is the address of a string.
pub fn pool(thread: &Thread, range: Range<usize>, chunk: usize, label: usize, caller: Caller) {
    if is_ours(&range) {
        heat::add_pool(range, chunk, &text(label), site_of(thread, caller), clock::now());
    }
}

/// The program's own allocator has handed out an object.
pub fn named(thread: &Thread, range: Range<usize>, label: usize, caller: Caller) {
    if is_ours(&range) {
        heat::name(range.start, range.len(), &text(label), site_of(thread, caller), clock::now());
    }
}

/// It has been given back.
pub fn unnamed(thread: &Thread, address: usize, caller: Caller) {
    if alloc::contains(address) {
        heat::unname(address, site_of(thread, caller), clock::now());
    }
}

/// Whether a range lies within one watched object.
fn is_ours(range: &Range<usize>) -> bool {
    let object = alloc::object_at(range.start).filter(|object| object.watched && object.live);
    object.is_some_and(|object| !range.is_empty() && range.end - object.base <= object.capacity)
}

/// A string of the program's, which may lie in the watched heap; null is empty.
fn text(address: usize) -> String {
    let mut bytes = Vec::new();
    while address != 0 && bytes.len() < LABEL {
        match memory::read_value::<u8>(address + bytes.len()) {
            None | Some(0) => break,
            Some(byte) => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An object ends; it is still allocated.
pub fn died(address: usize) {
    if let Some(object) = alloc::object_at(address).filter(|object| object.watched && object.live) {
        heat::died(&object, clock::now());
        protect::forget_wishes(object.base..object.base + object.capacity);
    }
}

/// A word of a stack that lies in the heap; `None` for other stacks, which can be read as they are.
fn heap_word(address: u64) -> Option<u64> {
    let address = address as usize;
    if alloc::contains(address) { memory::read_value(address) } else { None }
}
