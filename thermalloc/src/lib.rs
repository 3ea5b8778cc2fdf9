//! A global allocator that knows how hot every heap object is.
//!
//! ```no_run
//! #[global_allocator]
//! static HEAP: thermalloc::Thermalloc = thermalloc::Thermalloc;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     thermalloc::start(&thermalloc::Config { out: "heat.json".to_owned(), ..Default::default() })?;
//!     // ... the service: every object allocated from here on is watched ...
//!     println!("report in {}", thermalloc::report(None)?.display());
//!     Ok(())
//! }
//! ```
//!
//! Start before the first thread is created. The report is also written at exit, at a fatal signal, at exec, and
//! each `interval_ms`.
//!
//! Modules, lowest first: [`heap`] (allocation with its monitoring, for the C interface too), `global` (GlobalAlloc).

mod global;
pub mod heap;

use std::path::{Path, PathBuf};

pub use global::Thermalloc;
pub use thermalloc_format::Report;
pub use thermalloc_monitor::config::{BadValue, Config, Mode, View, Watch, Watched};
pub use thermalloc_monitor::control::StartError;

use thermalloc_monitor::{control, report as reports};

/// Starts monitoring, or goes on after [`stop`] (then with the settings of the first start). In [`Mode::Off`] nothing
/// happens. The calling thread must be the only one at the first start.
///
/// # Errors
/// When this machine cannot do the mode asked for, or threads exist already; the program then runs unmonitored.
pub fn start(config: &Config) -> Result<(), StartError> {
    if control::is_started() && control::is_paused() {
        control::resume();
        return Ok(());
    }
    control::start(config)
}

/// Lets accesses go unwatched until the next [`start`]. What has been counted stays.
pub fn stop() {
    control::pause();
}

/// Whether accesses are being watched.
pub fn is_running() -> bool {
    control::is_started() && !control::is_paused()
}

/// The report as it stands; an empty one when monitoring was never started.
pub fn snapshot() -> Report {
    heap::as_runtime(|| reports::snapshot(reports::End::Interval, 0))
}

/// Writes the report as it stands, to `path` or where [`Config::out`] says, and returns where it is.
///
/// # Errors
/// When monitoring was never started, as in [`Mode::Off`], or when the file cannot be written; the message says why.
pub fn report(path: Option<&Path>) -> Result<PathBuf, ReportError> {
    if !control::is_started() {
        return Err(ReportError::NotStarted);
    }
    heap::as_runtime(|| reports::write_now(path)).map_err(ReportError::NotWritten)
}

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportError {
    /// Nothing has been watched: monitoring was never started, or the mode is off.
    NotStarted,
    /// The file cannot be written: what the system says, with the path.
    NotWritten(String),
}

impl std::fmt::Display for ReportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotStarted => {
                f.write_str("nothing has been watched: start monitoring first, in another mode than off")
            }
            Self::NotWritten(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ReportError {}
