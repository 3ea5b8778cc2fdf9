//! The load generator against the system's memcached, in all three protocols.
//! Without memcached the tests print SKIP; with `REQUIRE_MEMCACHED=1` they fail instead.

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{bench, errors};

/// A memcached of our own; ends when dropped.
struct Memcached {
    child: Child,
    directory: tempfile::TempDir,
    args: Vec<String>,
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Memcached {
    fn on_socket(extra: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let child = spawn(Command::new("memcached").arg("-s").arg(&socket).args(extra))?;
        let args = vec![format!("--unix-socket={}", socket.display())];
        let server = Self { child, directory, args };
        wait_for(|| std::os::unix::net::UnixStream::connect(&socket).ok());
        Some(server)
    }

    /// memcached picks the port itself and writes it to a file.
    fn on_loopback(extra: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let file: PathBuf = directory.path().join("port");
        let mut command = Command::new("memcached");
        command.args(["-l", "127.0.0.1", "-p", "-1", "-U", "0"]).env("MEMCACHED_PORT_FILENAME", &file);
        let child = spawn(command.args(extra))?;
        let mut server = Self { child, directory, args: Vec::new() };
        let text = wait_for(|| std::fs::read_to_string(&file).ok().filter(|t| t.ends_with('\n')));
        let port = text.trim().strip_prefix("TCP INET: ").expect("a TCP port");
        server.args = vec!["--server=127.0.0.1".into(), format!("--port={port}")];
        Some(server)
    }

    fn bench(&self, args: &[&str]) -> (std::process::Output, Value) {
        let all: Vec<&str> = self.args.iter().map(String::as_str).chain(args.iter().copied()).collect();
        bench(self.path(), &all)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn spawn(command: &mut Command) -> Option<Child> {
    match command.args(["-u", "root"]).stdin(Stdio::null()).spawn() {
        Ok(child) => Some(child),
        Err(e) => {
            let required = std::env::var_os("REQUIRE_MEMCACHED").is_some_and(|v| v == "1");
            assert!(!required, "memcached does not start: {e}");
            println!("SKIP: memcached does not start: {e}");
            None
        }
    }
}

fn wait_for<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the server does not come up");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const PROTOCOLS: [&str; 3] =
    ["--protocol=memcache_text", "--protocol=memcache_binary", "--protocol=memcache_meta"];

#[test]
fn every_reply_of_memcached_passes_in_each_protocol() {
    for (protocol, pattern) in PROTOCOLS.iter().zip(["Z:Z", "R:G", "S:S"]) {
        let Some(server) = Memcached::on_socket(&[]) else { return };
        let (output, json) = server.bench(&[
            protocol,
            "--threads=2",
            "--clients=5",
            "--requests=600",
            "--ratio=1:2",
            "--key-maximum=999",
            "--key-pattern",
            pattern,
            "--populate",
            "--pipeline=4",
            "--data-size=100",
        ]);
        assert_eq!(errors(&output), "");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!((&json["populated"], &json["requests"]), (&1000.into(), &6000.into()));
        assert_eq!((&json["hits"], &json["misses"]), (&4000.into(), &0.into()));
    }
}

#[test]
fn misses_of_keys_not_yet_stored_are_no_errors() {
    let Some(server) = Memcached::on_loopback(&[]) else { return };
    for protocol in PROTOCOLS {
        let prefix = format!("--key-prefix={protocol}:");
        let (output, json) = server.bench(&[
            protocol,
            &prefix,
            "--threads=1",
            "--clients=2",
            "--requests=500",
            "--key-maximum=99",
        ]);
        assert_eq!(errors(&output), "");
        let (hits, misses) = (json["hits"].as_u64().unwrap(), json["misses"].as_u64().unwrap());
        assert!(hits > 0 && misses > 0, "{hits} hits, {misses} misses");
    }
}

#[test]
fn large_values_and_a_deep_pipeline_do_not_lock_up() {
    for protocol in PROTOCOLS {
        let Some(server) = Memcached::on_socket(&["-m", "256"]) else { return };
        let (output, json) = server.bench(&[
            protocol,
            "--threads=1",
            "--clients=2",
            "--requests=200",
            "--ratio=1:1",
            "--data-size=200000",
            "--key-maximum=20",
            "--pipeline=100",
            "--populate",
        ]);
        assert_eq!(errors(&output), "");
        assert_eq!(json["hits"], 200);
    }
}

#[test]
fn eight_hundred_connections_work() {
    let Some(server) = Memcached::on_loopback(&["-c", "1024"]) else { return };
    let (output, json) =
        server.bench(&["--threads=16", "--clients=50", "--requests=20", "--key-maximum=500", "--populate"]);
    assert_eq!(errors(&output), "");
    assert_eq!((&json["requests"], &json["misses"]), (&16_000.into(), &0.into()));
}

#[test]
fn evicted_keys_are_errors() {
    let Some(server) = Memcached::on_socket(&["-m", "2", "-I", "512k"]) else { return };
    let (output, _) = server.bench(&[
        "--threads=1",
        "--clients=1",
        "--requests=1000",
        "--ratio=0:1",
        "--key-pattern=S:S",
        "--data-size=10000",
        "--key-maximum=999",
        "--populate",
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("missed, though it was stored"), "{}", errors(&output));
}

#[test]
fn the_same_seed_makes_the_same_requests() {
    let Some(server) = Memcached::on_socket(&[]) else { return };
    let keys = |seed: &str| {
        let args =
            ["--threads=2", "--clients=3", "--requests=200", "--key-pattern=Z:Z", "--key-maximum=99", seed];
        let (output, json) = server.bench(&args);
        assert_eq!(errors(&output), "");
        json["keys"].clone()
    };
    let first = keys("--seed=5");
    assert_eq!(first, keys("--seed=5"));
    assert_ne!(first, keys("--seed=6"));
    let counts: Vec<u64> = first
        .as_array()
        .unwrap()
        .iter()
        .map(|k| k["sets"].as_u64().unwrap() + k["gets"].as_u64().unwrap())
        .collect();
    assert!(counts.is_sorted_by(|a, b| a >= b));
    assert_eq!(counts.iter().sum::<u64>(), 1200);
}
