//! Per-thread state of the monitor.
//!
//! A thread's block is 1 MiB of address space, aligned to its size:
//! ```text
//!   base                                              base + 1 MiB
//!   | Thread | free | runtime's stack | guard page | alternate signal stack |
//! ```
//! All handlers run on the alternate stack, so a handler finds its thread by masking its stack pointer, whatever
//! the program does with fs. Code outside handlers (malloc) finds it in a thread slot.
//!
//! # Safety
//! A block is never unmapped. What handlers alone use sits in an `UnsafeCell` that [`Thread::in_handler`] gives
//! out; handlers do not nest, but for faults of the probing copy, which use none of it.
//!
//! # Signal context
//! [`Thread::here`] and all methods are for handlers; [`new_block`] is called in the one that starts a thread.
#![allow(unsafe_code)]

use crate::actions::{RESERVED, bit};
use crate::charged::Charged;
use crate::clock;
use crate::emulate::Emulator;
use crate::errno::KeptErrno;
use crate::frame::{Frame, Info, Stack};
use crate::heat::{self, Sheet};
use crate::kernel_call::Call;
use crate::operands::{DecoderState, XsaveLayout};
use crate::own_stack;
use crate::patch::{self, Door};
use crate::peek::Peek;
use crate::process::{Birth, ExecImage};
use crate::registrations::Registrations;
use crate::step::Step;
use crate::unwind::UnwindState;
use crate::world;
use core::cell::{Cell, UnsafeCell};
use core::mem::offset_of;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::OnceLock;
use thermalloc_sys::gate::{self, ThreadEntry};
use thermalloc_sys::lock::Lock;
use thermalloc_sys::mem::{self, Errno, PAGE, check};

thermalloc_sys::thread_slot! {
    /// The calling thread's block, 0 before it is enrolled.
    mod slot = "thermalloc_monitor_thread"
}

const BLOCK: usize = 1 << 20;
const ALT_STACK: usize = 512 << 10;
/// What the runtime's own stack has at least.
const OWN_STACK: usize = 256 << 10;
/// Room for the extended state of a frame: AVX-512 takes 2.7 KiB, AMX 11 KiB.
const EXTENDED: usize = 16 << 10;

/// Least time from one charge of a thread's inline counts to the next.
const COLLECT_NS: u64 = 10_000_000;

/// Selector values of Syscall User Dispatch (linux/syscall_user_dispatch.h).
const ALLOW: u8 = 0;
const BLOCK_CALLS: u8 = 1;
const PR_SET_SYSCALL_USER_DISPATCH: usize = 59;
const PR_SYS_DISPATCH_ON: usize = 1;

/// A thread as the monitor knows it.
#[repr(C)]
pub struct Thread {
    /// What the gate's clone stub finds; must be first.
    entry: UnsafeCell<ThreadEntry>,
    /// Kernel thread id; 0 while the block is being set up.
    pub tid: AtomicI32,
    /// Number in order of appearance, for the sets of threads that touched an object.
    pub ordinal: AtomicU32,
    /// Read by the kernel at each system call of this thread.
    selector: AtomicU8,
    /// Above zero while the thread runs code of the runtime outside handlers.
    depth: Cell<u32>,
    /// Signals that arrived meanwhile: blocked, and pending with the kernel.
    deferred: Cell<u64>,
    late: Cell<Option<Info>>,
    /// Whether either of these has arrived since the thread came to the door.
    waiting: Cell<bool>,
    /// The next retired block.
    next: AtomicUsize,
    keeps_slot: Cell<bool>,
    /// Whether the thread is in a handler.
    handling: Cell<bool>,
    /// Where inline code counts the thread's accesses.
    sheet: Cell<Option<&'static Sheet>>,
    /// Whether translated code finds the sheet.
    counts_inline: Cell<bool>,
    /// When what it holds is next to be charged.
    collect_ns: Cell<u64>,
    handler: UnsafeCell<HandlerState>,
    unwind: UnsafeCell<UnwindState>,
    peek: UnsafeCell<Peek>,
    start: UnsafeCell<StartFrame>,
    door: Door,
}

/// What only handlers use.
pub struct HandlerState {
    /// The step in progress.
    pub step: Step,
    /// Where the program has seen its own single step last.
    pub traced: u64,
    /// Stubs of emulated instructions.
    pub emulator: Emulator,
    /// What the last callout has charged, until its instruction has run.
    pub callout: Charged,
    /// The system call in progress.
    pub call: Call,
    /// Calls that a vfork child's calls have displaced, with the process that made them: the child's parent, on the
    /// same block, is inside vfork.
    pub suspended: Vec<(i32, Call)>,
    /// The program's alternate signal stack.
    pub altstack: Stack,
    /// Signals of the monitor that the program believes blocked.
    pub blocked: u64,
    /// Signals of the monitor that arrived while the program had them blocked: SEGV, BUS, TRAP, SYS.
    pub kept: [Option<Info>; 4],
    /// What a fork or thread start on its way needs when it has returned.
    pub birth: Birth,
    /// The environment handed to an exec on its way.
    pub exec: Option<ExecImage>,
    /// Memory that the kernel accesses by itself for this thread.
    pub registrations: Registrations,
    /// Arguments of a clone3 that the monitor has changed, and whether its child is to reset its handlers.
    pub clone_args: [u64; 11],
    /// See `clone_args`.
    pub clears_handlers: bool,
    /// Decoder with its tables warmed.
    pub decoder: DecoderState,
    /// Whether this is a vfork child that borrows its parent's block.
    pub vfork_child: bool,
}

impl HandlerState {
    /// Whether a vfork child and its parent share this state now.
    pub fn borrows(&self) -> bool {
        self.vfork_child || !self.suspended.is_empty()
    }
}

/// The frame from which a new thread enters the program.
#[repr(C, align(64))]
struct StartFrame {
    extended: [u8; EXTENDED],
    frame: core::mem::MaybeUninit<Frame>,
}

/// First block whose thread has ended or is about to; the others follow by their `next`.
static RETIRED: Lock<usize> = Lock::new(0);
static ORDINALS: AtomicU32 = AtomicU32::new(0);

impl Thread {
    /// Offset of the door.
    pub const DOOR: usize = offset_of!(Self, door);
    /// Offset of the depth, a u32.
    pub const DEPTH: usize = offset_of!(Self, depth);
    /// Offset of what says that a signal waits, a byte.
    pub const WAITING: usize = offset_of!(Self, waiting);

    /// The thread whose alternate stack the caller runs on.
    ///
    /// # Safety
    /// Called in a handler of the monitor, or by a thread that starts on its block's stack.
    #[inline(always)]
    pub unsafe fn here() -> &'static Self {
        let sp: usize;
        // SAFETY: reads the stack pointer.
        unsafe { core::arch::asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
        // SAFETY: the caller runs on an alternate stack at the end of a block, whose base holds the thread.
        unsafe { &*((sp & !(BLOCK - 1)) as *const Self) }
    }

    /// The calling thread, if it is enrolled. For code outside handlers.
    #[inline(always)]
    pub fn current() -> Option<&'static Self> {
        let at = slot::get();
        // SAFETY: the slot holds 0 or a block, and blocks live forever.
        (at != 0).then(|| unsafe { &*(at as *const Self) })
    }

    /// The handlers' part of the state.
    ///
    /// # Safety
    /// Called once in each handler run of this thread.
    #[expect(clippy::mut_from_ref, reason = "handlers of one thread do not nest")]
    pub unsafe fn in_handler(&self) -> &mut HandlerState {
        // SAFETY: handlers of one thread do not nest, and nobody else uses this part.
        unsafe { &mut *self.handler.get() }
    }

    /// The unwinder's cache; for code of the runtime outside handlers, between [`Runtime::enter`] and its end.
    ///
    /// # Safety
    /// No other reference from this method is alive.
    #[expect(clippy::mut_from_ref, reason = "the depth keeps the runtime's code from nesting")]
    pub unsafe fn unwind(&self) -> &mut UnwindState {
        // SAFETY: only the thread itself calls this, once at a time.
        unsafe { &mut *self.unwind.get() }
    }

    /// The runtime's own access to watched memory, if one is on its way.
    ///
    /// # Safety
    /// Called in a handler that has interrupted the runtime, once.
    #[expect(clippy::mut_from_ref, reason = "such handlers do not nest")]
    pub unsafe fn peek(&self) -> &mut Peek {
        // SAFETY: only such a handler uses this part.
        unsafe { &mut *self.peek.get() }
    }

    /// The alternate stack that the kernel knows.
    fn stack(&self) -> Stack {
        let base = self as *const Self as usize;
        Stack::new(base + BLOCK - ALT_STACK, ALT_STACK)
    }

    /// Whether the thread is in code of the runtime, outside handlers.
    pub fn in_runtime(&self) -> bool {
        self.depth.get() > 0
    }

    /// Whether the thread runs code of the runtime, in a handler or outside.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.depth.get() > 0 || self.handling.get()
    }

    /// Says whether the thread is in a handler.
    pub fn set_handling(&self, handling: bool) {
        self.handling.set(handling);
    }

    /// Lets this thread's system calls pass without a trap.
    pub fn allow_calls(&self) {
        self.selector.store(ALLOW, Ordering::Relaxed);
    }

    /// Sends this thread's system calls to the monitor.
    pub fn catch_calls(&self) {
        self.selector.store(BLOCK_CALLS, Ordering::Relaxed);
    }

    /// Keeps a signal until the thread leaves the runtime: it stays pending with the kernel, blocked.
    pub fn defer(&self, frame: &mut Frame) {
        let signal = frame.info.signo;
        self.waiting.set(true);
        if RESERVED & bit(signal) != 0 {
            // It cannot be blocked, or the monitor would be.
            self.late.set(Some(frame.info));
            return;
        }
        frame.mask |= 1 << (signal - 1);
        self.deferred.set(self.deferred.get() | 1 << (signal - 1));
        send(&frame.info);
    }

    /// A signal of the monitor's that came from outside while the thread was busy.
    pub fn take_late(&self) -> Option<Info> {
        self.late.take()
    }

    /// Signals that wait for the thread to leave the runtime; whoever takes them unblocks them.
    pub fn take_deferred(&self) -> u64 {
        self.deferred.take()
    }

    /// Whether a signal waits that has arrived since the thread came to the door.
    pub fn is_waiting(&self) -> bool {
        self.waiting.get()
    }

    /// Signals that wait are about to be let in.
    pub fn stop_waiting(&self) {
        self.waiting.set(false);
    }

    /// The thread's door.
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// Opens the door to the runtime for the thread's translated code.
    pub fn open_door(&self) {
        self.door.open(self.own_stack_top() as u64);
    }

    /// The thread has left the runtime by the door.
    pub fn leave_door(&self) {
        self.depth.set(0);
    }

    fn own_stack_top(&self) -> usize {
        self as *const Self as usize + BLOCK - ALT_STACK - PAGE
    }

    /// Whether translated code counts the thread's accesses.
    #[inline]
    pub fn counts_inline(&self) -> bool {
        self.counts_inline.get()
    }

    /// See [`counts_inline`](Self::counts_inline).
    pub fn set_counts_inline(&self) {
        self.counts_inline.set(true);
    }

    /// The thread's sheet, if it has one.
    pub fn sheet(&self) -> Option<&'static Sheet> {
        self.sheet.get()
    }

    /// The thread's sheet; it takes one if it has none. For code that may use the private heap.
    pub fn need_sheet(&self) -> Option<&'static Sheet> {
        if self.sheet.get().is_none() {
            self.sheet.set(heat::take_sheet(self.ordinal.load(Ordering::Relaxed)));
        }
        self.sheet.get()
    }

    /// Charges what the thread has counted inline, if that was long ago: so that times are known. The thread itself calls
    /// this, and spends one part in fifty of its time on it at most.
    pub fn collect_on_time(&self, now_ns: u64) {
        let Some(sheet) = self.sheet.get().filter(|_| now_ns >= self.collect_ns.get()) else { return };
        heat::collect_sheet(sheet, now_ns);
        let end = clock::now();
        self.collect_ns.set(end + (50 * end.saturating_sub(now_ns)).max(COLLECT_NS));
    }

    /// The thread ends: its sheet is charged, and another's from here on.
    pub fn end_sheet(&self) {
        if let Some(sheet) = self.sheet.take() {
            heat::retire_sheet(sheet, clock::now());
        }
    }

    /// Tells the kernel the thread's alternate stack. Not on that stack itself.
    pub fn register_stack(&self) -> Result<(), Errno> {
        let stack = self.stack();
        // SAFETY: the kernel copies the description; the stack lives as long as the process.
        check(unsafe { gate::syscall(libc::SYS_sigaltstack, &[&raw const stack as usize, 0]) }).map(drop)
    }

    /// Turns Syscall User Dispatch on for the thread, if `dispatch`.
    pub fn register_dispatch(&self, dispatch: bool) -> Result<(), Errno> {
        if !dispatch {
            return Ok(());
        }
        let gate = gate::range();
        let selector = &raw const self.selector as usize;
        let args = [PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, gate.start, gate.len(), selector];
        // SAFETY: the selector is part of the block, which lives as long as the process; the gate lets the
        // runtime's own calls pass.
        check(unsafe { gate::syscall(libc::SYS_prctl, &args) }).map(drop)
    }

    /// Turns Syscall User Dispatch off for the calling thread.
    pub fn end_dispatch(&self) {
        self.allow_calls();
        // SAFETY: takes no pointers.
        unsafe { gate::syscall(libc::SYS_prctl, &[PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0]) };
    }

    /// Leaves the thread slot alone when the thread starts: its creator shares it.
    pub fn keep_slot(&self) {
        self.keeps_slot.set(true);
    }

    /// See [`keep_slot`](Self::keep_slot).
    pub fn keeps_slot(&self) -> bool {
        self.keeps_slot.get()
    }

    /// Makes this the calling thread's block for code outside handlers.
    pub fn adopt(&self) {
        slot::set(self as *const Self as usize);
    }

    /// Copies a frame, with its extended state, into the block as the one from which [`gate::clone`]'s child
    /// enters the program; returns the copy to be edited.
    ///
    /// # Safety
    /// The thread has not started.
    #[expect(clippy::mut_from_ref, reason = "the thread does not run yet")]
    pub unsafe fn start_frame(&self, from: &Frame) -> &mut Frame {
        // SAFETY: nobody else uses the block of a thread that has not started.
        let start = unsafe { &mut *self.start.get() };
        let frame = start.frame.write(*from);
        frame.context.fpstate = 0;
        if let Some(state) = from.extended().filter(|state| state.len() <= EXTENDED) {
            start.extended[..state.len()].copy_from_slice(state);
            frame.context.fpstate = start.extended.as_ptr() as usize;
        }
        frame.stack = self.stack();
        frame
    }

    /// Address of the frame that [`start_frame`](Self::start_frame) made.
    pub fn start_frame_address(&self) -> usize {
        // SAFETY: only the address is taken.
        unsafe { (&raw const (*self.start.get()).frame) as usize }
    }

    /// Sets where the clone stub sends the new thread.
    ///
    /// # Safety
    /// The thread has not started.
    pub unsafe fn set_start(&self, start: unsafe extern "C" fn(*mut ThreadEntry) -> !) {
        let base = self as *const Self as usize;
        // SAFETY: nobody else uses the block of a thread that has not started.
        unsafe { *self.entry.get() = ThreadEntry { stack_top: base + BLOCK - 64, start } };
    }

    /// Marks the block as free once the kernel knows its thread no more.
    pub fn retire(&self) {
        // No allocation: the thread may have taken down its part of the private heap already.
        let mut first = RETIRED.lock();
        self.next.store(*first, Ordering::Relaxed);
        *first = self as *const Self as usize;
    }
}

/// Code of the runtime outside handlers: signals wait, the heap does not stand still for others, and the thread's own system calls pass, until it is dropped.
/// errno stays as it was: the private heap makes calls that fail.
pub struct Runtime {
    thread: &'static Thread,
    _errno: KeptErrno,
}

impl Runtime {
    /// Enters the runtime.
    #[inline]
    pub fn enter(thread: &'static Thread) -> Self {
        let depth = thread.depth.get();
        // First the depth: from here on signals wait, so nothing can longjmp out past `drop`.
        thread.depth.set(depth + 1);
        if depth == 0 {
            world::enter();
            thread.allow_calls();
            if thread.counts_inline() {
                patch::count(false);
            }
        }
        Self { thread, _errno: KeptErrno::keep() }
    }

    /// Runs `act` on a stack that the runtime can use: the program's may lie in the watched heap. `act` must not panic.
    #[inline]
    pub fn run<R>(&self, act: impl FnOnce() -> R) -> R {
        own_stack::run(self.thread.own_stack_top(), act)
    }
}

impl Drop for Runtime {
    #[inline]
    fn drop(&mut self) {
        let depth = self.thread.depth.get() - 1;
        if depth == 0 {
            if self.thread.counts_inline() {
                patch::count(true);
            }
            self.thread.catch_calls();
            world::leave();
        }
        self.thread.depth.set(depth);
        if depth == 0 && self.thread.deferred.get() != 0 {
            release_deferred(self.thread);
        }
        if depth == 0
            && let Some(info) = self.thread.late.take()
        {
            send(&info);
        }
    }
}

/// Sends a signal to the calling thread.
#[cold]
fn send(info: &Info) {
    // SAFETY: the kernel reads a live siginfo.
    unsafe {
        let pid = gate::syscall(libc::SYS_getpid, &[]) as usize;
        let tid = gate::syscall(libc::SYS_gettid, &[]) as usize;
        let info_at = &raw const *info as usize;
        gate::syscall(libc::SYS_rt_tgsigqueueinfo, &[pid, tid, info.signo as usize, info_at]);
    }
}

/// Unblocks the signals that arrived while the thread was in the runtime; the kernel delivers them at once.
#[cold]
fn release_deferred(thread: &Thread) {
    let signals = thread.take_deferred();
    // SAFETY: the kernel reads a mask, which is alive.
    unsafe {
        gate::syscall(
            libc::SYS_rt_sigprocmask,
            &[libc::SIG_UNBLOCK as usize, &raw const signals as usize, 0, 8],
        )
    };
}

/// Where this processor keeps vector registers in a frame. First asked when the first block is made.
pub fn xsave_layout() -> &'static XsaveLayout {
    static LAYOUT: OnceLock<XsaveLayout> = OnceLock::new();
    LAYOUT.get_or_init(XsaveLayout::detect)
}

/// The alternate stack that the kernel has for the calling thread.
pub fn current_altstack() -> Stack {
    let mut stack = Stack::DISABLED;
    // SAFETY: the kernel writes a description into a live local.
    unsafe { gate::syscall(libc::SYS_sigaltstack, &[0, &raw mut stack as usize]) };
    stack
}

/// A block for a new thread: one whose thread is gone, or a fresh one.
pub fn new_block() -> Result<&'static Thread, Errno> {
    let thread = match reusable() {
        Some(thread) => thread,
        None => fresh()?,
    };
    // SAFETY: the block is nobody's.
    let state = unsafe { thread.in_handler() };
    state.step = Step::default();
    state.call = Call::default();
    state.altstack = Stack::DISABLED;
    state.blocked = 0;
    state.kept = [None; 4];
    state.birth = Birth::None;
    state.exec = None;
    state.registrations.clear();
    state.vfork_child = false;
    state.suspended.clear();
    thread.depth.set(0);
    thread.deferred.set(0);
    thread.late.set(None);
    thread.keeps_slot.set(false);
    thread.sheet.set(None);
    thread.counts_inline.set(false);
    thread.collect_ns.set(0);
    thread.handling.set(false);
    thread.tid.store(0, Ordering::Relaxed);
    thread.selector.store(ALLOW, Ordering::Relaxed);
    thread.ordinal.store(ORDINALS.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    Ok(thread)
}

/// In a forked child: the list may have been copied in the middle of a change; what is on it is left alone.
pub fn forked() {
    // SAFETY: the threads that could hold it are gone, and this one does not.
    unsafe { RETIRED.unlock() };
    *RETIRED.lock() = 0;
}

/// Takes the first retired block whose thread the kernel knows no more.
fn reusable() -> Option<&'static Thread> {
    let mut first = RETIRED.lock();
    let (mut at, mut before) = (*first, None::<&Thread>);
    while at != 0 {
        // SAFETY: blocks stay mapped.
        let thread = unsafe { &*(at as *const Thread) };
        let next = thread.next.load(Ordering::Relaxed);
        if !is_alive(thread.tid.load(Ordering::Relaxed)) {
            match before {
                Some(before) => before.next.store(next, Ordering::Relaxed),
                None => *first = next,
            }
            return Some(thread);
        }
        before = Some(thread);
        at = next;
    }
    None
}

/// Whether a thread of this process exists; 0 is one that was never started.
fn is_alive(tid: i32) -> bool {
    // SAFETY: signal 0 only asks whether the thread exists.
    let answer = unsafe {
        let pid = gate::syscall(libc::SYS_getpid, &[]) as usize;
        gate::syscall(libc::SYS_tgkill, &[pid, tid as usize, 0])
    };
    tid != 0 && answer != -(libc::ESRCH as isize)
}

fn fresh() -> Result<&'static Thread, Errno> {
    let reserved = mem::reserve(0, 2 * BLOCK)?.as_ptr() as usize;
    let base = reserved.next_multiple_of(BLOCK);
    let stack = base + BLOCK - ALT_STACK;
    // SAFETY: the range was reserved just now and nobody else knows it.
    unsafe {
        mem::protect(base, stack - PAGE - base, libc::PROT_READ | libc::PROT_WRITE)?;
        mem::protect(stack, ALT_STACK, libc::PROT_READ | libc::PROT_WRITE)?;
        let thread = base as *mut Thread;
        const { assert!(size_of::<Thread>() + OWN_STACK < BLOCK - ALT_STACK - PAGE) };
        // Fields that are not written stay zero, which is valid for all of them.
        (&raw mut (*thread).handler).write(UnsafeCell::new(HandlerState {
            step: Step::default(),
            traced: 0,
            emulator: Emulator::default(),
            callout: Charged::default(),
            call: Call::default(),
            suspended: Vec::with_capacity(4),
            altstack: Stack::DISABLED,
            blocked: 0,
            kept: [None; 4],
            birth: Birth::None,
            exec: None,
            clone_args: [0; 11],
            clears_handlers: false,
            registrations: Registrations::default(),
            decoder: DecoderState::new(*xsave_layout()),
            vfork_child: false,
        }));
        (&raw mut (*thread).peek).write(UnsafeCell::new(Peek::default()));
        (&raw mut (*thread).unwind).write(UnsafeCell::new(UnwindState::new()));
        Ok(&*thread)
    }
}
