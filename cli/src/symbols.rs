//! Names of code: from the addresses in a report to functions, files and lines, offline.
//!
//! Modules, lowest first:
//! - [`demangle`]: names of C++ and Rust functions.
//! - [`debug_files`]: where a module's symbols and line numbers are.
//! - [`resolve`]: code address to functions.
//! - [`identity`]: what a call stack is called across builds.
//! - [`stacks`]: call stacks of sites, each address resolved once; which of their functions to show.

mod debug_files;
mod demangle;
mod identity;
mod resolve;
mod stacks;

pub use identity::Identity;
pub use resolve::{Function, printable};
pub use stacks::Stacks;
