//! The bases of fs and gs of the calling thread.
//!
//! # Safety
//! The instructions are used where the kernel says that it allows them.
//!
//! # Signal context
//! An instruction, or a system call of the runtime.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering};
use thermalloc_sys::gate::syscall;

/// Codes of arch_prctl(2).
pub const ARCH_SET_GS: u64 = 0x1001;
const ARCH_GET_FS: u64 = 0x1003;
/// See [`ARCH_SET_GS`].
pub const ARCH_GET_GS: u64 = 0x1004;

static INSTRUCTIONS: AtomicBool = AtomicBool::new(false);

/// Finds out whether user code may read the bases (bit 1 of AT_HWCAP2, Linux 5.9).
pub fn detect() {
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    // SAFETY: reads the auxiliary vector.
    let allowed = unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE != 0;
    INSTRUCTIONS.store(allowed, Ordering::Relaxed);
}

/// Base of fs.
pub fn fs_base() -> u64 {
    if !INSTRUCTIONS.load(Ordering::Relaxed) {
        return ask(ARCH_GET_FS);
    }
    let base: u64;
    // SAFETY: the kernel allows the instruction; it reads a register.
    unsafe { core::arch::asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// Base of gs.
pub fn gs_base() -> u64 {
    if !INSTRUCTIONS.load(Ordering::Relaxed) {
        return ask(ARCH_GET_GS);
    }
    let base: u64;
    // SAFETY: the kernel allows the instruction; it reads a register.
    unsafe { core::arch::asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// Sets the base of gs; false if the kernel refuses.
pub fn set_gs_base(base: u64) -> bool {
    // SAFETY: nothing of the runtime uses gs.
    unsafe { syscall(libc::SYS_arch_prctl, &[ARCH_SET_GS as usize, base as usize]) == 0 }
}

/// arch_prctl with ARCH_GET_FS or ARCH_GET_GS.
fn ask(code: u64) -> u64 {
    let mut base = 0u64;
    // SAFETY: the kernel writes one word, which is alive.
    unsafe { syscall(libc::SYS_arch_prctl, &[code as usize, &raw mut base as usize]) };
    base
}
