//! Sets everything up at the first allocation, which may come from the dynamic loader before any constructor has run.
//!
//! # Safety
//! Constructors run once, in a process with one thread; registering fork handlers of the allocator is what they are for.
#![allow(unsafe_code)]

use crate::deepbind;
use core::sync::atomic::{AtomicU8, Ordering};
use thermalloc::{Config, Mode};
use thermalloc_alloc as alloc;
use thermalloc_monitor::control;
use thermalloc_monitor::errno::KeptErrno;
use thermalloc_sys::gate;

const FRESH: u8 = 0;
const STARTING: u8 = 1;
const READY: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(FRESH);

/// Makes sure that the settings are in force. Allocations of the start itself are served as they come.
#[inline(always)]
pub fn ensure() {
    if STATE.load(Ordering::Relaxed) == FRESH {
        begin();
    }
}

#[cold]
fn begin() {
    if STATE.compare_exchange(FRESH, STARTING, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    let _errno = KeptErrno::keep();
    match Config::from_env() {
        Ok(config) => begin_with(&config),
        Err(bad) => say(&format!("{bad}; the program runs unmonitored")),
    }
    STATE.store(READY, Ordering::Relaxed);
}

fn begin_with(config: &Config) {
    if config.mode == Mode::Off {
        return;
    }
    // `memory` serves the runtime here, in vectors of 16 bytes.
    thermalloc_monitor::keep_little();
    match control::start(config) {
        Ok(()) if config.verbose > 0 => say(&format!("watching in mode {}", control::mode_name())),
        Ok(()) => {}
        Err(error) => say(&format!("{error}; the program runs unmonitored")),
    }
}

fn say(message: &str) {
    gate::write_all(2, format!("thermalloc: {message}\n").as_bytes());
}

/// The loader calls this before the program's own constructors or after; a program without allocations starts here.
#[unsafe(link_section = ".init_array")]
#[used]
static CONSTRUCTOR: extern "C" fn() = constructor;

extern "C" fn constructor() {
    deepbind::find_next();
    ensure();
    if !control::is_started() {
        // The monitor sees forks by itself; without it, libc tells.
        // SAFETY: the functions may run on both sides of any fork.
        unsafe { libc::pthread_atfork(Some(fork_prepare), Some(fork_parent), Some(fork_child)) };
    }
}

extern "C" fn fork_prepare() {
    alloc::fork_prepare();
}

extern "C" fn fork_parent() {
    // SAFETY: `fork_prepare` has taken the locks.
    unsafe { alloc::fork_parent() };
}

extern "C" fn fork_child() {
    // SAFETY: `fork_prepare` has taken the locks.
    unsafe { alloc::fork_child() };
}
