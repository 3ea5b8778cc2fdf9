//! Each thread's cache: found through a thread slot, made on first use, emptied and passed on when the thread
//! ends.
//!
//! The end of a thread is seen by the destructor of a pthread key. Other destructors and the C library itself
//! still allocate and free after it; from then on the thread uses the *closed* cache, which has room for
//! nothing, so that every operation goes to the central lists and nothing is left behind.
//!
//! Locks: the registry's, then a bin's, then the pool's.
//!
//! # Safety
//! A slot's word is zero, or the address of a cache; caches are never unmapped.
#![allow(unsafe_code)]

use crate::cache::Cache;
use crate::hooks::hooks;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use thermalloc_sys::lock::Lock;
use thermalloc_sys::mem;

thermalloc_sys::thread_slot!(
    /// Address of the thread's cache.
    mod slot = "thermalloc_alloc_cache"
);

static CLOSED: Cache = Cache::closed();
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);
const NO_KEY: u32 = u32::MAX;

/// Addresses of the first cache, and of the first that has no thread.
struct Registry {
    first: usize,
    idle: usize,
}

static REGISTRY: Lock<Registry> = Lock::new(Registry { first: 0, idle: 0 });

/// Makes the key whose destructor sees threads end. Without one (there are 1024 a process) dead threads'
/// caches keep what they hold.
pub(crate) fn make_key() {
    let mut key = 0;
    // SAFETY: writes the key into a live local; the destructor is a plain function.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(at_exit)) } == 0 {
        KEY.store(key, Relaxed);
    }
}

extern "C" fn at_exit(_cache: *mut c_void) {
    match hooks() {
        Some(hooks) => (hooks.inside)(thread_exit),
        None => thread_exit(),
    }
}

/// The calling thread's cache, if it has one.
#[inline(always)]
pub(crate) fn cached() -> Option<&'static Cache> {
    at(slot::get())
}

/// Is this the cache of threads that have ended?
pub(crate) fn is_closed(cache: &Cache) -> bool {
    core::ptr::eq(cache, &CLOSED)
}

#[inline(always)]
fn at(address: usize) -> Option<&'static Cache> {
    // SAFETY: zero, or the address of a cache.
    unsafe { (address as *const Cache).as_ref() }
}

/// The calling thread's cache, made if need be; the heap must be set up. The closed cache where there is no
/// memory for one.
pub(crate) fn cache() -> &'static Cache {
    cached().unwrap_or_else(open)
}

#[cold]
fn open() -> &'static Cache {
    let Some(cache) = reuse().or_else(create) else { return &CLOSED };
    slot::set(core::ptr::from_ref(cache) as usize);
    let key = KEY.load(Relaxed);
    if key != NO_KEY {
        // It may call calloc, which finds the cache in place.
        // SAFETY: the key was made by `make_key`.
        unsafe { libc::pthread_setspecific(key, core::ptr::from_ref(cache).cast()) };
    }
    cache
}

fn reuse() -> Option<&'static Cache> {
    let mut registry = REGISTRY.lock();
    let cache = at(registry.idle)?;
    registry.idle = cache.next_idle.get();
    cache.owned.set(1);
    Some(cache)
}

fn create() -> Option<&'static Cache> {
    let cache = at(mem::map(Cache::bytes()).ok()?.as_ptr() as usize)?;
    cache.lay_out();
    cache.owned.set(1);
    let mut registry = REGISTRY.lock();
    cache.next.set(registry.first);
    registry.first = core::ptr::from_ref(cache) as usize;
    Some(cache)
}

/// Gives back what the calling thread's cache holds. Happens by itself when a thread of the C library ends; a
/// thread made otherwise should call it last. It may still allocate and free afterwards, more slowly.
pub fn thread_exit() {
    let cache = cached();
    slot::set(&raw const CLOSED as usize);
    if let Some(cache) = cache
        && !is_closed(cache)
    {
        cache.empty();
        retire(&mut REGISTRY.lock(), cache);
    }
}

fn retire(registry: &mut Registry, cache: &'static Cache) {
    cache.owned.set(0);
    cache.next_idle.set(registry.idle);
    registry.idle = core::ptr::from_ref(cache) as usize;
}

/// In the child after `fork`: takes over the caches of threads that exist no more.
pub(crate) fn adopt_all() {
    let mut registry = REGISTRY.lock();
    let mine = slot::get();
    let mut next = registry.first;
    while let Some(cache) = at(next) {
        if next != mine && cache.owned.get() != 0 {
            cache.empty();
            retire(&mut registry, cache);
        }
        next = cache.next.get();
    }
}

/// Calls `visit` with each chunk that some cache keeps in a bin. No other thread may be inside the allocator.
pub(crate) fn for_each_cached(bin: usize, mut visit: impl FnMut(usize)) {
    for_each_cache(|cache| {
        // SAFETY: no thread uses its cache, says the caller.
        unsafe { cache.chunks(bin) }.iter().for_each(|&chunk| visit(chunk));
    });
}

/// Calls `visit` with each cache, also those without a thread, which are empty.
///
/// Caches are only ever added in front, so the list can be walked without the lock once its start is known.
pub(crate) fn for_each_cache(mut visit: impl FnMut(&'static Cache)) {
    let mut next = REGISTRY.lock().first;
    while let Some(cache) = at(next) {
        visit(cache);
        next = cache.next.get();
    }
}

/// Holds the registry's lock until [`unlock`].
pub(crate) fn lock() {
    core::mem::forget(REGISTRY.lock());
}

/// # Safety
/// The calling thread (or its parent before fork) called [`lock`].
pub(crate) unsafe fn unlock() {
    // SAFETY: forwarded to the caller.
    unsafe { REGISTRY.unlock() };
}
