//! Instrumented binaries: what the monitor tells code that counts its accesses itself.
//!
//! A binary built with `thermalloc-cc` carries a [`Module`], which says where the covered part of the heap is; zero bytes until
//! [`attach`]. Its code counts an access to that part in the thread's sheet and makes it where it cannot fault. So such an
//! access is counted once, inline, and all other code's accesses fault, or are patched, as ever.
//!
//! # Safety
//! A module is part of a loaded file, from its constructor to its destructor.
#![allow(unsafe_code)]

use crate::access::{Access, By, Kind};
use crate::clock;
use crate::control;
use crate::heat;
use crate::protect::{self, Method};
use crate::step;
use crate::thread::{Runtime, Thread};
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use thermalloc_alloc as alloc;
use thermalloc_sys::lock::Lock;

/// Version of the contract.
const VERSION: u32 = 1;
/// How the code makes its accesses.
const ALIAS: u32 = 1;
const WRPKRU: u32 = 2;

/// What an instrumented executable or shared object carries.
#[repr(C)]
pub struct Module {
    version: u32,
    shape: u32,
    base: AtomicU64,
    length: AtomicU64,
    displacement: AtomicI64,
    open: AtomicU32,
    has_pku: AtomicU32,
}

static MODULES: Lock<Vec<usize>> = Lock::new(Vec::new());

/// A binary has been loaded.
///
/// # Safety
/// `module` lives, at this address, until [`detach`].
pub unsafe fn attach(module: *const Module) {
    let mut modules = MODULES.lock();
    modules.push(module as usize);
    // SAFETY: the caller's promise.
    tell(unsafe { &*module });
}

/// A binary is about to be unloaded.
pub fn detach(module: *const Module) {
    MODULES.lock().retain(|&known| known != module as usize);
}

/// Tells all binaries what is in force: after a start, a pause, a resumption.
pub fn tell_all() {
    for &module in MODULES.lock().iter() {
        // SAFETY: attached, hence alive.
        tell(unsafe { &*(module as *const Module) });
    }
}

fn tell(module: &Module) {
    // Nothing is inside, first: base and displacement are not read then.
    module.length.store(0, Ordering::SeqCst);
    if module.version != VERSION || !control::is_started() || control::is_paused() {
        return;
    }
    let covered = heat::covered();
    let open = match (module.shape, protect::method()) {
        (ALIAS, Some(_)) if control::is_aliased() => 0,
        (WRPKRU, Some(Method::Key(key))) => 3 << (2 * key.number()),
        _ => return,
    };
    let Some(_) = Thread::current().and_then(Thread::need_sheet) else { return };
    module.base.store(covered.start as u64, Ordering::SeqCst);
    let displacement = if module.shape == ALIAS { alloc::displacement() as i64 } else { 0 };
    module.displacement.store(displacement, Ordering::SeqCst);
    module.open.store(open, Ordering::SeqCst);
    module.length.store(covered.len() as u64, Ordering::SeqCst);
}

/// What the calling thread adds to the address of a granule to reach its cell; never 0.
pub fn bias(thread: &'static Thread) -> usize {
    let _runtime = Runtime::enter(thread);
    thread.need_sheet().map_or(1, heat::Sheet::bias)
}

/// A counter of the calling thread has wrapped.
pub fn on_wrap(thread: &'static Thread, counter: usize) {
    let _runtime = Runtime::enter(thread);
    heat::on_wrap(counter, clock::now());
}

/// Charges an access that has no counter. `kinds`: 1 read, 2 write, 3 both.
pub fn charge(thread: &'static Thread, addr: usize, len: usize, kinds: u32) {
    if control::is_paused() {
        return;
    }
    let _runtime = Runtime::enter(thread);
    let now = clock::now();
    for (bit, kind) in [(1, Kind::Read), (2, Kind::Write)] {
        if kinds & bit != 0 && len != 0 && step::is_watched(addr, len, kind) {
            let access = Access { addr, len, kind, by: By::Program };
            heat::charge(&access, thread.ordinal.load(Ordering::Relaxed), now);
        }
    }
}
