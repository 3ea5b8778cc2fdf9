//! The monitor: sees every access to the watched part of the heap and charges it to the object that owns it.
//!
//! Modules, lowest first:
//! - values: [`config`], [`access`], [`totals`], [`clock`], [`errno`], `frame` (the signal frame), `pku` (protection keys), `segments`
//!   (fs and gs), `probe` (this machine)
//! - knowledge: [`operands`] (what an instruction accesses), [`kernel`] (what a system call accesses), [`unwind`] (who
//!   called malloc)
//! - accounts: [`heat`]
//! - mechanisms: `world` (the gate to stepping), `protect`, `memory` (the program's), `rep` (string
//!   instructions), `rewrite` (system calls without dispatch), `actions` (signal actions), `own_stack`, `thread`, `step`, `peek`, `kernel_call`, `registrations` (what the kernel accesses by itself),
//!   `signals`, `mappings`, [`instrument`] (binaries that count inline)
//! - lives: `report`, `exec`, `process`, [`objects`]
//! - `handlers` (the entry of all signals), [`control`] (start and stop)

pub use patch::keep_little;

mod access;
mod actions;
mod charged;
mod clock;
mod code;
pub mod config;
pub mod control;
mod counter;
mod emulate;
pub mod errno;
mod exec;
mod frame;
mod handlers;
pub mod heat;
pub mod instrument;
pub mod kernel;
mod kernel_call;
mod mappings;
mod memory;
pub mod objects;
pub mod operands;
mod own_stack;
mod patch;
mod peek;
mod pku;
mod probe;
mod process;
mod protect;
mod redirect;
mod registrations;
mod rep;
pub mod report;
mod rewrite;
mod segments;
mod signals;
mod step;
mod string;
pub mod thread;
mod totals;
pub mod unwind;
mod world;
