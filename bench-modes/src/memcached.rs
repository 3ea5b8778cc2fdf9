//! A run of memcached, under this workspace's load generator, which verifies every reply.

use crate::columns::Way;
use crate::counted::counted;
use crate::run::{Bench, Run};
use bench_memcached::client::{Choice, Client, Load};
use bench_memcached::server::Server;
use std::path::Path;
use thermalloc_bench::service::Launch;

/// What memcached is told.
pub const ARGUMENTS: [&str; 4] = ["-t", "2", "-m", "256"];
/// Keys at scale 1, all of them stored before what is measured.
const KEYS: u64 = 10_000;

/// The load of a run.
pub fn load(bench: &Bench) -> Load {
    Load {
        threads: 2,
        clients: 25,
        requests: u64::from(u32::MAX),
        seconds: bench.seconds,
        ratio: "1:10".into(),
        data_size: 32,
        key_pattern: "R:R".into(),
        key_maximum: bench.scaled(KEYS, 100) - 1,
        populate: true,
    }
}

/// Starts memcached, loads it for a time, and ends it.
pub fn run(binary: &Path, way: Way, bench: &Bench) -> Result<Run, String> {
    let directory = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let monitor = bench.monitor(way, directory.path());
    let (here, there) = &bench.processors;
    let launch = Launch { binary, arguments: &ARGUMENTS, processors: here, monitor: monitor.as_ref() };
    let server = Server::start(&launch, directory.path())?;
    let client = Client::new(Choice::Own, bench.places.programs.join("bench-memcached"))?;
    let outcome = client.run(&load(bench), (server.port, server.pid()), there, directory.path())?;
    server.stop()?;
    if outcome.requests == 0 {
        return Err("the load made no request".into());
    }
    let millions = outcome.requests as f64 / 1e6;
    let report = monitor.filter(thermalloc_bench::monitor::Monitor::reports);
    Ok(Run {
        cpu_s: outcome.cpu.total_s() / millions,
        wall_s: outcome.wall_s / millions,
        peak_kib: outcome.peak_kib,
        stopped: false,
        requests: Some(outcome.requests),
        counted: report.as_ref().map(counted).transpose()?,
    })
}
