//! Heat of every heap object. See the README for the modules.

pub mod access;
pub mod heat;
pub mod totals;
