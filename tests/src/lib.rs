//! What the whole-program tests share: where things lie, running a program with a time limit, the modes, the victim
//! programs, and reading of reports. The reports are read as plain JSON on purpose: the tests check the contract
//! that others' scripts rely on, not what this workspace's own types make of it.

pub mod modes;
pub mod monitored;
pub mod oracle;
pub mod places;
pub mod process;
pub mod report;
pub mod victims;
