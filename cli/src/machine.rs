//! What this machine can do.
//!
//! Modules, lowest first:
//! - [`probe`]: tries things out, in a forked child where they would leave traces.
//! - [`facts`]: reads what the kernel says about itself.
//! - [`modes`]: which modes follow from that.

pub mod facts;
pub mod modes;
pub mod probe;
