//! When and where heat.json is written.
//!
//! Names: `%p` in the pattern is the process id. Without it, the first process of a run has the plain name and every other
//! `.PID` before the extension. A report that is written because the process is about to execute another program has
//! `.execN` before the extension besides, for the next image of the same process writes one too.
//!
//! # Signal context
//! Reports are written in handlers where a process image ends, and between two instructions of the program when an
//! interval is over: always in program context, so that the private heap and files may be used.

use crate::clock;
use crate::config::{Config, Watched};
use crate::control::{self, Settings};
use crate::errno::KeptErrno;
use crate::heat;
use crate::patch;
use crate::probe;
use crate::process;
use crate::unwind;
use crate::world;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::path::{Path, PathBuf};
use thermalloc_alloc as alloc;
use thermalloc_format as format;
use thermalloc_sys::gate;
use thermalloc_sys::lock::Lock;

pub use thermalloc_format::End;

static PATTERN: Lock<String> = Lock::new(String::new());
static INTERVAL_NS: AtomicU64 = AtomicU64::new(0);
static NEXT_NS: AtomicU64 = AtomicU64::new(u64::MAX);
static WRITING: AtomicBool = AtomicBool::new(false);

/// Takes over the settings.
pub fn configure(config: &Config) {
    *PATTERN.lock() = config.out.clone();
    INTERVAL_NS.store(config.interval_ms * 1_000_000, Ordering::Relaxed);
    schedule();
}

fn schedule() {
    let interval = INTERVAL_NS.load(Ordering::Relaxed);
    let next = if interval == 0 { u64::MAX } else { clock::now() + interval };
    NEXT_NS.store(next, Ordering::Relaxed);
}

/// In a forked child: the time starts anew.
pub fn forked() {
    WRITING.store(false, Ordering::Relaxed);
    schedule();
}

/// Whether the time of the periodic report has come.
pub fn is_due() -> bool {
    let next = NEXT_NS.load(Ordering::Relaxed);
    next != u64::MAX && clock::now() >= next
}

/// Writes the periodic report if its time has come. A program that makes no access and no system call is not
/// interrupted for it: its counts have not changed either.
pub fn on_time() {
    if !is_due() || WRITING.swap(true, Ordering::Relaxed) {
        return;
    }
    // Inside the gate, so that no fork copies the process in the middle of this.
    world::enter();
    unwind::modules::try_poll();
    write_or_say(End::Interval, 0, &own_path(None));
    schedule();
    world::leave();
    WRITING.store(false, Ordering::Relaxed);
}

/// Writes the last report of this process.
pub fn write_last(end: End, status: i32) {
    if !control::is_sandboxed() {
        write_or_say(end, status, &own_path(None));
    }
}

/// Writes the report before a sandbox closes.
pub fn write_for_sandbox() {
    write_or_say(End::Interval, 0, &own_path(None));
}

/// Writes the report of an image that is about to be replaced; returns where, for [`withdraw`].
pub fn write_for_exec() -> Option<PathBuf> {
    let path = own_path(Some(control::images() + 1));
    unwind::modules::try_poll();
    let written = !control::is_sandboxed() && write_or_say(End::Exec, 0, &path);
    written.then_some(path)
}

/// Takes the report of [`write_for_exec`] back: the image goes on.
pub fn withdraw(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Writes a report on request; returns where it is.
pub fn write_now(path: Option<&Path>) -> Result<PathBuf, String> {
    unwind::modules::try_poll();
    let path = path.map_or_else(|| own_path(None), Path::to_path_buf);
    write(End::Interval, 0, &path)?;
    Ok(path)
}

/// The report as it stands.
pub fn snapshot(end: End, status: i32) -> format::Report {
    let settings = control::settings();
    heat::build_report(header(end, status, settings.as_ref()), &mut Modules).unwrap_or_default()
}

/// The loaded files, as the report names addresses.
struct Modules;

impl heat::Locate for Modules {
    fn locate(&mut self, ip: u64) -> Option<(u32, u64)> {
        unwind::modules::locate_known(ip)
    }

    fn modules(&mut self) -> Vec<format::Module> {
        let modules = unwind::modules::all().into_iter();
        modules
            .map(|module| format::Module { path: module.path, base: module.base, build_id: module.build_id })
            .collect()
    }
}

fn write_or_say(end: End, status: i32, path: &Path) -> bool {
    let _errno = KeptErrno::keep();
    match write(end, status, path) {
        Ok(()) => true,
        Err(message) => {
            gate::write_all(2, format!("thermalloc: {message}\n").as_bytes());
            false
        }
    }
}

fn write(end: End, status: i32, path: &Path) -> Result<(), String> {
    let report = snapshot(end, status);
    heat::write_report(&report, path).map_err(|error| error.to_string())
}

fn header(end: End, status: i32, settings: Option<&Settings>) -> heat::Header {
    heat::Header {
        program: format::Program {
            cmdline: probe::cmdline(),
            exe: probe::exe(),
            pid: process::pid() as u32,
            ppid: probe::parent(),
            start_unix_ns: clock::start_unix(),
            elapsed_ns: clock::now(),
            watched_ns: Some(control::watched_ns()),
            end,
            status,
        },
        config: settings.map(config_of).unwrap_or_default(),
        host: format::Host {
            cpu: probe::cpu(),
            kernel: probe::kernel(),
            pku: crate::pku::xsave_offset() != 0,
            pkeys: 0,
            sud: control::dispatches(),
        },
        classes: alloc::classes()
            .map(|class| format::Class {
                id: class.id.into(),
                chunk_size: class.chunk_size.into(),
                per_slab: class.per_slab.into(),
                slabs: class.slabs.into(),
                ..format::Class::default()
            })
            .collect(),
        warnings: Vec::new(),
        unpatched: unpatched(),
    }
}

/// Sites at most that the report names as not patched.
const UNPATCHED: usize = 1000;

fn unpatched() -> Vec<format::Unpatched> {
    let mut refused = patch::refused();
    refused.sort_by_key(|refusal| core::cmp::Reverse(refusal.faults));
    refused.truncate(UNPATCHED);
    let entries = refused.into_iter().map(|refusal| {
        let place = unwind::modules::locate_known(refusal.ip);
        let (module, offset) = place.map_or((None, refusal.ip), |(module, offset)| (Some(module), offset));
        let bytes = refusal.code.iter().map(|byte| std::format!("{byte:02x}")).collect();
        format::Unpatched { module, offset, bytes, reason: refusal.why.to_owned(), faults: refusal.faults }
    });
    entries.collect()
}

fn config_of(settings: &Settings) -> format::Config {
    let config = &settings.config;
    format::Config {
        mode: settings.mode.to_owned(),
        access: if config.access == Watched::Writes { "w" } else { "rw" }.to_owned(),
        watch: config.watch.to_string(),
        granule: config.granule as u64,
        depth: config.depth as u32,
        interval_ms: config.interval_ms,
        view: settings.view.name().to_owned(),
    }
}

/// Where this process's report goes; `image` is set for one before an exec.
fn own_path(image: Option<u32>) -> PathBuf {
    let pattern = PATTERN.lock().clone();
    path_for(&pattern, process::pid(), control::first_pid(), image)
}

fn path_for(pattern: &str, pid: i32, first: i32, image: Option<u32>) -> PathBuf {
    let named = pattern.contains("%p");
    let path = PathBuf::from(pattern.replace("%p", &pid.to_string()));
    let mut suffix = String::new();
    if !named && pid != first {
        suffix.push_str(&format!(".{pid}"));
    }
    if let Some(image) = image {
        suffix.push_str(&format!(".exec{image}"));
    }
    if suffix.is_empty() {
        return path;
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
    path.with_file_name(format!("{stem}{suffix}{extension}"))
}

#[cfg(test)]
mod tests {
    use super::path_for;

    #[test]
    fn no_two_reports_have_one_name() {
        let path = |pattern, pid, image| path_for(pattern, pid, 7, image).to_string_lossy().into_owned();
        assert_eq!(path("heat.%p.json", 7, None), "heat.7.json");
        assert_eq!(path("heat.%p.json", 8, None), "heat.8.json");
        assert_eq!(path("heat.%p.json", 8, Some(1)), "heat.8.exec1.json");
        assert_eq!(path("/d.x/heat.json", 7, None), "/d.x/heat.json");
        assert_eq!(path("/d.x/heat.json", 8, None), "/d.x/heat.8.json");
        assert_eq!(path("/d.x/heat.json", 7, Some(2)), "/d.x/heat.exec2.json");
        assert_eq!(path("/d.x/heat", 8, Some(2)), "/d.x/heat.8.exec2");
    }
}
