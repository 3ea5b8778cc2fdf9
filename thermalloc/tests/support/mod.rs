//! Starting the example service and memcached, talking to them, and ending them by their own process id.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// The built example: that of `THERMALLOC_TEST_SERVICE`, or one built here in the profile of this test, for `cargo test`
/// alone does not build it.
pub fn service_program() -> PathBuf {
    if let Some(built) = std::env::var_os("THERMALLOC_TEST_SERVICE") {
        return built.into();
    }
    let test = std::env::current_exe().expect("this test has a path");
    let profile = test.parent().and_then(Path::parent).expect("the test lies in target/PROFILE/deps");
    let target = profile.parent().expect("the profile lies in target");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "thermalloc", "--example", "service", "--target-dir"]);
    build.arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => {}
        Some(name) => drop(build.args(["--profile", name])),
    }
    assert!(build.status().expect("cargo starts").success(), "the example does not build");
    profile.join("examples/service")
}

/// Whether the CPU has protection keys and the kernel uses them. If not, says so; a failure if `REQUIRE_PKU=1`.
pub fn has_keys() -> bool {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut flags = cpu.lines().filter(|line| line.starts_with("flags"));
    let has = flags.any(|line| line.split_whitespace().any(|flag| flag == "ospke"));
    if !has {
        let required = std::env::var_os("REQUIRE_PKU").is_some_and(|v| v == "1");
        assert!(!required, "REQUIRE_PKU=1, but the CPU has no protection keys");
        println!("SKIP: the CPU has no protection keys");
    }
    has
}

/// A server on a port of the loopback interface; killed when dropped.
pub struct Server {
    pub child: Child,
    pub port: u16,
    pub directory: tempfile::TempDir,
    /// What follows the first line of its output.
    output: Option<BufReader<ChildStdout>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// The example service; its report goes to `heat.json` in the server's directory.
    pub fn service(mode: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(service_program());
        command.args(["--listen", "127.0.0.1:0", "--mode", mode, "--report"]);
        command.arg(directory.path().join("heat.json")).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the service starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().and_then(|p| p.parse().ok());
        let port = port.unwrap_or_else(|| panic!("no port in '{line}'"));
        Self { child, port, directory, output: Some(output) }
    }

    /// The system's memcached. Without one: `None` after a SKIP line, or a failure if `REQUIRE_MEMCACHED=1`.
    pub fn memcached() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("port");
        let mut command = Command::new("memcached");
        command.args(["-u", "root", "-l", "127.0.0.1", "-p", "-1", "-U", "0"]);
        let started = command.env("MEMCACHED_PORT_FILENAME", &file).stdin(Stdio::null()).spawn();
        let child = match started {
            Ok(child) => child,
            Err(e) => {
                let required = std::env::var_os("REQUIRE_MEMCACHED").is_some_and(|v| v == "1");
                assert!(!required, "memcached does not start: {e}");
                println!("SKIP: memcached does not start: {e}");
                return None;
            }
        };
        let mut server = Self { child, port: 0, directory, output: None };
        let text = wait_for(|| std::fs::read_to_string(&file).ok().filter(|t| t.ends_with('\n')));
        server.port = text.trim().rsplit(' ').next().and_then(|p| p.parse().ok()).expect("a port");
        Some(server)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends everything on a connection of its own, and returns everything that comes until the server closes it.
    pub fn converse(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        let mut sender = stream.try_clone().unwrap();
        let bytes = bytes.to_vec();
        let sending = std::thread::spawn(move || sender.write_all(&bytes));
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the server closes after quit");
        // A server that closes early is judged by what it answered.
        let _ = sending.join().unwrap();
        answer
    }

    /// Sends a signal to the server's own process.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill starts").success());
    }

    /// Waits for the end; the status and what the server still wrote to stdout.
    pub fn end(&mut self) -> (ExitStatus, String) {
        let status = wait_for(|| self.child.try_wait().unwrap());
        let mut rest = String::new();
        if let Some(output) = &mut self.output {
            output.read_to_string(&mut rest).unwrap();
        }
        (status, rest)
    }
}

pub fn wait_for<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(begin.elapsed() < PATIENCE, "nothing happens");
        std::thread::sleep(Duration::from_millis(10));
    }
}
