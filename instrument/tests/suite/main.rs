//! What needs the compiler: victims with known counts, random programs, and the wrapper itself.
#![cfg(feature = "plugin")]

mod random;
mod victims;
mod workshop;
mod wrapper;
