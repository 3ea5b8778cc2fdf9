//! Holds the tables of system calls against the running kernel.
//!
//! Each case makes one real call with every buffer alone on pages of its own, several times over:
//! 1. with several fillings: every byte that changes was predicted, every byte predicted as written changes;
//! 2. with each page of each predicted range withheld in turn: the call fails, so the access does happen;
//! 3. with all pages withheld that were *not* predicted: the call succeeds, so nothing was forgotten.

mod check;
mod stage;

mod descriptors;
mod exec;
mod files;
mod futexes;
mod ipc;
mod machine;
mod net;
mod signals;
mod times;
mod transfers;
