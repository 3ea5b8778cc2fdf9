//! Every module (program, shared library, vDSO) that the process has had, and the unwind rules of their code.
//!
//! The loader counts what it loads and unloads; the table is brought up to date whenever [`poll`] finds other
//! counts than the last time. Modules are only ever added: an index stays valid, and stacks captured before a
//! `dlclose` can still be symbolised. Loading the same file at the same place again gives the same index.
//!
//! # Safety
//! A module's memory is read only inside a callback of `dl_iterate_phdr` that has seen the counts that the table was
//! made from: then everything in the table that is not marked as gone is mapped, and stays mapped until the callback returns.
//!
//! # Signal context
//! Not for the monitor's handlers, but for malloc in a handler of the program. [`locate`] takes a lock only
//! for an address that is in no known module.
//!
//! # Locks
//! The table's lock, then the loader's. Whoever calls must hold no lock that `free` takes: the loader calls `free` with
//! its lock held. Around `fork`, hold [`fork_lock`], or the child may find the loader's lock taken for ever.
#![allow(unsafe_code)]

use super::cfi::{self, Context, Tables};
use super::elf::Image;
use super::index::{CodeRange, Index};
use super::rule::Rule;
use super::shared::Rules;
use std::ffi::{c_int, c_void};
use std::ops::{ControlFlow, Range};
use thermalloc_sys::gate;
use thermalloc_sys::lock::{Guard, Lock};

/// A module that is or was part of the process.
#[derive(Clone, Debug)]
pub struct Module {
    /// Absolute path; `[vdso]` for the kernel's.
    pub path: String,
    /// Load bias: address in the process minus address in the file.
    pub base: u64,
    /// NT_GNU_BUILD_ID in hexadecimal, or empty.
    pub build_id: String,
    /// Where its segments lie.
    pub ranges: Vec<Range<u64>>,
    /// False once it has been unloaded.
    pub loaded: bool,
}

struct Entry {
    module: Module,
    image: Image,
}

type Counts = (u64, u64);

/// The table behind its lock.
pub struct Registry {
    counts: Option<Counts>,
    entries: Vec<Entry>,
    context: Option<Context>,
}

static REGISTRY: Lock<Registry> = Lock::new(Registry { counts: None, entries: Vec::new(), context: None });
static INDEX: Index = Index::new();
static RULES: Rules = Rules::new();

/// A `dl_iterate_phdr` that keeps finding other counts than the one before is given up after so many rounds.
const ROUNDS: usize = 8;

/// `mov rax, 15; syscall`, with which every libc returns from a signal handler.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// Brings the table up to date if the loader has done anything. Cheap if not: one lock and one callback.
/// Call it where a module may have gone (`munmap` of a file, `dlclose`) and before a report.
pub fn poll() {
    REGISTRY.lock().refresh();
}

/// [`poll`], unless another thread is at it.
pub fn try_poll() {
    if let Some(mut registry) = REGISTRY.try_lock() {
        registry.refresh();
    }
}

/// Changes whenever a module has come or gone, as far as [`poll`] knows.
#[inline]
pub fn generation() -> u64 {
    INDEX.generation()
}

/// Index of the module that owns the code at `ip`, and the offset of `ip` in it (relative to the load bias, so the
/// address in the file).
pub fn locate(ip: u64) -> Option<(u32, u64)> {
    locate_known(ip).or_else(|| {
        try_poll();
        locate_known(ip)
    })
}

/// [`locate`] without asking the loader.
pub fn locate_known(ip: u64) -> Option<(u32, u64)> {
    INDEX.find(ip).map(|range| (range.module, ip - range.base))
}

/// True if `ip` lies in the code of a module that the table knows.
pub(super) fn is_code(ip: u64) -> bool {
    INDEX.find(ip).is_some()
}

/// The module with this index.
pub fn get(index: u32) -> Option<Module> {
    REGISTRY.lock().entries.get(index as usize).map(|entry| entry.module.clone())
}

/// All modules so far, in the order of their indices, as far as [`poll`] knows.
pub fn all() -> Vec<Module> {
    let registry = REGISTRY.lock();
    registry.entries.iter().map(|entry| entry.module.clone()).collect()
}

/// Keeps every thread of the runtime out of the loader. Take it before `fork`, drop it on both sides.
pub fn fork_lock() -> Guard<'static, Registry> {
    REGISTRY.lock()
}

/// Takes the table's lock, for a while: whoever holds it may wait for the loader's, which the calling thread holds if it
/// allocates in a callback of `dl_iterate_phdr`.
fn patient_lock() -> Option<Guard<'static, Registry>> {
    const TURNS: usize = 200;
    (0..TURNS).find_map(|_| {
        let guard = REGISTRY.try_lock();
        if guard.is_none() {
            std::thread::yield_now();
        }
        guard
    })
}

/// The rule for the code at `address`; `None` if it cannot be had now.
#[cold]
pub(super) fn rule_at(address: u64) -> Option<Rule> {
    if let Some(rule) = RULES.get(address, INDEX.generation()) {
        return Some(rule);
    }
    // A return address was lowered by one on its way here.
    if [address, address.wrapping_add(1)].contains(&(gate::restorer() as u64)) {
        return Some(Rule::SIGNAL);
    }
    let mut registry = patient_lock()?;
    for _ in 0..ROUNDS {
        let mut rule = None;
        iterate(&mut |info| {
            if registry.counts == Some(counts(info)) {
                rule = Some(registry.rule_of_mapped(address));
            }
            ControlFlow::Break(())
        });
        if let Some(rule) = rule {
            // With the lock held no other generation can begin. An address in no module is not kept: where stale rules
            // have led to it, they may lead to the same one again, and it is by asking that news are learned.
            if is_code(address) {
                RULES.put(address, INDEX.generation(), rule);
            }
            return Some(rule);
        }
        registry.refresh();
    }
    Some(Rule::END)
}

impl Registry {
    fn refresh(&mut self) {
        let mut images = Vec::new();
        let mut now = None;
        iterate(&mut |info| {
            if self.counts == Some(counts(info)) {
                return ControlFlow::Break(());
            }
            now = Some(counts(info));
            // SAFETY: called inside the loader's callback.
            images.push(unsafe { Image::read(info) });
            ControlFlow::Continue(())
        });
        if now.is_some() {
            self.replace(images);
            self.counts = now;
        }
    }

    /// The loaded modules are these, and no others.
    fn replace(&mut self, images: Vec<Image>) {
        for entry in &mut self.entries {
            entry.module.loaded = false;
        }
        let mut code = Vec::new();
        for image in images {
            let index = self.index_of(image);
            let image = &self.entries[index].image;
            code.extend(image.segments.iter().filter(|s| s.executable).map(|s| CodeRange {
                start: s.range.start,
                end: s.range.end,
                base: image.base,
                module: index as u32,
            }));
        }
        INDEX.publish(&mut code);
    }

    fn index_of(&mut self, image: Image) -> usize {
        let same = |entry: &Entry| {
            let old = &entry.image;
            !entry.module.loaded
                && (old.base, &old.name, &old.build_id) == (image.base, &image.name, &image.build_id)
                && old.segments == image.segments
        };
        let index = self.entries.iter().position(same).unwrap_or(self.entries.len());
        if index == self.entries.len() {
            let module = Module {
                path: path(&image, index == 0),
                base: image.base,
                build_id: image.build_id.clone(),
                ranges: image.segments.iter().map(|s| s.range.clone()).collect(),
                loaded: true,
            };
            self.entries.push(Entry { module, image });
        }
        self.entries[index].module.loaded = true;
        index
    }

    /// The rule for `address`, while nothing that the table calls loaded can go away.
    fn rule_of_mapped(&mut self, address: u64) -> Rule {
        let Some(range) = INDEX.find(address) else { return Rule::FRAME_POINTER };
        let image = &self.entries[range.module as usize].image;
        // SAFETY: the module is loaded and stays so, see the head of this file.
        let header = unsafe { image.bytes(image.unwind_header.clone()) }.unwrap_or_default();
        let tables = Tables {
            header_at: image.unwind_header.start,
            header,
            // SAFETY: as above.
            memory_from: &|at| unsafe { image.bytes_from(at) },
        };
        let rule = cfi::rule_at(&tables, address, self.context.get_or_insert_default());
        // A return address was lowered by one on its way here.
        let start = address.saturating_add(1);
        let code = start..start.saturating_add(SIGNAL_RETURN.len() as u64);
        // SAFETY: as above.
        if rule == Rule::END && unsafe { image.bytes(code) } == Some(&SIGNAL_RETURN[..]) {
            return Rule::SIGNAL;
        }
        rule
    }
}

fn counts(info: &libc::dl_phdr_info) -> Counts {
    (info.dlpi_adds, info.dlpi_subs)
}

type Visit<'a> = &'a mut dyn FnMut(&libc::dl_phdr_info) -> ControlFlow<()>;

/// Shows each loaded module to `visit`, under the loader's lock.
fn iterate(mut visit: Visit<'_>) {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, visit: *mut c_void) -> c_int {
        // SAFETY: the loader's own structure, and the closure that `iterate` passed on, borrowed for the call.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<Visit<'_>>()) };
        c_int::from(visit(info).is_break())
    }
    // SAFETY: `each` gets back the pointer that it expects, and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut visit).cast()) };
}

fn path(image: &Image, is_program: bool) -> String {
    if is_program {
        return link(c"/proc/self/exe").unwrap_or_else(|| image.name.clone());
    }
    match image.name.as_str() {
        "linux-vdso.so.1" | "linux-gate.so.1" => "[vdso]".to_owned(),
        name if name.starts_with('/') => name.to_owned(),
        name => format!("{}/{name}", link(c"/proc/self/cwd").unwrap_or_default()),
    }
}

/// What a symbolic link says, read through the gate: libc's wrappers could call back into malloc.
fn link(at: &std::ffi::CStr) -> Option<String> {
    let mut buffer = [0u8; libc::PATH_MAX as usize];
    // SAFETY: the kernel reads a C string and writes at most the buffer's length.
    let len = unsafe {
        gate::syscall(libc::SYS_readlink, &[at.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len()])
    };
    let bytes = buffer.get(..usize::try_from(len).ok()?)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}
