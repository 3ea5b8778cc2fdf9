//! Births and deaths: threads, forks, vforks, exec, exit and fatal signals.
//!
//! # Safety
//! Edits frames and registers threads with the kernel; the assembly it relies on is the gate's.
//!
//! # Signal context
//! Everything here runs in handlers, in program context (no code of the runtime is interrupted), so that the
//! private heap and files may be used where a process or thread begins or ends.
#![allow(unsafe_code)]

use crate::actions;
use crate::clock;
use crate::code;
use crate::control;
use crate::exec;
use crate::frame::Frame;
use crate::heat;
use crate::kernel_call::{self, After};
use crate::memory;
use crate::patch;
use crate::protect;
use crate::registrations;
use crate::report::{self, End};
use crate::thread::{self, HandlerState, Thread};
use crate::unwind;
use crate::world;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use thermalloc_alloc as alloc;
use thermalloc_sys::gate::{self, ThreadEntry, syscall};
use thermalloc_sys::mem;

pub use crate::exec::ExecImage;

static PID: AtomicI32 = AtomicI32::new(0);

/// The process id.
pub fn pid() -> i32 {
    PID.load(Ordering::Relaxed)
}

/// Notes the process id, at start and after a fork.
pub fn note_pid() {
    // SAFETY: getpid takes no pointers.
    PID.store(unsafe { syscall(libc::SYS_getpid, &[]) } as i32, Ordering::Relaxed);
}

/// What a fork or thread start on its way needs when it has returned.
#[derive(Clone, Copy)]
pub enum Birth {
    /// None is on its way.
    None,
    /// A thread that will run on this block.
    Thread(&'static Thread),
    /// A process with memory of its own; the address of the word in which the child says that it has its copy of
    /// the heap, 0 if it needs none.
    Process(usize),
    /// A process that borrows this one's memory; the process that made it.
    Borrower(i32),
}

/// What kind of birth a system call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    flags: u64,
    /// Lowest address or top of the new stack, 0: the parent's.
    stack_top: u64,
    /// The word that the kernel clears when the child ends, if the flags say so.
    child_tid: u64,
}

fn request(nr: i64, args: &[u64; 6]) -> Option<Request> {
    match nr {
        libc::SYS_fork => Some(Request { flags: 0, stack_top: 0, child_tid: 0 }),
        libc::SYS_vfork => {
            Some(Request { flags: (libc::CLONE_VM | libc::CLONE_VFORK) as u64, stack_top: 0, child_tid: 0 })
        }
        libc::SYS_clone => Some(Request { flags: args[0], stack_top: args[1], child_tid: args[3] }),
        libc::SYS_clone3 => {
            // flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size
            let fields = memory::read_value::<[u64; 7]>(args[0] as usize)?;
            let stack_top = if fields[5] == 0 { 0 } else { fields[5].wrapping_add(fields[6]) };
            Some(Request { flags: fields[0], stack_top, child_tid: fields[2] })
        }
        _ => None,
    }
}

/// fork, vfork, clone or clone3.
pub fn begin_birth(state: &mut HandlerState, frame: &mut Frame, nr: i64) {
    let Some(request) = request(nr, &frame.arguments()) else {
        kernel_call::begin(state, frame, nr, gate::call());
        return;
    };
    let shares_memory = request.flags & libc::CLONE_VM as u64 != 0;
    state.clears_handlers = keep_handlers(state, frame, nr, &request);
    let borrows = shares_memory && request.flags & libc::CLONE_VFORK as u64 != 0;
    if borrows {
        state.birth = Birth::Borrower(own_pid());
        kernel_call::begin(state, frame, nr, gate::call());
        pass_copy(state, frame);
    } else if shares_memory {
        begin_thread(state, frame, nr, &request);
    } else {
        begin_process(state, frame, nr);
    }
}

/// clone3 may be told to reset all signal handlers in the child; the monitor's must stay, or the child dies of its first
/// trap. The call gets a copy of its arguments without that flag, and the child resets the program's handlers itself.
fn keep_handlers(state: &mut HandlerState, frame: &mut Frame, nr: i64, request: &Request) -> bool {
    const CLONE_CLEAR_SIGHAND: u64 = 1 << 32;
    if nr != libc::SYS_clone3 || request.flags & CLONE_CLEAR_SIGHAND == 0 {
        return false;
    }
    let [at, len, ..] = frame.arguments();
    let copy = &mut state.clone_args;
    let words = (len as usize / 8).min(copy.len());
    for (index, word) in copy[..words].iter_mut().enumerate() {
        let Some(value) = memory::read_value(at as usize + 8 * index) else { return false };
        *word = value;
    }
    copy[0] &= !CLONE_CLEAR_SIGHAND;
    true
}

fn begin_thread(state: &mut HandlerState, frame: &mut Frame, nr: i64, request: &Request) {
    code::share();
    let Ok(new) = thread::new_block() else {
        frame.context.rax = -i64::from(libc::EAGAIN) as u64;
        return;
    };
    // SAFETY: the block is new, and its thread has not started.
    unsafe {
        new.set_start(start_thread);
        let start = new.start_frame(frame);
        start.context.rax = 0;
        start.context.rcx = frame.context.rip;
        start.context.rip = patch::ahead(frame.context.rip);
        if request.stack_top != 0 {
            start.context.rsp = request.stack_top;
        }
        let own = new.in_handler();
        own.blocked = state.blocked;
        if request.flags & libc::CLONE_CHILD_CLEARTID as u64 != 0 {
            own.registrations.add(request.child_tid as usize, 4);
        }
    }
    if request.flags & libc::CLONE_SETTLS as u64 == 0 {
        // It runs on its creator's thread pointer, and so on its creator's slot.
        new.keep_slot();
        // Translated code keeps a thread's words behind its thread pointer.
        patch::stop();
    }
    let mask = frame.mask;
    kernel_call::begin(state, frame, nr, gate::clone());
    // The child takes no signal before it has a signal stack; the parent's mask comes back with the call's return.
    state.call.after = After::Mask(mask);
    frame.mask = !actions::RESERVED;
    frame.context.r9 = new as *const Thread as u64;
    state.birth = Birth::Thread(new);
}

/// First code of a new thread, on the stack of its block: all signals are blocked.
unsafe extern "C" fn start_thread(entry: *mut ThreadEntry) -> ! {
    // SAFETY: the gate hands over the block that `begin_thread` put in r9.
    let thread = unsafe { &*entry.cast::<Thread>() };
    // SAFETY: gettid takes no pointers.
    let tid = unsafe { syscall(libc::SYS_gettid, &[]) } as i32;
    thread.tid.store(tid, Ordering::Relaxed);
    if thread.register_stack().and(thread.register_dispatch(control::dispatches())).is_err() {
        gate::write_all(2, b"thermalloc: a new thread could not be watched\n");
    }
    if !thread.keeps_slot() {
        thread.adopt();
    }
    thread.catch_calls();
    let frame = thread.start_frame_address();
    // SAFETY: the frame was made from one of the kernel's; returning from it enters the program as the clone
    // would have. rt_sigreturn expects the stack pointer behind the frame's first word.
    unsafe {
        core::arch::asm!(
            "mov rsp, {frame}",
            "jmp {restorer}",
            frame = in(reg) frame + 8,
            restorer = in(reg) gate::restorer(),
            options(noreturn),
        )
    }
}

fn begin_process(state: &mut HandlerState, frame: &mut Frame, nr: i64) {
    while !world::close() {
        world::wait_until_open();
    }
    alloc::fork_prepare();
    heat::before_fork();
    let word = if control::is_aliased() { shared_word() } else { 0 };
    state.birth = Birth::Process(word);
    kernel_call::begin(state, frame, nr, gate::call());
    pass_copy(state, frame);
}

/// Hands the copy of [`keep_handlers`] to the call that has begun.
fn pass_copy(state: &HandlerState, frame: &mut Frame) {
    if state.clears_handlers {
        frame.context.rdi = state.clone_args.as_ptr() as u64;
    }
}

/// A word that parent and child share, 0 if there is no memory for one.
fn shared_word() -> usize {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let at = unsafe { syscall(libc::SYS_mmap, &[0, mem::PAGE, prot, flags, usize::MAX, 0]) };
    mem::check(at).unwrap_or(0)
}

/// A call on its way has returned: whatever kind it was, the thread goes back to the program.
pub fn call_returned(thread: &Thread, state: &mut HandlerState, frame: &mut Frame) {
    let result = frame.context.rax as i64;
    end_borrowing(state);
    match core::mem::replace(&mut state.birth, Birth::None) {
        Birth::None => {}
        Birth::Thread(new) if result < 0 => new.retire(),
        Birth::Thread(_) => {}
        Birth::Process(word) if result == 0 => become_child(thread, state, word),
        Birth::Process(word) => await_child(word, result as i32),
        Birth::Borrower(parent) if result == 0 => borrow(thread, state, parent),
        Birth::Borrower(_) => {}
    }
    if let Some(image) = state.exec.take() {
        exec::failed(image);
    }
    let ordinal = thread.ordinal.load(Ordering::Relaxed);
    kernel_call::finish(state, frame, ordinal);
}

/// A call has been taken back to its `syscall` instruction: undoes what was prepared for it.
pub fn call_taken_back(state: &mut HandlerState) {
    match core::mem::replace(&mut state.birth, Birth::None) {
        Birth::Thread(new) => new.retire(),
        Birth::Process(word) => {
            release_word(word);
            end_standstill();
        }
        Birth::None | Birth::Borrower(_) => {}
    }
    if let Some(image) = state.exec.take() {
        exec::failed(image);
    }
}

fn release_word(word: usize) {
    if word != 0 {
        // SAFETY: the page was mapped for this word alone.
        let _ = unsafe { mem::unmap(word, mem::PAGE) };
    }
}

/// In the child of a fork: a heap of its own, no threads but this one, and nothing accessed so far.
fn become_child(thread: &Thread, state: &mut HandlerState, word: usize) {
    note_pid();
    thread.tid.store(pid(), Ordering::Relaxed);
    // First of all: threads that exist no more may have held these when the process was copied.
    protect::release_lock();
    actions::forked();
    patch::forked();
    thread::forked();
    ENDING.store(false, Ordering::SeqCst);
    // SAFETY: the child of a fork, whose parent waits; nobody is inside the allocator, for the world stood still.
    if control::is_aliased() && unsafe { alloc::fork_copy_alias() }.is_err() {
        gate::write_all(2, b"thermalloc: no memory for the heap of a forked child\n");
        gate::abort();
    }
    if word != 0 {
        // SAFETY: the word is an aligned atomic that the parent keeps mapped until it has seen the change.
        unsafe { AtomicI32::from_ptr(word as *mut i32) }.store(1, Ordering::SeqCst);
        // SAFETY: wakes whoever waits on a live word.
        unsafe { syscall(libc::SYS_futex, &[word, libc::FUTEX_WAKE as usize, 1]) };
        release_word(word);
    }
    protect::forked(state.registrations.ranges());
    heat::after_fork();
    // SAFETY: `begin_process` has taken the locks.
    unsafe { alloc::fork_child() };
    world::forked();
    clock::restart();
    heat::forked(thread.sheet());
    report::forked();
    state.vfork_child = false;
    if state.clears_handlers {
        actions::clear();
    }
    if thread.register_dispatch(control::dispatches()).is_err() {
        gate::write_all(2, b"thermalloc: a forked child cannot be watched\n");
    }
}

/// In the parent of a fork: the heap stands still until the child has its copy.
fn await_child(word: usize, child: i32) {
    if word != 0 && child > 0 {
        // SAFETY: as in `become_child`.
        let done = unsafe { AtomicI32::from_ptr(word as *mut i32) };
        while done.load(Ordering::SeqCst) == 0 && !is_dead(child) {
            let timeout = [0u64, 10_000_000];
            let timeout_at = timeout.as_ptr() as usize;
            // SAFETY: waits on a live word with a live timeout.
            unsafe { syscall(libc::SYS_futex, &[word, libc::FUTEX_WAIT as usize, 0, timeout_at]) };
        }
    }
    release_word(word);
    end_standstill();
}

/// In the parent: the heap may change again.
fn end_standstill() {
    heat::after_fork();
    // SAFETY: `begin_process` has taken the locks.
    unsafe { alloc::fork_parent() };
    world::open();
}

/// Whether a child has ended (and not yet been reaped).
fn is_dead(child: i32) -> bool {
    let mut info = [0u64; 16];
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: the kernel writes a siginfo into a live buffer.
    let result = unsafe {
        syscall(
            libc::SYS_waitid,
            &[libc::P_PID as usize, child as usize, info.as_mut_ptr() as usize, options as usize, 0],
        )
    };
    if result == -(libc::ECHILD as isize) {
        // Not ours to wait for (CLONE_PARENT): all that can be told is whether it exists.
        // SAFETY: signal 0 only asks.
        return unsafe { syscall(libc::SYS_kill, &[child as usize, 0]) } == -(libc::ESRCH as isize);
    }
    result < 0 || info[0] as i32 == libc::SIGCHLD
}

/// In the child of a vfork: it runs on its parent's memory and block, while its parent waits in the stub.
fn borrow(thread: &Thread, state: &mut HandlerState, parent: i32) {
    if state.suspended.len() < state.suspended.capacity() {
        state.suspended.push((parent, state.call.clone()));
    }
    if state.clears_handlers {
        actions::clear_for_child();
    }
    // The buffers are the parent's to close.
    state.call.forget_openings();
    state.vfork_child = true;
    if thread.register_dispatch(control::dispatches()).is_err() {
        gate::write_all(2, b"thermalloc: a vfork child cannot be watched\n");
    }
}

/// The process id as the kernel has it, in a vfork child too.
fn own_pid() -> i32 {
    // SAFETY: getpid takes no pointers.
    unsafe { syscall(libc::SYS_getpid, &[]) as i32 }
}

/// If this is a parent whose vfork child has run on the same block, puts its own call back.
fn end_borrowing(state: &mut HandlerState) {
    if state.suspended.is_empty() {
        return;
    }
    let own = own_pid();
    if let Some(at) = state.suspended.iter().rposition(|&(parent, _)| parent == own) {
        // What the children's last calls had opened, an exec's arguments for instance, is this process's to close.
        kernel_call::close_buffers(&mut state.call);
        for (_, call) in &mut state.suspended[at + 1..] {
            kernel_call::close_buffers(call);
        }
        state.suspended.truncate(at + 1);
        if let Some((_, call)) = state.suspended.pop() {
            state.call = call;
        }
        state.exec = None;
        state.birth = Birth::None;
        state.vfork_child = !state.suspended.is_empty();
    }
}

/// The thread ends.
pub fn exit_thread(thread: &Thread, state: &HandlerState, frame: &Frame) -> ! {
    if !control::is_sandboxed() {
        registrations::release_robust(thread.tid.load(Ordering::Relaxed) as u32);
    }
    if !is_guest(state) {
        thread.end_sheet();
        thread.retire();
    }
    leave_block(thread);
    loop {
        // SAFETY: ends this thread alone.
        unsafe { syscall(libc::SYS_exit, &[frame.context.rdi as usize]) };
    }
}

/// exit_group: writes the report and ends the process.
pub fn exit(thread: &Thread, state: &HandlerState, frame: &Frame) -> ! {
    let status = frame.context.rdi as i32;
    if !is_guest(state) {
        last_report(End::Exit, status & 0xff);
    }
    leave_block(thread);
    gate::exit_group(status)
}

/// Leaves the block as a vfork parent, which goes on using it, expects it: outside handlers.
fn leave_block(thread: &Thread) {
    thread.set_handling(false);
    thread.catch_calls();
}

/// A signal ends the process: the report is written, and the signal meets its default action.
pub fn die(thread: &Thread, state: &mut HandlerState, frame: &mut Frame) {
    let signal = frame.info.signo;
    if !is_guest(state) {
        last_report(End::Signal, signal);
    }
    actions::uncover(signal);
    // The program is put back where it was. A fault happens again, now with nobody to take it; any other
    // signal is sent again.
    let repeats = matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL)
        && frame.info.code > 0
        && frame.info.code != 128;
    frame.mask &= !actions::bit(signal);
    if !repeats {
        let info = &raw const frame.info as usize;
        let tid = thread.tid.load(Ordering::Relaxed) as usize;
        // SAFETY: the kernel reads a live siginfo.
        unsafe {
            let own = syscall(libc::SYS_getpid, &[]) as usize;
            let tid = if state.vfork_child { own } else { tid };
            if syscall(libc::SYS_rt_tgsigqueueinfo, &[own, tid, signal as usize, info]) < 0 {
                syscall(libc::SYS_tgkill, &[own, tid, signal as usize]);
            }
        }
    }
}

/// Whether this is another process that runs on this one's memory: a vfork child, or one made with CLONE_VM alone.
fn is_guest(state: &HandlerState) -> bool {
    state.vfork_child || own_pid() != pid()
}

static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the last report is being written, or has been.
pub fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// Writes the report that ends this process image. One thread does; others that arrive wait for the end.
fn last_report(end: End, status: i32) {
    if ENDING.swap(true, Ordering::SeqCst) {
        loop {
            // SAFETY: waits for the end of the process.
            unsafe { syscall(libc::SYS_pause, &[]) };
        }
    }
    // While the loader can still be asked: a thread that waits at the closed gate may hold its lock.
    unwind::modules::try_poll();
    while !world::close() {
        world::wait_until_open();
    }
    report::write_last(end, status);
}
