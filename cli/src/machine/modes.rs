//! Which modes follow from what the machine can do.

use super::facts;
use super::probe::{self, Refusal};

/// Why mode `pp` cannot run here, if it cannot.
pub fn pp() -> Result<(), String> {
    probe::single_step().map_err(|refusal| format!("instructions cannot be single-stepped: {refusal}"))
}

/// Why mode `mpk` cannot run here, if it cannot.
pub fn mpk() -> Result<(), String> {
    keys()?;
    pp()
}

/// Protection keys that are free, or why there are none.
pub fn keys() -> Result<i32, String> {
    let cpuid = facts::protection_keys();
    if !cpuid.cpu {
        return Err("this CPU has no protection keys (PKU)".into());
    }
    if !cpuid.kernel {
        return Err("the kernel has not switched the CPU's protection keys on".into());
    }
    probe::protection_keys().map_err(|refusal| match refusal {
        Refusal::Errno(libc::ENOSPC) => "all protection keys are taken".into(),
        Refusal::Errno(libc::ENOSYS) => "the kernel or a sandbox has no pkey_alloc".into(),
        Refusal::Errno(libc::EPERM) => "a sandbox forbids pkey_alloc".into(),
        other => format!("pkey_alloc failed: {other}"),
    })
}

/// What `auto` will pick: the fastest mode that sees every access.
pub fn auto() -> &'static str {
    // `patch` needs nothing else; a program that takes gs for itself, or a Rust service with a private heap, falls back to the others.
    if pp().is_ok() { "patch" } else { "off" }
}
