//! The gate: every system call that the runtime itself makes, and every system call that it makes on the
//! program's behalf, executes inside one contiguous stretch of code, `[start, end)`. Syscall User Dispatch is
//! told to let this stretch pass; all other `syscall` instructions of the process arrive at the monitor.
//!
//! # Safety
//! The assembly only makes system calls; what they do is up to the caller, hence `unsafe fn`.
//!
//! # Signal context
//! Everything here may run in a handler: no memory is touched except what a system call is handed.
#![allow(unsafe_code)]

use core::arch::global_asm;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

global_asm!(
    ".pushsection .text.thermalloc_gate,\"ax\",@progbits",
    ".p2align 6",
    ".globl thermalloc_gate_start",
    ".hidden thermalloc_gate_start",
    "thermalloc_gate_start:",
    // long thermalloc_gate_syscall(nr, a0..a4, a5 on the stack): the C convention to the kernel's.
    ".globl thermalloc_gate_syscall",
    ".hidden thermalloc_gate_syscall",
    "thermalloc_gate_syscall:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "ret",
    // Return point of the runtime's signal handlers (sa_restorer).
    ".globl thermalloc_gate_restorer",
    ".hidden thermalloc_gate_restorer",
    "thermalloc_gate_restorer:",
    "mov eax, 15",
    "syscall",
    "ud2",
    // A program's system call, run with the program's registers and signal mask; the trap hands the
    // result to the monitor. `thermalloc_gate_call_done` is where RIP stands once the call has returned.
    ".globl thermalloc_gate_call",
    ".hidden thermalloc_gate_call",
    "thermalloc_gate_call:",
    "syscall",
    ".globl thermalloc_gate_call_done",
    ".hidden thermalloc_gate_call_done",
    "thermalloc_gate_call_done:",
    "int3",
    // RIP behind a trap must not be the start of something else.
    ".p2align 4, 0xcc",
    // The same without a trap: on to where the word behind `thermalloc_gate_door_next` says.
    ".globl thermalloc_gate_door",
    ".hidden thermalloc_gate_door",
    "thermalloc_gate_door:",
    "syscall",
    ".globl thermalloc_gate_door_done",
    ".hidden thermalloc_gate_door_done",
    "thermalloc_gate_door_done:",
    "jmp qword ptr [rip + thermalloc_gate_door_next]",
    ".p2align 4, 0xcc",
    // A program's thread-creating clone/clone3. r9 holds the new thread's block, whose first word is the
    // top of a stack of the runtime and whose second is the function that starts the thread there.
    // rcx is dead here (the `syscall` instruction overwrites it), and jrcxz leaves the flags alone.
    ".globl thermalloc_gate_clone",
    ".hidden thermalloc_gate_clone",
    "thermalloc_gate_clone:",
    "syscall",
    ".globl thermalloc_gate_clone_done",
    ".hidden thermalloc_gate_clone_done",
    "thermalloc_gate_clone_done:",
    "mov rcx, rax",
    "jrcxz 2f",
    "int3",
    "2:",
    "mov rsp, [r9]",
    "mov rdi, r9",
    "call [r9 + 8]",
    "ud2",
    ".globl thermalloc_gate_end",
    ".hidden thermalloc_gate_end",
    "thermalloc_gate_end:",
    ".popsection",
    ".pushsection .bss.thermalloc_gate_door_next,\"aw\",@nobits",
    ".p2align 3",
    ".globl thermalloc_gate_door_next",
    ".hidden thermalloc_gate_door_next",
    "thermalloc_gate_door_next:",
    ".zero 8",
    ".popsection",
);

unsafe extern "C" {
    static thermalloc_gate_start: u8;
    static thermalloc_gate_restorer: u8;
    static thermalloc_gate_call: u8;
    static thermalloc_gate_call_done: u8;
    static thermalloc_gate_door: u8;
    static thermalloc_gate_door_done: u8;
    static thermalloc_gate_door_next: AtomicUsize;
    static thermalloc_gate_clone: u8;
    static thermalloc_gate_clone_done: u8;
    static thermalloc_gate_end: u8;
    fn thermalloc_gate_syscall(
        nr: i64,
        a0: usize,
        a1: usize,
        a2: usize,
        a3: usize,
        a4: usize,
        a5: usize,
    ) -> isize;
}

/// The code that Syscall User Dispatch lets pass.
pub fn range() -> Range<usize> {
    address(&raw const thermalloc_gate_start)..address(&raw const thermalloc_gate_end)
}

/// `sa_restorer` of the runtime's own handlers.
pub fn restorer() -> usize {
    address(&raw const thermalloc_gate_restorer)
}

/// Where a program's system call is sent to run: one `syscall` instruction, then a breakpoint trap.
pub fn call() -> usize {
    address(&raw const thermalloc_gate_call)
}

/// RIP between the return of the call sent to [`call`] and the trap.
pub fn call_done() -> usize {
    address(&raw const thermalloc_gate_call_done)
}

/// Like [`call`], with a jump to [`on_door`]'s address for the trap.
pub fn door() -> usize {
    address(&raw const thermalloc_gate_door)
}

/// RIP between the return of the call sent to [`door`] and the jump.
pub fn door_done() -> usize {
    address(&raw const thermalloc_gate_door_done)
}

/// Sets where calls sent to [`door`] go on; before the first of them.
pub fn on_door(next: usize) {
    // SAFETY: an aligned word of this module's, which only this function writes.
    unsafe { thermalloc_gate_door_next.store(next, Ordering::Relaxed) };
}

/// Like [`call`], for a clone that starts a thread; r9 holds the address of a [`ThreadEntry`].
pub fn clone() -> usize {
    address(&raw const thermalloc_gate_clone)
}

/// RIP in the parent after the clone sent to [`clone()`] has returned: from there up to behind the trap.
pub fn clone_done() -> Range<usize> {
    let start = address(&raw const thermalloc_gate_clone_done);
    start..start + 7
}

/// What a thread started through [`clone()`] finds behind r9.
#[repr(C)]
pub struct ThreadEntry {
    /// Top of the stack on which `start` runs, 16-byte aligned.
    pub stack_top: usize,
    /// Called with the address of this structure; never returns.
    pub start: unsafe extern "C" fn(*mut ThreadEntry) -> !,
}

fn address(symbol: *const u8) -> usize {
    symbol as usize
}

/// One system call, straight to the kernel. Returns what the kernel returned: `-errno` on failure.
///
/// # Safety
/// As the system call itself: the caller vouches for every pointer and for what the call does.
#[inline]
pub unsafe fn syscall6(nr: i64, args: [usize; 6]) -> isize {
    let [a0, a1, a2, a3, a4, a5] = args;
    // SAFETY: the gate follows the C calling convention; the caller vouches for the call.
    unsafe { thermalloc_gate_syscall(nr, a0, a1, a2, a3, a4, a5) }
}

/// [`syscall6`] with trailing arguments zero.
///
/// # Safety
/// As [`syscall6`].
#[inline]
pub unsafe fn syscall(nr: i64, args: &[usize]) -> isize {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    // SAFETY: forwarded to the caller.
    unsafe { syscall6(nr, all) }
}

/// Writes bytes to a file descriptor, as far as it will take them; errors are dropped. For messages.
pub fn write_all(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the kernel only reads `bytes`, which is a live slice.
        let n = unsafe { syscall(libc::SYS_write, &[fd as usize, bytes.as_ptr() as usize, bytes.len()]) };
        match n {
            n if n > 0 => bytes = &bytes[n as usize..],
            n if n == -(libc::EINTR as isize) => {}
            _ => return,
        }
    }
}

/// Ends every thread of the process, now.
pub fn exit_group(status: i32) -> ! {
    loop {
        // SAFETY: exit_group takes no pointer and does not return.
        unsafe { syscall(libc::SYS_exit_group, &[status as usize]) };
    }
}

/// Ends the process by SIGABRT, whatever the program does with that signal.
pub fn abort() -> ! {
    let default = [0usize; 4];
    let unblock = 1u64 << (libc::SIGABRT - 1);
    // SAFETY: the kernel reads a zeroed kernel_sigaction (SIG_DFL) and a signal mask, both live locals.
    unsafe {
        syscall(libc::SYS_rt_sigaction, &[libc::SIGABRT as usize, default.as_ptr() as usize, 0, 8]);
        syscall(libc::SYS_rt_sigprocmask, &[libc::SIG_UNBLOCK as usize, &raw const unblock as usize, 0, 8]);
        let pid = syscall(libc::SYS_getpid, &[]) as usize;
        let tid = syscall(libc::SYS_gettid, &[]) as usize;
        syscall(libc::SYS_tgkill, &[pid, tid, libc::SIGABRT as usize]);
    }
    exit_group(127)
}
