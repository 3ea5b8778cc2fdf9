//! A stack of the runtime for code that malloc runs: the program's stack may itself lie in the watched heap, where
//! each push would fault, also while the runtime holds its locks.
//!
//! # Safety
//! The switch keeps to the C calling convention: the callee returns, and nothing unwinds through it.
#![allow(unsafe_code)]

use crate::protect;
use core::mem::MaybeUninit;

struct Job<F, R> {
    act: MaybeUninit<F>,
    result: MaybeUninit<R>,
}

/// Runs `act`, on the stack that ends at `top` if the current one lies in the watched heap. `act` must not panic.
#[inline]
pub fn run<R>(top: usize, act: impl FnOnce() -> R) -> R {
    let sp: usize;
    // SAFETY: reads the stack pointer.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    if protect::watched_extent().contains(&sp) { switch(top, act) } else { act() }
}

#[cold]
#[inline(never)]
fn switch<R, F: FnOnce() -> R>(top: usize, act: F) -> R {
    let mut job = Job { act: MaybeUninit::new(act), result: MaybeUninit::uninit() };
    // SAFETY: `call` follows the C convention and leaves callee-saved registers, r12 among them, as they were; the stack
    // that ends at `top` is nobody else's while the thread is in the runtime; `job` outlives the call.
    unsafe {
        core::arch::asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {call}",
            "mov rsp, r12",
            top = in(reg) top,
            call = sym call::<F, R>,
            in("rdi") &raw mut job,
            out("r12") _,
            clobber_abi("C"),
        );
        job.result.assume_init()
    }
}

unsafe extern "C" fn call<F: FnOnce() -> R, R>(job: *mut Job<F, R>) {
    // SAFETY: `switch` passes a live job whose closure is there and has not run.
    unsafe {
        let result = ((*job).act.assume_init_read())();
        (*job).result.write(result);
    }
}
