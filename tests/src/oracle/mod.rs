//! The oracle: random programs of instructions on heap memory, run without the monitor and in each of its modes, must
//! end with the same registers, flags and memory, and all modes must count the same accesses of each object.
//!
//! Lowest layer first: `random`, `registers`, `operand`, `templates` (the instructions), `expand`, `program` (their order),
//! `source` (assembly, built with the harness of `victims/oracle`), `environment` (equal in all modes), `run`, `compare`,
//! `shrink`, `fuzz` (the loop); `programs` (whole programs instead).

pub mod compare;
pub mod environment;
pub mod expand;
pub mod fuzz;
mod operand;
pub mod program;
pub mod programs;
mod random;
mod registers;
pub mod run;
pub mod shrink;
pub mod source;
mod templates;
