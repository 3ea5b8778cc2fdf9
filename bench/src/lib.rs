//! What the benchmarks of whole programs have in common. Modules, lowest first:
//!
//! - [`statistics`]: medians, spreads, geometric means, rank correlation.
//! - [`machine`]: what this machine is, and how its processors are divided.
//! - [`monitor`]: how the runtime comes into a program, whether it can, and what it leaves behind.
//! - [`service`]: a server, from its start to its end.
//! - [`bars`]: grouped bars on a logarithmic axis.
//! - [`picture`]: SVG files, and the same as PNG.
//! - [`results`]: the files that a benchmark writes.
//! - [`places`]: where the built programs and the runtime are.

pub mod bars;
pub mod machine;
pub mod monitor;
pub mod picture;
pub mod places;
pub mod results;
pub mod service;
pub mod statistics;
