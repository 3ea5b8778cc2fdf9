//! Charges every access of the program to the heap object that owns the address.
//!
//! Modules, lowest first:
//! - [`kernel`]: which memory of the program each system call reads and writes.

pub mod kernel;
