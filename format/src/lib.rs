//! The types of heat.json, version 1, and how to read one.
//!
//! Every number of nanoseconds counts from the start of the program unless its name says `unix`; every size is in
//! bytes. Reading is lenient: unknown keys are skipped, and missing ones take their default (zero, empty, null).
//!
//! Modules, lowest first:
//! - [`report`]: the object as a whole, the process, its totals.
//! - [`watch`]: which objects are watched.
//! - [`heat`]: classes, sites, objects and the timeline.
//! - [`read`](mod@read): from a file, with errors that fit on one line.

pub mod heat;
pub mod read;
pub mod report;
pub mod watch;

pub use heat::{Class, Distribution, Heat, Object, Site, SiteTimeline, Skipped, Timeline};
pub use read::{ReadError, read, read_summary};
pub use report::{
    Config, End, FORMAT, Frame, Host, Limits, Module, Name, Part, Program, Report, Summary, Totals,
    Unpatched, VERSION,
};
pub use watch::Watch;
