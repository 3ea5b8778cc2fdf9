//! The lowest layer: what the runtime needs from the kernel and the loader without going through libc.
//!
//! Modules, lowest first:
//! - [`gate`]: the one stretch of code whose system calls Syscall User Dispatch lets pass.
//! - [`mem`]: mappings, with errors as values.
//! - [`lock`]: a futex lock that can be held across `fork` and never allocates.
//! - [`tls`]: thread slots with the initial-exec model, so that reading one never calls `__tls_get_addr`.
#![no_std]

pub mod alone;
pub mod gate;
pub mod lock;
pub mod mem;
pub mod tls;
