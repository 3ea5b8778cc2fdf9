//! Protection of the watched slots, and its openings.
//!
//! `pp`: page protection. A page is open while its count is above zero: steps and system calls of several threads
//! may need it at the same time. While it is open, *every* thread can access it unseen: the hole of that method.
//!
//! `mpk`: the slots carry one key; opening is a matter of the one thread's PKRU, which the callers edit in the
//! signal frame.
//!
//! # Safety
//! Only pages of the arena change protection, and only between what the monitor wants and what the program
//! asked for; the memory stays mapped.
//!
//! # Signal context
//! Everything here runs in handlers. The spin lock is held for one system call, with signals blocked.
#![allow(unsafe_code)]

use crate::config::Watched;
use crate::pku::{self, Key};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use thermalloc_alloc as alloc;
use thermalloc_sys::gate;
use thermalloc_sys::mem::{self, Errno, PAGE};

/// How pages are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `mprotect`.
    Pages,
    /// A protection key.
    Key(Key),
}

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const OFF: u8 = 0;
const PAGES: u8 = 1;
const KEY: u8 = 2;

static METHOD: AtomicU8 = AtomicU8::new(OFF);
static KEY_NUMBER: AtomicU8 = AtomicU8::new(0);
static LOADS: AtomicBool = AtomicBool::new(true);
static ALIASED: AtomicBool = AtomicBool::new(false);
/// Address of the per-page tables: open counts, then what the program asked for.
static COUNTS: AtomicUsize = AtomicUsize::new(0);
static WISHES: AtomicUsize = AtomicUsize::new(0);
/// End of the highest watched slot so far.
static WATCHED_END: AtomicUsize = AtomicUsize::new(0);
/// Whether the program has ever set a protection in its heap.
static ANY_WISH: AtomicBool = AtomicBool::new(false);
static WIDE_OPEN: AtomicU32 = AtomicU32::new(0);
static SPIN: AtomicBool = AtomicBool::new(false);

/// Set in a wish: the program has set a protection of its own.
const WISHED: u8 = 0x80;

/// Keeps pages open for the kernel, which accesses them at times of its own, until [`unpin`].
pub fn pin(range: Range<usize>) {
    match method() {
        Some(Method::Pages) => open(range),
        Some(Method::Key(_)) => retag(&range, Key::from_number(0)),
        None => {}
    }
}

/// Ends a [`pin`].
pub fn unpin(range: Range<usize>) {
    match method() {
        Some(Method::Pages) => close(range),
        Some(Method::Key(key)) => retag(&range, key),
        None => {}
    }
}

fn retag(range: &Range<usize>, key: Key) {
    let base = alloc::arena().start;
    let pages = pages(range);
    // SAFETY: pages of the arena, which the allocator keeps mapped.
    if unsafe { key.protect(base + pages.start * PAGE, pages.len() * PAGE, READ_WRITE) }.is_err() {
        give_up();
    }
}

/// Ends the protection of a range whose memory was given back: it may come back unwatched (the allocator's hook).
pub fn release(range: Range<usize>) {
    match method() {
        Some(Method::Pages) => {
            let _lock = spin();
            set(range, READ_WRITE);
        }
        Some(Method::Key(_)) => retag(&range, Key::from_number(0)),
        None => {}
    }
}

/// Starts protecting: every watched slot in use, and each that [`commit`] is told of from now on.
pub fn start(method: Method, watched: Watched, aliased: bool) -> Result<(), Errno> {
    let pages = alloc::arena().len() / PAGE;
    COUNTS.store(mem::map(pages * size_of::<AtomicU16>())?.as_ptr() as usize, Ordering::Relaxed);
    WISHES.store(mem::map(pages)?.as_ptr() as usize, Ordering::Relaxed);
    LOADS.store(watched == Watched::ReadsAndWrites, Ordering::Relaxed);
    ALIASED.store(aliased, Ordering::Relaxed);
    if let Method::Key(key) = method {
        KEY_NUMBER.store(key.number(), Ordering::Relaxed);
    }
    let code = if method == Method::Pages { PAGES } else { KEY };
    // Release pairs with the Acquire of `method`: whoever sees the method sees the tables.
    METHOD.store(code, Ordering::Release);
    Ok(())
}

/// How pages are closed now; `None` when nothing is protected.
pub fn method() -> Option<Method> {
    // Acquire pairs with the Release of `start`.
    match METHOD.load(Ordering::Acquire) {
        PAGES => Some(Method::Pages),
        KEY => Some(Method::Key(Key::from_number(KEY_NUMBER.load(Ordering::Relaxed)))),
        _ => None,
    }
}

/// The part of the arena in which watched slots lie: from its start up.
pub fn watched_extent() -> Range<usize> {
    let start = alloc::arena().start;
    start..WATCHED_END.load(Ordering::Relaxed).max(start)
}

/// Whether loads are watched, not stores alone.
pub fn watches_loads() -> bool {
    LOADS.load(Ordering::Relaxed)
}

/// The PKRU of program code: `pkru` with the key closed, where there is a key.
pub fn closed_pkru(pkru: u32) -> u32 {
    match method() {
        Some(Method::Key(key)) => key.closed(pkru, watches_loads()),
        _ => pkru,
    }
}

/// The PKRU of a thread that is let through: `pkru` with the key open, where there is a key.
pub fn opened_pkru(pkru: u32) -> u32 {
    match method() {
        Some(Method::Key(key)) => key.opened(pkru),
        _ => pkru,
    }
}

/// Gives a watched range that has come into use its protection (the allocator's hook).
pub fn commit(range: Range<usize>) {
    WATCHED_END.fetch_max(range.end, Ordering::Relaxed);
    match method() {
        Some(Method::Pages) => {
            let _lock = spin();
            let wide_open = is_wide_open();
            let is_open = |page: usize| wide_open || count(page).load(Ordering::Relaxed) > 0;
            for_runs(pages(&range), is_open, apply);
        }
        Some(Method::Key(key)) => retag(&range, key),
        None => {}
    }
}

/// Opens whole pages around `range` to every thread, until [`close`] is called with the same range.
pub fn open(range: Range<usize>) {
    if method() != Some(Method::Pages) {
        return;
    }
    let _lock = spin();
    for_runs(
        pages(&range),
        |page| count(page).fetch_add(1, Ordering::Relaxed) == 0,
        |run, changed| {
            if changed && !is_wide_open() {
                apply(run, true);
            }
        },
    );
}

/// Ends an [`open`].
pub fn close(range: Range<usize>) {
    if method() != Some(Method::Pages) {
        return;
    }
    let _lock = spin();
    let wide_open = is_wide_open();
    for_runs(pages(&range), leave, |run, changed| {
        if changed && !wide_open {
            apply(run, false);
        }
    });
}

/// Opens all watched memory to every thread, until [`close_everything`].
pub fn open_everything() {
    if method() != Some(Method::Pages) {
        return;
    }
    let _lock = spin();
    if WIDE_OPEN.fetch_add(1, Ordering::Relaxed) == 0 {
        apply(pages(&watched_extent()), true);
    }
}

/// Whether all watched memory is open to every thread.
pub fn is_wide_open() -> bool {
    WIDE_OPEN.load(Ordering::Relaxed) > 0
}

/// In a forked child, first of all: the lock may have been copied while another thread held it.
pub fn release_lock() {
    SPIN.store(false, Ordering::Relaxed);
}

/// Ends an [`open_everything`].
pub fn close_everything() {
    if method() != Some(Method::Pages) {
        return;
    }
    let _lock = spin();
    if WIDE_OPEN.fetch_sub(1, Ordering::Relaxed) == 1 {
        let extent = watched_extent();
        for_runs(
            pages(&extent),
            |page| count(page).load(Ordering::Relaxed) == 0,
            |run, closed| {
                if closed {
                    apply(run, false);
                }
            },
        );
    }
}

/// Forgets all openings but `pinned`, after a fork: the other threads are gone, and so are their steps and calls.
pub fn forked(pinned: &[(usize, usize)]) {
    SPIN.store(false, Ordering::Relaxed);
    WIDE_OPEN.store(0, Ordering::Relaxed);
    match method() {
        Some(Method::Pages) => {
            let len = alloc::arena().len() / PAGE * size_of::<AtomicU16>();
            // SAFETY: the table is private memory of this module; zero is its initial state.
            let _ = unsafe { mem::advise(COUNTS.load(Ordering::Relaxed), len, libc::MADV_DONTNEED) };
            // Counted before anything is closed: the kernel may access these pages at any moment.
            for page in pinned.iter().flat_map(|&(start, end)| pages(&(start..end))) {
                count(page).fetch_add(1, Ordering::Relaxed);
            }
            for_runs(pages(&watched_extent()), |page| count(page).load(Ordering::Relaxed) > 0, apply);
        }
        Some(Method::Key(_)) => pinned.iter().for_each(|&(start, end)| pin(start..end)),
        None => {}
    }
}

/// The program has set the protection of pages of its heap: remembered, and granted while they are open.
pub fn wish(range: Range<usize>, prot: i32) {
    ANY_WISH.store(true, Ordering::Relaxed);
    let _lock = spin();
    for page in pages(&range) {
        wish_of(page).store(WISHED | (prot & 7) as u8, Ordering::Relaxed);
        guard_alias(page, prot & 7);
    }
    let wide_open = is_wide_open();
    let is_open = |page: usize| wide_open || count(page).load(Ordering::Relaxed) > 0;
    for_runs(pages(&range), is_open, apply);
}

/// An object ends: what the program wished for its pages goes with it.
pub fn forget_wishes(range: Range<usize>) {
    if !ANY_WISH.load(Ordering::Relaxed) {
        return;
    }
    let _lock = spin();
    for page in pages(&range).filter(|&page| wish_of(page).swap(0, Ordering::Relaxed) != 0) {
        guard_alias(page, READ_WRITE);
        apply(page..page + 1, is_wide_open() || count(page).load(Ordering::Relaxed) > 0);
    }
}

static GUARDS_ALIAS: AtomicBool = AtomicBool::new(false);

/// From here on the program's code reaches the alias view too: it gets the protections that the program sets.
pub fn share_alias() {
    GUARDS_ALIAS.store(true, Ordering::Relaxed);
}

fn guard_alias(page: usize, prot: i32) {
    if GUARDS_ALIAS.load(Ordering::Relaxed) {
        let at = alloc::alias_of(alloc::arena().start + page * PAGE);
        // SAFETY: a page of the alias view; the runtime reads it with care.
        let _ = unsafe { mem::protect(at, PAGE, prot) };
    }
}

/// Whether the program has ever set a protection in its heap.
pub fn has_wishes() -> bool {
    ANY_WISH.load(Ordering::Relaxed)
}

/// Whether the program itself may make this access to an open page.
pub fn permits(address: usize, store: bool) -> bool {
    let prot = wished(address / PAGE - alloc::arena().start / PAGE);
    prot & (if store { libc::PROT_WRITE } else { libc::PROT_READ }) != 0
}

/// Runs `act` with the address at which a piece of the arena can be reached by the runtime.
pub fn window<R>(range: Range<usize>, act: impl FnOnce(usize) -> R) -> R {
    if ALIASED.load(Ordering::Relaxed) {
        return act(alloc::alias_of(range.start));
    }
    let _window = Window::open(range.clone());
    act(range.start)
}

/// Keeps a range of the arena open to the calling thread while it lives.
struct Window {
    range: Range<usize>,
    pkru: Option<u32>,
}

impl Window {
    fn open(range: Range<usize>) -> Self {
        let pkru = match method() {
            Some(Method::Key(key)) => {
                let pkru = pku::read();
                pku::write(key.opened(pkru));
                Some(pkru)
            }
            _ => None,
        };
        open(range.clone());
        Self { range, pkru }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        close(self.range.clone());
        if let Some(pkru) = self.pkru {
            pku::write(pkru);
        }
    }
}

/// The allocator's hooks for `view=private`, where clearing and copying need the program view itself.
pub fn open_for_runtime(range: Range<usize>) {
    if let Some(Method::Key(key)) = method() {
        pku::write(key.opened(pku::read()));
    }
    open(range);
}

/// Ends [`open_for_runtime`].
pub fn close_for_runtime(range: Range<usize>) {
    close(range);
    if let Some(Method::Key(key)) = method() {
        pku::write(key.closed(pku::read(), watches_loads()));
    }
}

fn closed_prot() -> i32 {
    if watches_loads() { libc::PROT_NONE } else { libc::PROT_READ }
}

fn wished(page: usize) -> i32 {
    match wish_of(page).load(Ordering::Relaxed) {
        0 => READ_WRITE,
        wish => i32::from(wish & !WISHED),
    }
}

/// Gives each page of a run the protection of its state.
fn apply(run: Range<usize>, open: bool) {
    let base = alloc::arena().start;
    let closed = closed_prot();
    let mut start = run.start;
    while start < run.end {
        let prot = wished(start);
        let end = (start + 1..run.end).find(|&page| wished(page) != prot).unwrap_or(run.end);
        let prot = match method() {
            Some(Method::Key(_)) => prot,
            _ if open => prot,
            _ => prot & closed,
        };
        set(base + start * PAGE..base + end * PAGE, prot);
        start = end;
    }
}

fn set(range: Range<usize>, prot: i32) {
    // SAFETY: the range lies in the arena, and the allocator keeps it mapped.
    if !range.is_empty() && unsafe { mem::protect(range.start, range.len(), prot) }.is_err() {
        give_up();
    }
}

/// A protection could not be set: too many mappings (vm.max_map_count), or no memory for page tables. Pages whose state is
/// unknown cannot be watched, so nothing is from here on: one mapping for all of it needs no new one.
#[cold]
fn give_up() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    WIDE_OPEN.fetch_add(1, Ordering::Relaxed);
    let extent = watched_extent();
    // SAFETY: the arena's own pages; the program asked for no less than this.
    let opened = unsafe { mem::protect(extent.start, extent.len(), READ_WRITE) };
    let message: &[u8] = match opened {
        Ok(()) => b"thermalloc: a page protection could not be set (vm.max_map_count?); accesses go unseen from here on\n",
        Err(_) => b"thermalloc: a page protection could not be set, and the heap could not be opened\n",
    };
    gate::write_all(2, message);
}

/// Watched pages that `range` touches, by index in the arena.
fn pages(range: &Range<usize>) -> Range<usize> {
    let base = alloc::arena().start;
    let extent = watched_extent();
    let start = range.start.clamp(extent.start, extent.end);
    let end = range.end.clamp(start, extent.end);
    if start == end {
        return 0..0;
    }
    (start - base) / PAGE..(end - base).div_ceil(PAGE)
}

/// Takes back one opening of a page; true if it was the last. A page that came into the watched extent after
/// its opening has none.
fn leave(page: usize) -> bool {
    let count = count(page);
    let openings = count.load(Ordering::Relaxed);
    count.store(openings.saturating_sub(1), Ordering::Relaxed);
    openings == 1
}

/// Calls `act` for each maximal run of pages for which `test` (called once for each page, in order) agrees.
fn for_runs(
    pages: Range<usize>,
    mut test: impl FnMut(usize) -> bool,
    mut act: impl FnMut(Range<usize>, bool),
) {
    let mut start = pages.start;
    let mut state = None;
    for page in pages.clone() {
        let now = test(page);
        if state.is_some_and(|state| state != now) {
            act(start..page, !now);
            start = page;
        }
        state = Some(now);
    }
    if let Some(state) = state {
        act(start..pages.end, state);
    }
}

fn count(page: usize) -> &'static AtomicU16 {
    // SAFETY: the table has an entry for each page of the arena and lives as long as the process.
    unsafe { &*(COUNTS.load(Ordering::Relaxed) as *const AtomicU16).add(page) }
}

fn wish_of(page: usize) -> &'static AtomicU8 {
    // SAFETY: as for `count`.
    unsafe { &*(WISHES.load(Ordering::Relaxed) as *const AtomicU8).add(page) }
}

struct Spin;

/// Callers run with signals blocked, or call from malloc, where the thread's handlers defer: a holder is never
/// interrupted by code that wants the lock.
fn spin() -> Spin {
    // Acquire pairs with the Release of `drop`.
    while SPIN.swap(true, Ordering::Acquire) {
        // SAFETY: sched_yield takes no pointers.
        unsafe { gate::syscall(libc::SYS_sched_yield, &[]) };
    }
    Spin
}

impl Drop for Spin {
    fn drop(&mut self) {
        // Release pairs with the Acquire of `spin`.
        SPIN.store(false, Ordering::Release);
    }
}
