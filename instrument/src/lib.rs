//! Compile-time instrumentation: every access that may touch the heap is counted inline and made immune to the
//! protection of watched memory. README.md describes use and limits; the modules are listed there, lowest first.

pub mod options;
pub mod pieces;

#[cfg(feature = "plugin")]
mod access;
#[cfg(feature = "plugin")]
mod builder;
#[cfg(feature = "plugin")]
mod groups;
#[cfg(feature = "plugin")]
mod helpers;
#[cfg(feature = "plugin")]
mod ir;
#[cfg(feature = "plugin")]
mod origin;
#[cfg(feature = "plugin")]
mod plugin;
#[cfg(feature = "plugin")]
mod rewrite;
