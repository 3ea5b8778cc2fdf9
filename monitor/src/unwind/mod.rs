//! Call stacks of allocations, and the modules that their addresses lie in.
//!
//! Files, lowest first:
//! - `rule`: how to get from one frame to its caller; pure.
//! - `cfi`: from `.eh_frame` to a rule.
//! - `elf`: what the loader says about one module.
//! - `index`: address → module, read without locks.
//! - `shared`: rules that any thread has computed.
//! - [`modules`]: every module that the process has had, and the rules of the code in them.
//! - [`matcher`]: is this code in the module called NAME?
//! - `maps`, [`stack`]: reading stack memory that may not be there.
//! - [`mod@capture`]: the call stack of an allocation.
//!
//! The rules come from the same tables as C++ exceptions, so code without frame pointers unwinds. Computing a
//! rule takes microseconds and the loader's lock, but happens once; each thread keeps the rules that it has met, so
//! that a frame costs a table lookup and two reads of the stack.

pub mod capture;
mod cfi;
mod elf;
mod index;
mod maps;
pub mod matcher;
pub mod modules;
mod rule;
mod shared;
pub mod stack;

pub use capture::{Caller, UnwindState, capture, capture_with};
pub use matcher::ModuleMatcher;
pub use modules::{Module, locate};
pub use stack::StackReader;
