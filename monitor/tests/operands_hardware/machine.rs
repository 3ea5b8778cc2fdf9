//! Runs one instruction on the real processor, on registers and memory of choice, and tells which pages it
//! touched and how.
//!
//! The scratch memory starts without access. Each page fault is noted with its direction, and opens that one page
//! for reading, or for writing if it was a write; the trap flag ends the run after one instruction. (`rep` string
//! instructions run whole, into a breakpoint.) The registers travel by signal frames: a breakpoint enters the
//! handler, which swaps the frame's registers for the case's, and the last signal swaps them back.
//!
//! # Safety
//! All state is in one static behind a lock; the handler runs only on the thread that holds it.
#![allow(unsafe_code)]

use std::arch::asm;
use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, OnceLock};
use thermalloc_monitor::operands::registers::FRAME_ORDER;
use thermalloc_monitor::operands::{Registers, Vectors, XsaveArea, XsaveLayout, layout::component};

pub const PAGE: u64 = 4096;
pub const PAGES: usize = 16;
/// Low enough for 32-bit addresses, far from everything else of the process.
pub const SCRATCH: u64 = 0x2100_0000;
pub const SCRATCH_END: u64 = SCRATCH + PAGES as u64 * PAGE;
/// Never accessible; catches what goes astray by less than this.
const GUARD: u64 = 0x100_0000;
/// Where the instruction lies, 16 bytes into an executable page.
pub const CODE: u64 = 0x2800_0010;
const PAGE_FAULT: i64 = 14;
const TRAP_FLAG: i64 = 0x100;
const FRAME_ROOM: usize = 16 << 10;

/// Vector and mask registers of a case.
#[derive(Clone)]
pub struct Simd {
    pub vectors: [[u8; 64]; 32],
    pub masks: [u64; 8],
    pub mmx: [[u8; 8]; 8],
    /// Top of the x87 stack, which moves st registers but not mm registers.
    pub top: u8,
}

impl Simd {
    /// All zero.
    pub fn new() -> Self {
        Self { vectors: [[0; 64]; 32], masks: [0; 8], mmx: [[0; 8]; 8], top: 0 }
    }

    /// As a signal frame would hold it.
    pub fn frame(&self, layout: &XsaveLayout) -> Vec<u8> {
        let mut frame = vec![0; FRAME_ROOM];
        write_simd(&mut frame, layout, self);
        frame
    }
}

impl Vectors for Simd {
    fn vector(&self, number: usize) -> [u8; 64] {
        self.vectors[number]
    }
    fn mask(&self, number: usize) -> u64 {
        self.masks[number]
    }
    fn mmx(&self, number: usize) -> [u8; 8] {
        self.mmx[number]
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The instruction completed.
    Done,
    /// It raised an exception; the signal, and the address where that is meaningful.
    Exception { signal: i32, addr: u64 },
}

/// What a run did.
pub struct Run {
    pub outcome: Outcome,
    pub after: Registers,
    pub simd: Simd,
    pub x87: [u8; 160],
    /// Did it end in a page fault outside the scratch memory?
    pub astray: bool,
    /// Pages that faulted on a read and on a write.
    pub read: u32,
    pub written: u32,
}

struct Shared {
    running: bool,
    stepping: bool,
    registers: Registers,
    simd: Option<Simd>,
    home_gregs: [i64; 23],
    home_frame: [u8; FRAME_ROOM],
    layout: XsaveLayout,
    result: Option<Run>,
    read: u32,
    written: u32,
}

/// What the handler works on.
struct Global(UnsafeCell<Shared>);

// SAFETY: only the thread that holds the machine's lock, and its handler, use it.
unsafe impl Sync for Global {}

impl Global {
    fn get(&self) -> *mut Shared {
        self.0.get()
    }
}

static SHARED: Global = Global(UnsafeCell::new(Shared {
    running: false,
    stepping: false,
    registers: Registers { gpr: [0; 16], rip: 0, rflags: 0, fs_base: 0, gs_base: 0 },
    simd: None,
    home_gregs: [0; 23],
    home_frame: [0; FRAME_ROOM],
    layout: XsaveLayout::EMPTY,
    result: None,
    read: 0,
    written: 0,
}));

/// The right to run cases.
pub struct Machine {
    _exclusive: MutexGuard<'static, ()>,
    /// The scratch memory by another address, always accessible.
    alias: &'static mut [u8],
    code: *mut u8,
    pub fs_base: u64,
}

impl Machine {
    /// Sets the process up on first use, and the calling thread's signal stack each time.
    pub fn new() -> Self {
        static LOCK: Mutex<()> = Mutex::new(());
        static ALIAS: OnceLock<usize> = OnceLock::new();
        let exclusive = LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let alias = *ALIAS.get_or_init(set_up);
        signal_stack();
        let mut fs_base = 0u64;
        // SAFETY: the mapping made by `set_up` is never undone, and the lock makes this the only slice of it;
        // ARCH_GET_FS writes one word.
        let alias = unsafe {
            libc::syscall(libc::SYS_arch_prctl, 0x1003, &raw mut fs_base);
            std::slice::from_raw_parts_mut(alias as *mut u8, PAGES * PAGE as usize)
        };
        Self { _exclusive: exclusive, alias, code: CODE as *mut u8, fs_base }
    }

    /// The scratch memory.
    pub fn memory(&mut self) -> &mut [u8] {
        self.alias
    }

    /// Puts an instruction at [`CODE`], breakpoints behind it.
    pub fn load(&mut self, code: &[u8]) {
        let mut bytes = [0xCC; 32];
        bytes[..code.len()].copy_from_slice(code);
        // SAFETY: the code page is writable and has room; nothing is running in it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.code, bytes.len()) };
    }

    /// Runs the loaded instruction; `whole` runs up to the breakpoint behind it instead of one step.
    pub fn run(&mut self, registers: &Registers, simd: &Simd, whole: bool) -> Run {
        // SAFETY: the handler is idle, so nothing else uses SHARED; the scratch range belongs to this module;
        // gs is not used by user code; the breakpoint is answered by `on_signal`, which restores every register.
        unsafe {
            libc::mprotect(SCRATCH as *mut _, PAGES * PAGE as usize, libc::PROT_NONE);
            libc::syscall(libc::SYS_arch_prctl, 0x1001, registers.gs_base);
            let shared = &mut *SHARED.get();
            shared.registers = *registers;
            shared.simd = Some(simd.clone());
            shared.stepping = !whole;
            shared.read = 0;
            shared.written = 0;
            asm!("int3");
            let shared = &mut *SHARED.get();
            shared.result.take().expect("the handler leaves a result")
        }
    }
}

fn set_up() -> usize {
    let len = PAGES * PAGE as usize;
    let fixed = libc::MAP_FIXED_NOREPLACE;
    // SAFETY: fixed mappings that must not replace any; handlers with the right signature.
    unsafe {
        let fd = libc::memfd_create(c"scratch".as_ptr(), 0);
        assert!(fd >= 0 && libc::ftruncate(fd, len as i64) == 0);
        let guard = GUARD as usize;
        let low = libc::mmap(
            (SCRATCH - GUARD) as *mut _,
            2 * guard + len,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed,
            -1,
            0,
        );
        assert_ne!(low, libc::MAP_FAILED);
        let shared = libc::MAP_SHARED;
        let scratch = libc::mmap(SCRATCH as *mut _, len, libc::PROT_NONE, shared | libc::MAP_FIXED, fd, 0);
        assert_ne!(scratch, libc::MAP_FAILED);
        let rwx = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
        let code = libc::mmap((CODE & !4095) as *mut _, PAGE as usize, rwx, private, -1, 0);
        assert_ne!(code, libc::MAP_FAILED);
        let alias = libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, shared, fd, 0);
        assert_ne!(alias, libc::MAP_FAILED);
        (*SHARED.get()).layout = XsaveLayout::detect();
        for signal in [libc::SIGTRAP, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
        }
        alias as usize
    }
}

fn signal_stack() {
    const SIZE: usize = 256 << 10;
    let stack =
        libc::stack_t { ss_sp: Vec::leak(vec![0u8; SIZE]).as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
    // SAFETY: the stack is leaked, so it outlives the thread.
    assert_eq!(unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) }, 0);
}

extern "C" fn on_signal(signal: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands in the frame; the interrupted thread holds the machine's lock.
    let (context, shared) = unsafe { (&mut *context.cast::<libc::ucontext_t>(), &mut *SHARED.get()) };
    let gregs = &mut context.uc_mcontext.gregs;
    let fpregs = context.uc_mcontext.fpregs.cast::<u8>();
    // SAFETY: `from_frame` finds the length of the frame's state, which is writable.
    let frame = unsafe {
        let len = XsaveArea::from_frame(fpregs, &shared.layout).bytes().len();
        std::slice::from_raw_parts_mut(fpregs, len)
    };
    if !shared.running {
        enter(shared, gregs, frame);
    } else if !opened(shared, signal, gregs) {
        leave(shared, signal, gregs, frame);
    }
}

fn enter(shared: &mut Shared, gregs: &mut [i64; 23], frame: &mut [u8]) {
    shared.home_gregs = *gregs;
    shared.home_frame[..frame.len()].copy_from_slice(frame);
    for (value, at) in shared.registers.gpr.iter().zip(FRAME_ORDER) {
        gregs[at as usize] = *value as i64;
    }
    gregs[libc::REG_RIP as usize] = CODE as i64;
    let trap = if shared.stepping { TRAP_FLAG } else { 0 };
    gregs[libc::REG_EFL as usize] = shared.registers.rflags as i64 | trap;
    if let Some(simd) = &shared.simd {
        write_simd(frame, &shared.layout, simd);
    }
    shared.running = true;
}

/// Was this a page fault in the scratch memory? Then the page is now open.
fn opened(shared: &mut Shared, signal: i32, gregs: &[i64; 23]) -> bool {
    const WRITE: i64 = 2;
    let addr = gregs[libc::REG_CR2 as usize] as u64;
    if signal != libc::SIGSEGV
        || gregs[libc::REG_TRAPNO as usize] != PAGE_FAULT
        || !(SCRATCH..SCRATCH_END).contains(&addr)
    {
        return false;
    }
    let page = (addr - SCRATCH) / PAGE;
    let write = gregs[libc::REG_ERR as usize] & WRITE != 0;
    let seen = if write { &mut shared.written } else { &mut shared.read };
    *seen |= 1 << page;
    let protection = if write { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    // SAFETY: the scratch range belongs to this module.
    unsafe { libc::mprotect((SCRATCH + page * PAGE) as *mut _, PAGE as usize, protection) };
    true
}

fn leave(shared: &mut Shared, signal: i32, gregs: &mut [i64; 23], frame: &mut [u8]) {
    let outcome = match signal {
        libc::SIGTRAP => Outcome::Done,
        _ => Outcome::Exception { signal, addr: gregs[libc::REG_CR2 as usize] as u64 },
    };
    let area = XsaveArea::new(frame, &shared.layout);
    let mut simd = Simd::new();
    simd.vectors.iter_mut().enumerate().for_each(|(n, value)| *value = area.vector(n));
    simd.masks.iter_mut().enumerate().for_each(|(n, value)| *value = area.mask(n));
    simd.mmx.iter_mut().enumerate().for_each(|(n, value)| *value = area.mmx(n));
    let mut x87 = [0; 160];
    if frame[512] & 1 != 0 {
        x87.copy_from_slice(&frame[..160]);
    }
    let astray = signal == libc::SIGSEGV && gregs[libc::REG_TRAPNO as usize] == PAGE_FAULT;
    let mut after = Registers::from_frame(gregs, 0, 0);
    // The breakpoint behind a whole run, and the resume flag, are the machine's own.
    after.rflags &= !(0x1_0000 | TRAP_FLAG as u64);
    shared.result =
        Some(Run { outcome, after, simd, x87, astray, read: shared.read, written: shared.written });
    *gregs = shared.home_gregs;
    frame.copy_from_slice(&shared.home_frame[..frame.len()]);
    shared.running = false;
}

/// Puts the case's vector state into a frame, with the x87 unit in MMX state.
fn write_simd(frame: &mut [u8], layout: &XsaveLayout, simd: &Simd) {
    const IN_USE: usize = 512;
    let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
    for (n, vector) in simd.vectors.iter().enumerate() {
        if n >= 16 {
            layout.offset(component::ZMM_HIGH).inspect(|at| put(at + 64 * (n - 16), vector));
            continue;
        }
        put(160 + 16 * n, &vector[..16]);
        layout.offset(component::YMM).inspect(|at| put(at + 16 * n, &vector[16..32]));
        layout.offset(component::ZMM_UPPER).inspect(|at| put(at + 32 * n, &vector[32..]));
    }
    for (n, mask) in simd.masks.iter().enumerate() {
        layout.offset(component::MASKS).inspect(|at| put(at + 8 * n, &mask.to_le_bytes()));
    }
    for (n, value) in simd.mmx.iter().enumerate() {
        let slot = n.wrapping_sub(simd.top.into()) & 7;
        put(32 + 16 * slot, value);
        put(40 + 16 * slot, &[0xFF, 0xFF]);
    }
    // All exceptions masked, all x87 registers in use.
    put(0, &[0x7F, 0x03, 0, simd.top << 3, 0xFF, 0]);
    put(24, &0x1F80u32.to_le_bytes());
    let mut components = 3u64;
    for number in [component::YMM, component::MASKS, component::ZMM_UPPER, component::ZMM_HIGH] {
        if layout.offset(number).is_some() {
            components |= 1 << number;
        }
    }
    let before = u64::from_le_bytes(frame[IN_USE..IN_USE + 8].try_into().expect("eight bytes"));
    frame[IN_USE..IN_USE + 8].copy_from_slice(&(before | components).to_le_bytes());
}
