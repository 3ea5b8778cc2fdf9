//! Whole-program tests: one binary, so that the emulated machine can run the same tests for mode `mpk`.
//!
//! Environment: `THERMALLOC_TEST_MODES` (default `off,pp,mpk,emulate,patch`), `THERMALLOC_TEST_BIN` (default `target/release`),
//! `REQUIRE_PKU=1` (a skip for lack of protection keys is a failure), `THERMALLOC_SOAK_SECONDS` (default 5), `THERMALLOC_TEST_ROUNDS`
//! (default 15).

mod code_caches;
mod exact;
mod hazards;
mod hole;
mod misuse;
mod oracle;
mod patched_threads;
mod pku_vm;
mod programs;
mod servers;
mod soak;
mod toggle;
mod without_sud;
