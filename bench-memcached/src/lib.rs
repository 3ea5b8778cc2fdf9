//! A load generator for memcached that verifies every reply. Modules, lowest first:
//!
//! - [`content`]: the flags and the value that belong to a key.
//! - [`pattern`]: which key a request asks for.
//! - [`protocol`]: requests to bytes, bytes to replies, in three dialects.
//! - [`verify`]: what a reply must be.
//! - [`tally`]: counts and latency histograms.
//! - [`process`]: what the server has used.
//! - [`options`]: the command line.
//! - [`connection`]: one connection, with its requests in flight.
//! - [`load`]: threads and phases.
//! - [`report`]: results as text and JSON.
//!
//! And what benchmarks of memcached start:
//!
//! - [`server`]: memcached, on its processors, under the monitor or not.
//! - [`client`]: this load generator or another, on other processors.

pub mod client;
pub mod connection;
pub mod content;
pub mod load;
pub mod options;
pub mod pattern;
pub mod process;
pub mod protocol;
pub mod report;
pub mod server;
pub mod tally;
pub mod verify;
