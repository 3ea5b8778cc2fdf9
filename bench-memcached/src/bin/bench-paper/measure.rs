//! One measured run: a fresh server, the load, the server's end, and what its report says.

use crate::rows::Row;
use bench_memcached::client::{Client, Load, Outcome};
use bench_memcached::server::Server;
use serde_json::Value;
use std::path::{Path, PathBuf};
use thermalloc_bench::monitor::{Monitor, Scope};
use thermalloc_bench::service::Launch;

/// Seconds that no run takes.
const NO_LIMIT_S: f64 = 3600.0;

/// What does not change from run to run.
#[derive(Clone)]
pub struct Bench {
    /// The load generator.
    pub client: Client,
    /// The load.
    pub load: Load,
    /// libthermalloc.so.
    pub library: PathBuf,
    /// memcached's arguments.
    pub arguments: Vec<String>,
    /// Processors of the server and of the load.
    pub processors: (String, String),
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Run {
    /// What the load saw.
    pub outcome: Outcome,
    /// What the monitor counted, from the server's first instruction to its last; `None` without one.
    pub counted: Option<Counted>,
}

/// Of the report's totals.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Reads and writes.
    pub accesses: u64,
    /// Faults.
    pub faults: u64,
    /// Instructions that were single-stepped.
    pub steps: u64,
}

impl Run {
    /// Processor time of the server in microseconds a request.
    pub fn cpu_us(&self) -> f64 {
        self.outcome.cpu.total_s() * 1e6 / self.outcome.requests as f64
    }

    /// Elapsed time in microseconds a request.
    pub fn wall_us(&self) -> f64 {
        self.outcome.wall_s * 1e6 / self.outcome.requests as f64
    }
}

impl Bench {
    /// The same with one thread of so many connections, which make so many requests each, however long it takes, and without
    /// memcached's background threads, which touch items by the clock.
    pub fn with_load(&self, requests: u64, clients: u32) -> Self {
        let load = Load { threads: 1, clients, requests, seconds: NO_LIMIT_S, ..self.load.clone() };
        let mut arguments = self.arguments.clone();
        arguments.push("-ono_lru_maintainer,no_lru_crawler".into());
        Self { client: self.client.exact(), load, arguments, ..self.clone() }
    }

    /// Makes one run.
    pub fn run(&self, binary: &Path, row: &Row, scope: Option<Scope>) -> Result<Run, String> {
        let directory = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
        let monitor =
            row.mode.map(|mode| Monitor { scope, ..Monitor::new(&self.library, mode, directory.path()) });
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let launch = Launch {
            binary,
            arguments: &arguments,
            processors: &self.processors.0,
            monitor: monitor.as_ref(),
        };
        let server = Server::start(&launch, directory.path())?;
        let place = (server.port, server.pid());
        let outcome = self.client.run(&self.load, place, &self.processors.1, directory.path())?;
        server.stop()?;
        if outcome.requests == 0 {
            return Err("the load made no request".into());
        }
        let counted = match &monitor {
            None => None,
            Some(monitor) => Some(counted(&monitor.report()?).ok_or("the report has no totals")?),
        };
        Ok(Run { outcome, counted })
    }
}

/// A monitor that saw nothing is one that did not work.
fn counted(report: &Value) -> Option<Counted> {
    let total = |name: &str| report["totals"][name].as_u64();
    let counted = Counted {
        accesses: total("reads")? + total("writes")?,
        faults: total("faults")?,
        steps: total("steps")?,
    };
    (counted.accesses > 0).then_some(counted)
}
