//! Victims in C and C++, compiled when a test runs, and a probe that captures a stack in two independent ways: ours, and
//! glibc's `backtrace(3)`, which is libgcc's unwinder.
#![allow(unsafe_code)]
#![allow(dead_code, reason = "each test binary uses a part")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use thermalloc_monitor::unwind::{Caller, UnwindState, capture};

pub const DEPTH: usize = 100;

/// One probe: the stack from the probe's caller on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub ours: Vec<u64>,
    pub theirs: Vec<u64>,
}

thread_local! {
    static STATE: RefCell<Box<UnwindState>> = RefCell::new(Box::new(UnwindState::new()));
    static SEEN: RefCell<Vec<Observation>> = const { RefCell::new(Vec::new()) };
}

std::arch::global_asm!(
    ".globl thermalloc_test_probe",
    ".type thermalloc_test_probe, @function",
    "thermalloc_test_probe:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rdi, [rsp + 8]",
    "lea rsi, [rsp + 16]",
    "mov rdx, rbp",
    "call {observe}",
    "pop rbp",
    ".cfi_def_cfa_offset 8",
    ".cfi_restore rbp",
    "ret",
    ".cfi_endproc",
    ".size thermalloc_test_probe, . - thermalloc_test_probe",
    observe = sym observe,
);

unsafe extern "C" {
    #[link_name = "thermalloc_test_probe"]
    safe fn raw_probe();
    fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
}

/// What victims call.
pub extern "C" fn probe() {
    raw_probe();
    std::hint::black_box(());
}

/// The probe's own entry, so that the victim is the immediate caller.
pub fn probe_entry() -> extern "C" fn() {
    // SAFETY: a C function without arguments; `safe fn` above says that it may be called at any time.
    unsafe { std::mem::transmute::<*const (), extern "C" fn()>(raw_probe as *const ()) }
}

extern "C" fn observe(ip: u64, sp: u64, bp: u64) {
    let mut frames = [0u64; DEPTH];
    let len = STATE.with_borrow_mut(|state| capture(state, Caller { ip, sp, bp }, DEPTH, &mut frames));
    let ours = frames[..len].to_vec();
    SEEN.with_borrow_mut(|seen| seen.push(Observation { ours, theirs: oracle(ip) }));
}

/// What `backtrace(3)` says, from the frame with this return address on.
fn oracle(ip: u64) -> Vec<u64> {
    let mut frames = [std::ptr::null_mut::<c_void>(); DEPTH + 32];
    // SAFETY: backtrace fills at most the array.
    let len = unsafe { backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
    let all = frames[..len as usize].iter().map(|frame| *frame as u64);
    let mut theirs: Vec<u64> = all.skip_while(|frame| *frame != ip).collect();
    theirs.truncate(DEPTH);
    theirs
}

/// What the probes that `f` led to have seen.
pub fn observations(f: impl FnOnce()) -> Vec<Observation> {
    SEEN.take();
    f();
    SEEN.take()
}

/// Names of the exported functions that the frames lie in; `-` for others.
pub fn names(frames: &[u64]) -> Vec<String> {
    frames.iter().map(|frame| name(frame - 1).unwrap_or_else(|| "-".to_owned())).collect()
}

fn name(address: u64) -> Option<String> {
    // SAFETY: an all-zero Dl_info is valid; dladdr fills it.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address as *const c_void, &raw mut info) == 0 || info.dli_sname.is_null() {
            return None;
        }
        Some(CStr::from_ptr(info.dli_sname).to_string_lossy().into_owned())
    }
}

/// Compiles a victim to a shared library; `tag` tells variants apart.
pub fn compile(source: &str, tag: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/unwind_support").join(source);
    let compiler = if source.extension().is_some_and(|e| e == "cpp") { "g++" } else { "gcc" };
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libunwind-victim-{tag}.so"));
    let status = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O2", "-fomit-frame-pointer", "-Wl,--build-id", "-Wall", "-Werror"])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&library)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "the victim does not compile");
    library
}

/// A shared library, loaded.
pub struct Library(*mut c_void);

impl Library {
    pub fn open(path: &Path) -> Self {
        let path = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
        // SAFETY: the victims' constructors do nothing.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?} does not load");
        Self(handle)
    }

    pub fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).expect("no NUL");
        // SAFETY: the handle is open.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!symbol.is_null(), "{name:?} is missing");
        symbol
    }

    /// Calls a victim of type `int f(probe_fn *)`.
    pub fn run(&self, name: &str) -> Vec<Observation> {
        // SAFETY: all victims that take a probe have this type.
        let victim: extern "C" fn(extern "C" fn()) -> c_int =
            unsafe { std::mem::transmute(self.symbol(name)) };
        observations(|| {
            std::hint::black_box(victim(probe_entry()));
        })
    }

    pub fn close(self) {
        // SAFETY: nothing of the library is running.
        assert_eq!(unsafe { libc::dlclose(self.0) }, 0);
    }
}
