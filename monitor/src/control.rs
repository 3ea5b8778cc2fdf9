//! Starting, pausing and resuming; what is in force.
//!
//! # Safety
//! [`start`] takes over signals and system calls of the process: the ways of doing so are in the modules it calls.
//!
//! # Signal context
//! The questions (`is_...`, `dispatches`, ...) and [`pause_for_sandbox`] may be used in handlers.
#![allow(unsafe_code)]

use crate::actions;
use crate::clock;
use crate::config::{Config, Mode, View, Watched};
use crate::emulate;
use crate::handlers;
use crate::heat;
use crate::instrument;
use crate::objects;
use crate::patch;
use crate::pku::{self, Key};
use crate::probe;
use crate::process;
use crate::protect::{self, Method};
use crate::report;
use crate::rewrite;
use crate::segments;
use crate::thread::{self, Runtime, Thread};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use thermalloc_alloc::{self as alloc, HeapConfig, Hooks, ViewKind};
use thermalloc_sys::lock::Lock;
use thermalloc_sys::mem::Errno;

static STARTED: AtomicBool = AtomicBool::new(false);
static PAUSED: AtomicBool = AtomicBool::new(false);
/// Time watched before the last pause, and when the last resumption was.
static WATCHED_NS: AtomicU64 = AtomicU64::new(0);
static RESUMED_NS: AtomicU64 = AtomicU64::new(0);
static SANDBOXED: AtomicBool = AtomicBool::new(false);
static DISPATCHES: AtomicBool = AtomicBool::new(false);
static ALIASED: AtomicBool = AtomicBool::new(false);
static FIRST_PID: AtomicI32 = AtomicI32::new(0);
static IMAGES: AtomicU32 = AtomicU32::new(0);
static SETTINGS: Lock<Option<Settings>> = Lock::new(None);

static HOOKS: Hooks = Hooks {
    committed: protect::commit,
    released: |range| {
        protect::release(range.clone());
        let base = alloc::arena().start;
        for slot in (range.start..range.end).step_by(alloc::SLOT_BYTES) {
            heat::released(((slot - base) / alloc::SLOT_BYTES) as u32);
        }
    },
    open: protect::open_for_runtime,
    close: protect::close_for_runtime,
    inside: |act| match Thread::current().filter(|thread| !thread.is_busy()) {
        Some(thread) => Runtime::enter(thread).run(act),
        None => act(),
    },
};

/// What was asked for and what came of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// As asked for.
    pub config: Config,
    /// The mode that runs: `pp`, `mpk`, `emulate` or `patch`.
    pub mode: &'static str,
    /// The view in force.
    pub view: View,
}

/// Why the program runs unmonitored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Monitoring was started before.
    AlreadyStarted,
    /// The processor or the kernel has no protection keys, or none is free.
    NoKey(Errno),
    /// The kernel or the sandbox has no Syscall User Dispatch, and code cannot be rewritten either.
    NoDispatch(Errno),
    /// The heap has been set up already, with a view that cannot be watched.
    NoHeap,
    /// There is no alias view, or the program uses the gs register that leads there.
    NoAlias,
    /// No room for the heat accounts.
    NoTables(heat::InitError),
    /// No memory for the tables.
    NoMemory(Errno),
    /// Other threads run already, and they cannot be watched.
    OtherThreads,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyStarted => write!(f, "monitoring has been started already"),
            Self::NoKey(errno) => write!(
                f,
                "mode mpk needs memory protection keys, and pkey_alloc fails here (errno {}); use --mode pp",
                errno.0
            ),
            Self::NoDispatch(errno) => write!(
                f,
                "the kernel refuses Syscall User Dispatch (errno {}) and rewriting code; see `thermalloc doctor`",
                errno.0
            ),
            Self::NoHeap => {
                write!(f, "the heap could not be set up; is the address space limited (ulimit -v)?")
            }
            Self::NoAlias => write!(
                f,
                "modes emulate and patch need the alias view of the heap and the gs register, and one of them is taken; use --mode pp"
            ),
            Self::NoTables(error) => write!(f, "{error}"),
            Self::NoMemory(errno) => write!(f, "no memory for the monitor's tables (errno {})", errno.0),
            Self::OtherThreads => {
                write!(f, "other threads run already; start monitoring before the first one is created")
            }
        }
    }
}

impl std::error::Error for StartError {}

/// Whether monitoring has been started in this process.
#[inline]
pub fn is_started() -> bool {
    // Acquire pairs with the Release of `start`.
    STARTED.load(Ordering::Acquire)
}

/// Whether accesses go unwatched for now.
pub fn is_paused() -> bool {
    PAUSED.load(Ordering::Relaxed)
}

/// Whether the program has entered a sandbox, in which nothing may be written any more.
pub fn is_sandboxed() -> bool {
    SANDBOXED.load(Ordering::Relaxed)
}

/// Whether system calls of the program arrive at the monitor.
pub fn dispatches() -> bool {
    DISPATCHES.load(Ordering::Relaxed)
}

/// Whether the heap has an alias view.
pub fn is_aliased() -> bool {
    ALIASED.load(Ordering::Relaxed)
}

/// Process id of the first process of the run.
pub fn first_pid() -> i32 {
    FIRST_PID.load(Ordering::Relaxed)
}

/// Program images that this process has had before this one.
pub fn images() -> u32 {
    IMAGES.load(Ordering::Relaxed)
}

/// What is in force.
pub fn settings() -> Option<Settings> {
    SETTINGS.lock().clone()
}

/// Starts monitoring. In mode `off` nothing happens. The calling thread must be the only one.
pub fn start(config: &Config) -> Result<(), StartError> {
    if config.mode == Mode::Off {
        return Ok(());
    }
    if is_started() {
        return Err(StartError::AlreadyStarted);
    }
    let (mut method, mut mode) = choose_method(config.mode)?;
    // First, for everything else may allocate through libc.
    let view = set_up_heap(config.view.unwrap_or(View::Alias))?;
    if probe::threads() > 1 {
        return Err(StartError::OtherThreads);
    }
    heat::init(heat_config(config)).map_err(StartError::NoTables)?;
    segments::detect();
    clock::start();
    process::note_pid();
    FIRST_PID.store(config.first_pid.unwrap_or_else(process::pid), Ordering::Relaxed);
    IMAGES.store(config.images, Ordering::Relaxed);
    ALIASED.store(view == View::Alias, Ordering::Relaxed);
    if config.toggle {
        actions::reserve_toggle(libc::SIGUSR2);
    }
    objects::configure(config);
    report::configure(config);
    if matches!(config.mode, Mode::Emulate | Mode::Patch | Mode::Auto) {
        let reached = view == View::Alias && emulate::start(alloc::displacement());
        match config.mode {
            Mode::Auto if reached => {
                if let Method::Key(key) = method {
                    key.free();
                }
                (method, mode) = (Method::Pages, "patch");
            }
            Mode::Auto => {}
            _ if reached => {}
            _ => return Err(StartError::NoAlias),
        }
    }
    *SETTINGS.lock() = Some(Settings { config: config.clone(), mode, view });
    if mode == "patch" {
        patch::start(config.access == Watched::ReadsAndWrites);
        protect::share_alias();
    }
    enroll(method, config.access)
}

/// Puts the calling thread, and the process with it, under watch.
fn enroll(method: Method, access: Watched) -> Result<(), StartError> {
    let thread = thread::new_block().map_err(StartError::NoMemory)?;
    // SAFETY: gettid takes no pointers.
    let tid = unsafe { thermalloc_sys::gate::syscall(libc::SYS_gettid, &[]) } as i32;
    thread.tid.store(tid, Ordering::Relaxed);
    // SAFETY: no handler of the monitor runs yet.
    unsafe { thread.in_handler() }.altstack = thread::current_altstack();
    thread.register_stack().map_err(StartError::NoMemory)?;
    actions::take_over(handlers::entry);
    match thread.register_dispatch(true) {
        Ok(()) => DISPATCHES.store(true, Ordering::Relaxed),
        Err(errno) => {
            if rewrite::start().is_err() {
                actions::give_back();
                return Err(StartError::NoDispatch(errno));
            }
        }
    }
    thread.adopt();
    protect::start(method, access, is_aliased()).map_err(StartError::NoMemory)?;
    alloc::install_hooks(&HOOKS);
    if let Method::Key(_) = method {
        pku::write(protect::closed_pkru(pku::read()));
    }
    // Where the dispatch brings every clone here, that is: a start that fails leaves it to atomic operations.
    thermalloc_sys::alone::set(dispatches());
    // Release pairs with the Acquire of `is_started`.
    STARTED.store(true, Ordering::Release);
    instrument::tell_all();
    thread.catch_calls();
    Ok(())
}

fn choose_method(mode: Mode) -> Result<(Method, &'static str), StartError> {
    match (mode, Key::allocate()) {
        // The last two close pages, keys or not: their accesses go by the alias view, so nothing is opened for them.
        (Mode::Pp | Mode::Emulate | Mode::Patch, key) => {
            if let Ok(key) = key {
                key.free();
            }
            let names = [(Mode::Pp, "pp"), (Mode::Emulate, "emulate"), (Mode::Patch, "patch")];
            let name = names.iter().find(|(named, _)| *named == mode).map_or("pp", |(_, name)| name);
            Ok((Method::Pages, name))
        }
        (_, Ok(key)) => Ok((Method::Key(key), "mpk")),
        (Mode::Mpk, Err(errno)) => Err(StartError::NoKey(errno)),
        (_, Err(_)) => Ok((Method::Pages, "pp")),
    }
}

fn set_up_heap(view: View) -> Result<View, StartError> {
    let kind = match view {
        View::Alias => ViewKind::Alias,
        View::Private => ViewKind::Private,
    };
    match alloc::init(&HeapConfig { view: kind, ..HeapConfig::DEFAULT }) {
        Ok(()) => Ok(view),
        // Allocations came first, as in a Rust program, whose heap is private by default.
        Err(alloc::InitError::AlreadyInitialized) => Ok(View::Private),
        Err(_) => Err(StartError::NoHeap),
    }
}

fn heat_config(config: &Config) -> heat::Config {
    heat::Config {
        granule: config.granule,
        loads: config.access == Watched::ReadsAndWrites,
        ..heat::Config::default()
    }
}

/// Lets accesses go unwatched until [`resume`]. Counts stay. Other threads' patched code counts until they next allocate or make a
/// system call.
pub fn pause() {
    if is_started() && !PAUSED.swap(true, Ordering::Relaxed) {
        let began = clock::now().saturating_sub(RESUMED_NS.load(Ordering::Relaxed));
        WATCHED_NS.fetch_add(began, Ordering::Relaxed);
        protect::open_everything();
        instrument::tell_all();
        patch::tell();
    }
}

/// Watches again after [`pause`]. With a key, other threads than the caller are watched from their next system call on.
pub fn resume() {
    if is_started() && !is_sandboxed() && PAUSED.swap(false, Ordering::Relaxed) {
        RESUMED_NS.store(clock::now(), Ordering::Relaxed);
        instrument::tell_all();
        patch::tell();
        protect::close_everything();
        if let Some(Method::Key(_)) = protect::method() {
            pku::write(protect::closed_pkru(pku::read()));
        }
    }
}

/// [`pause`] or [`resume`].
pub fn toggle() {
    if is_paused() { resume() } else { pause() }
}

/// Nanoseconds since the start during which accesses have been watched.
pub fn watched_ns() -> u64 {
    let began = if is_paused() { 0 } else { clock::now().saturating_sub(RESUMED_NS.load(Ordering::Relaxed)) };
    WATCHED_NS.load(Ordering::Relaxed) + began
}

/// The program is about to forbid itself system calls that the monitor needs: the report is written now, and
/// monitoring ends.
pub fn pause_for_sandbox() {
    if !SANDBOXED.swap(true, Ordering::Relaxed) {
        report::write_for_sandbox();
        clock::freeze();
        pause();
    }
}

/// The mode that runs: `pp`, `mpk`, `emulate`, `patch`, or `off`.
pub fn mode_name() -> &'static str {
    SETTINGS.lock().as_ref().map_or("off", |settings| settings.mode)
}
