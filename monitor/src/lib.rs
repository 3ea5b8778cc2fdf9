//! Charges every heap access to the object that owns it.

pub mod unwind;
