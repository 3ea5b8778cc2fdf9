//! A memcached of our own: started on its processors, under the monitor or not, and ended so that it leaves its report.

use crate::rows::Scope;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for the server to begin or to end.
const PATIENCE: Duration = Duration::from_secs(300);

/// How the runtime is loaded into a program.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// libthermalloc.so.
    pub library: PathBuf,
    /// THERMALLOC_MODE.
    pub mode: String,
    /// THERMALLOC_VIEW; `None`: as suits the mode.
    pub view: Option<&'static str>,
    /// What is watched; `None`: everything.
    pub scope: Option<Scope>,
    /// Where the report goes.
    pub report: PathBuf,
}

impl Monitor {
    /// The environment, as arguments of env(1).
    pub fn variables(&self) -> Vec<String> {
        let (access, watch) = self.scope.map_or(("rw", ""), |scope| (scope.access, scope.watch));
        let view = self.view.map(|view| format!("THERMALLOC_VIEW={view}"));
        let mut variables = vec![
            format!("LD_PRELOAD={}", self.library.display()),
            format!("THERMALLOC_MODE={}", self.mode),
            format!("THERMALLOC_ACCESS={access}"),
            format!("THERMALLOC_WATCH={watch}"),
            format!("THERMALLOC_OUT={}", self.report.display()),
        ];
        variables.extend(view);
        variables
    }

    /// The report of the program that has ended: it must be there, and tell of this mode.
    pub fn report(&self) -> Result<Value, String> {
        let path = self.report.display();
        let text = fs::read(&self.report).map_err(|e| format!("no report in {path}: {e}"))?;
        let report: Value = serde_json::from_slice(&text).map_err(|e| format!("{path}: {e}"))?;
        let mode = report["config"]["mode"].as_str().unwrap_or_default();
        if mode == "off" || (self.mode != "auto" && mode != self.mode) {
            return Err(format!("the server ran in mode '{mode}' instead of '{}'", self.mode));
        }
        Ok(report)
    }
}

/// What to start.
pub struct Launch<'a> {
    /// The binary.
    pub binary: &'a Path,
    /// Arguments besides those for address and user.
    pub arguments: &'a [&'a str],
    /// Processors, as taskset has them.
    pub processors: &'a str,
    /// The monitor, if any.
    pub monitor: Option<&'a Monitor>,
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    /// The TCP port on the loopback address.
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a server and waits until it listens. `directory` is for its port file.
    pub fn start(launch: &Launch, directory: &Path) -> Result<Self, String> {
        let file = directory.join("port");
        let _ = fs::remove_file(&file);
        let mut command = Command::new("taskset");
        // The runtime must come into memcached alone, not into taskset.
        command.args(["-c", launch.processors, "env"]);
        command.arg(format!("MEMCACHED_PORT_FILENAME={}", file.display()));
        command.args(launch.monitor.map(Monitor::variables).unwrap_or_default());
        command.arg(launch.binary).args(["-l", "127.0.0.1", "-p", "-1", "-U", "0"]);
        // Only root has to say whose rights memcached takes; others cannot.
        if crate::machine::output(&["id", "-u"]) == "0" {
            command.args(["-u", "root"]);
        }
        let child = command.args(launch.arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let child = child.map_err(|e| format!("cannot start taskset: {e}"))?;
        let mut server = Self { child, port: 0 };
        server.port = server.wait_for_port(&file)?;
        Ok(server)
    }

    /// Process id of memcached itself: taskset and env have become it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// memcached writes the file in one piece, under another name first.
    fn wait_for_port(&mut self, file: &Path) -> Result<u16, String> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let text = fs::read_to_string(file).unwrap_or_default();
            if let Some(port) = text.trim().strip_prefix("TCP INET: ") {
                return port.parse().map_err(|_| format!("memcached's port '{port}' is no number"));
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("memcached does not start ({status})"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("memcached does not listen".into())
    }

    /// Ends the server as an operator does, by SIGTERM.
    pub fn stop(mut self) -> Result<(), String> {
        let sent = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        sent.map_err(|e| format!("cannot run kill: {e}"))?;
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("memcached ended badly ({status})")),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        Err("memcached does not end".into())
    }
}
