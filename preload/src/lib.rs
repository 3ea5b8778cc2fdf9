//! libthermalloc.so: the C allocation interface, for LD_PRELOAD.
//!
//! Modules, lowest first:
//! - `start`: settings from the environment, at the first allocation.
//! - `caller`: entry points that know who called.
//! - `standard`: malloc and its family, as C, POSIX and glibc have them.
//! - `deepbind`: dlopen, so that no library binds past these names.
//! - `memory`: memcpy and its like for the runtime itself.
//! - `memlock`: mlockall, for a heap of reserved addresses.
//! - `instrument`: what instrumented binaries and programs with pools of their own call.
//! - `foreign`: entry points of other allocators that meet ours in a program linked to them.
//!
//! The runtime's own collections use mimalloc, never the heap under watch.

mod caller;
mod deepbind;
mod foreign;
mod instrument;
mod memlock;
mod memory;
mod standard;
mod start;

#[global_allocator]
static RUNTIME: mimalloc::MiMalloc = mimalloc::MiMalloc;
