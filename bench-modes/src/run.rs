//! One measured run, and what does not change from run to run.

use crate::columns::Way;
use crate::counted::Counted;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thermalloc_bench::monitor::Monitor;
use thermalloc_bench::places::Places;

/// What does not change from run to run.
pub struct Bench {
    /// Where things are.
    pub places: Places,
    /// For inputs, outputs and reports.
    pub work: PathBuf,
    /// Factor of the inputs' sizes.
    pub scale: f64,
    /// After so long a program is stopped.
    pub limit: Duration,
    /// How long a server is loaded in a run, in seconds.
    pub seconds: f64,
    /// Processors of what is measured, and of what loads it.
    pub processors: (String, String),
}

/// What a run came to. The times of a server are for 1,000,000 requests.
#[derive(Clone, Debug)]
pub struct Run {
    /// Processor time, user and system, in seconds.
    pub cpu_s: f64,
    /// Elapsed time in seconds.
    pub wall_s: f64,
    /// Most resident memory in KiB.
    pub peak_kib: u64,
    /// Whether it was stopped at the limit, so that times are lower bounds.
    pub stopped: bool,
    /// Requests that were answered; `None`: not a server.
    pub requests: Option<u64>,
    /// What the monitor counted; `None` without one, or if it was stopped.
    pub counted: Option<Counted>,
}

impl Bench {
    /// How the runtime comes into the program, if it does. The report goes into `directory`.
    pub fn monitor(&self, way: Way, directory: &Path) -> Option<Monitor> {
        match way {
            Way::Native | Way::Dhat => None,
            Way::Runtime(mode, budget) => {
                Some(Monitor { budget, ..Monitor::new(&self.places.library, mode, directory) })
            }
        }
    }

    /// A number of things at scale 1, scaled, but not below `least`.
    pub fn scaled(&self, number: u64, least: u64) -> u64 {
        ((number as f64 * self.scale) as u64).max(least)
    }
}
