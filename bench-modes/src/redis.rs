//! A run of redis-server under redis-benchmark. The load is stopped after a time, and requests are counted by the server, so
//! that a slow mode takes no longer than native. redis-benchmark verifies nothing: so commands whose replies are known by
//! native's come after it.

use crate::columns::Way;
use crate::counted::counted;
use crate::redis_client::RedisClient;
use crate::run::{Bench, Run};
use bench_memcached::process;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use thermalloc_bench::monitor::Monitor;
use thermalloc_bench::service::{Launch, Service};

/// What redis-server is told, besides its port.
pub const ARGUMENTS: [&str; 8] =
    ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning"];
/// What redis-benchmark is told, besides port and keys.
pub const LOAD: [&str; 7] = ["-c", "50", "-d", "32", "-n", "1000000000", "-q"];
/// Each for half of the time.
const TESTS: [&str; 2] = ["set", "get"];
/// Keys at scale 1, all of them stored before what is measured.
const KEYS: u64 = 10_000;
/// Requests written at once where nothing is measured.
const BATCH: usize = 500;
/// Longest wait for the load's first request.
const PATIENCE: Duration = Duration::from_secs(60);

/// The programs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// redis-server.
    pub server: PathBuf,
    /// redis-benchmark.
    pub load: PathBuf,
}

/// A part of a run.
struct Phase {
    requests: u64,
    cpu_s: f64,
    wall_s: f64,
}

/// The load, killed when dropped.
struct Loading(Child);

impl Drop for Loading {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts redis-server, loads it for a time, and ends it. The replies to known commands go to `output`.
pub fn run(programs: &Programs, way: Way, bench: &Bench, output: &Path) -> Result<Run, String> {
    let directory = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let monitor = bench.monitor(way, directory.path());
    let port = free_port().map_err(|e| format!("no free port: {e}"))?;
    let number = port.to_string();
    let arguments: Vec<&str> = ["--port", &number].into_iter().chain(ARGUMENTS).collect();
    let launch = Launch {
        binary: &programs.server,
        arguments: &arguments,
        processors: &bench.processors.0,
        monitor: monitor.as_ref(),
    };
    let mut server = Service::start(&launch, &[])?;
    let mut client = server.wait_for(|| RedisClient::connect(port).ok())?;
    let failed = |e: io::Error| format!("redis-server: {e}");
    populate(&mut client, bench.scaled(KEYS, 100)).map_err(failed)?;
    let mut phases = Vec::new();
    for test in TESTS {
        phases.push(load(programs, test, port, server.pid(), &mut client, bench)?);
    }
    let replies = session(&mut client).map_err(failed)?;
    fs::write(output, replies).map_err(|e| format!("cannot write {}: {e}", output.display()))?;
    let peak_kib = process::peak_kib(server.pid())?;
    server.stop()?;
    let report = monitor.filter(Monitor::reports);
    // Of the tests' mean, so that the faster one weighs no more than the other.
    let mean = |quantity: fn(&Phase) -> f64| {
        phases.iter().map(|phase| quantity(phase) / phase.requests as f64).sum::<f64>() / phases.len() as f64
    };
    Ok(Run {
        cpu_s: mean(|phase| phase.cpu_s) * 1e6,
        wall_s: mean(|phase| phase.wall_s) * 1e6,
        peak_kib,
        stopped: false,
        requests: Some(phases.iter().map(|phase| phase.requests).sum()),
        counted: report.as_ref().map(counted).transpose()?,
    })
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The keys that redis-benchmark asks for.
fn populate(client: &mut RedisClient, keys: u64) -> io::Result<()> {
    let value = "x".repeat(32);
    let requests: Vec<String> = (0..keys).map(|key| format!("SET key:{key:012} {value}")).collect();
    for batch in requests.chunks(BATCH) {
        client.ask(batch)?;
    }
    Ok(())
}

/// Measures from a moment when the load is running to another one.
fn load(
    programs: &Programs,
    test: &str,
    port: u16,
    pid: u32,
    client: &mut RedisClient,
    bench: &Bench,
) -> Result<Phase, String> {
    let failed = |e: io::Error| format!("redis-server: {e}");
    let idle = client.processed().map_err(failed)?;
    let mut command = Command::new("taskset");
    command.args(["-c", &bench.processors.1]).arg(&programs.load).args(LOAD).args(["-t", test]);
    command.arg("-p").arg(port.to_string()).arg("-r").arg(bench.scaled(KEYS, 100).to_string());
    let load = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut load = Loading(load.map_err(|e| format!("cannot start taskset: {e}"))?);
    let start = Instant::now();
    // Its 50 connections, and its look at the server's configuration.
    while client.processed().map_err(failed)? < idle + 200 {
        if start.elapsed() > PATIENCE || load.0.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err("redis-benchmark makes no requests".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let (begin, cpu, before) = (Instant::now(), process::cpu_time(pid)?, client.processed().map_err(failed)?);
    std::thread::sleep(Duration::from_secs_f64(bench.seconds / TESTS.len() as f64));
    let (wall_s, used, after) =
        (begin.elapsed().as_secs_f64(), process::cpu_time(pid)? - cpu, client.processed().map_err(failed)?);
    if load.0.try_wait().map_or(true, |ended| ended.is_some()) {
        return Err("redis-benchmark has ended early".into());
    }
    // One of them is our own.
    match after - before {
        0 | 1 => Err("redis-benchmark made no request".into()),
        more => Ok(Phase { requests: more - 1, cpu_s: used.total_s(), wall_s }),
    }
}

/// Commands of many kinds, on keys of their own, and the replies to them.
fn session(client: &mut RedisClient) -> io::Result<String> {
    let mut requests: Vec<String> = Vec::new();
    for i in 0..200u32 {
        let (key, score) = (i % 17, i * 7919 % 1009);
        requests.push(format!("HSET hash{key} field{i} value{score}"));
        requests.push(format!("ZADD sorted{key} {score} member{i}"));
        requests.push(format!("RPUSH list{key} {score}"));
        requests.push(format!("APPEND text{key} {score}-"));
    }
    for key in 0..17 {
        requests.push(format!("HMGET hash{key} field{key} field{} none", key + 17));
        requests.push(format!("ZRANGE sorted{key} 0 -1 WITHSCORES"));
        requests.push(format!("SORT list{key} DESC"));
        requests.push(format!("GET text{key}"));
    }
    requests.push("EVAL \"return {KEYS[1], redis.call('llen', KEYS[1])}\" 1 list3".into());
    requests.push("DBSIZE".into());
    Ok(client.ask(&requests)?.join("\n") + "\n")
}
