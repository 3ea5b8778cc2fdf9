//! The load: this crate's generator, which verifies every reply, or memtier_benchmark, which does not.

use crate::process::{self, CpuTime};
use clap::ValueEnum;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Who makes the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// memtier_benchmark if it is on PATH, else this crate's.
    Auto,
    /// This crate's.
    Own,
    /// memtier_benchmark.
    Memtier,
}

/// The paper's load, and how much of it.
#[derive(Clone, Debug)]
pub struct Load {
    /// Threads of the load.
    pub threads: u32,
    /// Connections of each thread.
    pub clients: u32,
    /// Most requests of each connection.
    pub requests: u64,
    /// Most seconds of the load.
    pub seconds: f64,
    /// SETs to GETs.
    pub ratio: String,
    /// Bytes of a value.
    pub data_size: usize,
    /// How keys are chosen.
    pub key_pattern: String,
    /// Number of the last key.
    pub key_maximum: u64,
    /// Whether all keys are stored first, before what is measured; only this crate's generator does so.
    pub populate: bool,
}

/// A generator.
#[derive(Clone)]
pub struct Client {
    own: PathBuf,
    memtier: Option<PathBuf>,
}

/// What a load did, and what the server used for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Requests answered.
    pub requests: u64,
    /// GETs answered with a value.
    pub hits: u64,
    /// Seconds from the first request to the last reply.
    pub wall_s: f64,
    /// Processor time of the server.
    pub cpu: CpuTime,
    /// The server's most resident memory in KiB.
    pub peak_kib: u64,
    /// Latency of GETs in microseconds: p50, p99, p99.9.
    pub latency_us: [f64; 3],
}

impl Client {
    /// The generator that was chosen.
    pub fn new(choice: Choice, own: PathBuf) -> Result<Self, String> {
        match (choice, on_path("memtier_benchmark")) {
            (Choice::Auto | Choice::Memtier, memtier @ Some(_)) => Ok(Self { own, memtier }),
            (Choice::Memtier, None) => Err("memtier_benchmark is not on PATH".into()),
            _ => Ok(Self { own, memtier: None }),
        }
    }

    /// This crate's generator, which alone can make an exact number of requests.
    pub fn exact(&self) -> Self {
        Self { memtier: None, ..self.clone() }
    }

    /// Its name, and whether replies are verified.
    pub fn description(&self) -> &'static str {
        if self.memtier.is_some() {
            "memtier_benchmark (replies are not verified)"
        } else {
            "bench-memcached (every reply is verified)"
        }
    }

    /// Loads the server. A reply that is wrong is an error.
    pub fn run(
        &self,
        load: &Load,
        server: (u16, u32),
        processors: &str,
        directory: &Path,
    ) -> Result<Outcome, String> {
        let (port, pid) = server;
        let json = directory.join("load.json");
        let mut command = Command::new("taskset");
        command.args(["-c", processors]).arg(self.memtier.as_ref().unwrap_or(&self.own));
        command.args(common(load, port)).arg(format!("--json-out-file={}", json.display()));
        command.args(if self.memtier.is_some() { memtiers_own(load) } else { our_own(load, pid) });
        let before = process::cpu_time(pid)?;
        let output =
            command.stdin(Stdio::null()).output().map_err(|e| format!("cannot start taskset: {e}"))?;
        let cpu = process::cpu_time(pid)? - before;
        if !output.status.success() {
            return Err(format!("the load failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let text = fs::read(&json).map_err(|e| format!("the load's results: {e}"))?;
        let results: Value = serde_json::from_slice(&text).map_err(|e| format!("the load's results: {e}"))?;
        let read = if self.memtier.is_some() {
            memtiers(&results, cpu, process::peak_kib(pid)?)
        } else {
            ours(&results)
        };
        read.ok_or_else(|| "the load's results are not understood".to_owned())
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|place| place.join(program))
        .find(|file| file.is_file())
}

/// What both understand.
fn common(load: &Load, port: u16) -> Vec<String> {
    vec![
        "--server=127.0.0.1".into(),
        format!("--port={port}"),
        "--protocol=memcache_text".into(),
        format!("--threads={}", load.threads),
        format!("--clients={}", load.clients),
        format!("--ratio={}", load.ratio),
        format!("--data-size={}", load.data_size),
        format!("--key-pattern={}", load.key_pattern),
        format!("--key-maximum={}", load.key_maximum),
        "--hide-histogram".into(),
    ]
}

/// memtier takes a number of requests or a time, and whole seconds.
fn memtiers_own(load: &Load) -> Vec<String> {
    vec![format!("--test-time={}", load.seconds.ceil().max(1.0))]
}

fn our_own(load: &Load, pid: u32) -> Vec<String> {
    let mut arguments = vec![
        format!("--requests={}", load.requests),
        format!("--test-time={}", load.seconds),
        "--warm-up=1".into(),
        format!("--measure-pid={pid}"),
        "--timeout=600".into(),
    ];
    arguments.extend(load.populate.then(|| "--populate".into()));
    arguments
}

fn ours(results: &Value) -> Option<Outcome> {
    let server = &results["server"];
    let cpu = CpuTime { user_s: server["user_s"].as_f64()?, system_s: server["system_s"].as_f64()? };
    let latency = |name: &str| results["gets"]["latency_us"][name].as_f64();
    Some(Outcome {
        requests: results["requests"].as_u64()?,
        hits: results["hits"].as_u64()?,
        wall_s: results["seconds"].as_f64()?,
        cpu,
        peak_kib: server["peak_kib"].as_u64()?,
        latency_us: [latency("p50")?, latency("p99")?, latency("p99.9")?],
    })
}

/// memtier counts in milliseconds, and hits only as a rate.
fn memtiers(results: &Value, cpu: CpuTime, peak_kib: u64) -> Option<Outcome> {
    let all = &results["ALL STATS"];
    let wall_s = all["Runtime"]["Total duration"].as_f64()? / 1000.0;
    let latency = |name: &str| Some(all["Gets"]["Percentile Latencies"][name].as_f64()? * 1000.0);
    Some(Outcome {
        requests: all["Sets"]["Count"].as_u64()? + all["Gets"]["Count"].as_u64()?,
        hits: (all["Gets"]["Hits/sec"].as_f64()? * wall_s).round() as u64,
        wall_s,
        cpu,
        peak_kib,
        latency_us: [latency("p50.00")?, latency("p99.00")?, latency("p99.90")?],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CPU: CpuTime = CpuTime { user_s: 1.0, system_s: 2.0 };

    #[test]
    fn both_generators_results_are_understood() {
        let own = json!({"seconds": 2.0, "requests": 110, "hits": 50, "gets": {"latency_us": {"p50": 1, "p99": 2,
            "p99.9": 3}}, "server": {"user_s": 1.0, "system_s": 2.0, "peak_kib": 7}});
        // As memtier_benchmark 2.0 writes it, shortened.
        let memtier = json!({"ALL STATS": {"Runtime": {"Total duration": 2000}, "Sets": {"Count": 10},
            "Gets": {"Count": 100, "Hits/sec": 25.0, "Percentile Latencies": {"p50.00": 0.001, "p99.00": 0.002,
            "p99.90": 0.003}}}});
        assert_eq!(ours(&own), memtiers(&memtier, CPU, 7));
        assert!(ours(&own).is_some());
        assert_eq!(ours(&json!({"requests": 1})), None);
    }
}
