//! A server of our own: started on its processors, under the monitor or not, and ended so that it leaves its report.

use crate::monitor::Monitor;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for a server to begin or to end.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between two looks at whether it has.
const PAUSE: Duration = Duration::from_millis(5);

/// What to start.
pub struct Launch<'a> {
    /// The binary.
    pub binary: &'a Path,
    /// Arguments.
    pub arguments: &'a [&'a str],
    /// Processors, as taskset has them.
    pub processors: &'a str,
    /// The monitor, if any.
    pub monitor: Option<&'a Monitor>,
}

/// A running server; killed when dropped.
pub struct Service {
    child: Child,
    name: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    /// Starts a server, with more variables (`NAME=VALUE`) in its environment.
    pub fn start(launch: &Launch, variables: &[String]) -> Result<Self, String> {
        let mut command = Command::new("taskset");
        // The runtime must come into the server alone, not into taskset.
        command.args(["-c", launch.processors, "env"]).args(variables);
        command.args(launch.monitor.map(Monitor::variables).unwrap_or_default());
        command.arg(launch.binary).args(launch.arguments);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let child = child.map_err(|e| format!("cannot start taskset: {e}"))?;
        let name = launch.binary.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { child, name })
    }

    /// Process id of the server itself: taskset and env have become it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `ready` finds what it looks for.
    pub fn wait_for<T>(&mut self, ready: impl Fn() -> Option<T>) -> Result<T, String> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(found) = ready() {
                return Ok(found);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{} does not start ({status})", self.name));
            }
            std::thread::sleep(PAUSE);
        }
        Err(format!("{} does not listen", self.name))
    }

    /// Ends the server as an operator does, by SIGTERM.
    pub fn stop(mut self) -> Result<(), String> {
        let sent = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        sent.map_err(|e| format!("cannot run kill: {e}"))?;
        match self.end() {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("{} ended badly ({status})", self.name)),
            None => Err(format!("{} does not end", self.name)),
        }
    }

    fn end(&mut self) -> Option<ExitStatus> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(PAUSE);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Service {
        let launch =
            Launch { binary: Path::new("sh"), arguments: &["-c", script], processors: "0", monitor: None };
        Service::start(&launch, &["WORD=here".into()]).unwrap()
    }

    #[test]
    fn a_server_gets_its_variables_and_ends_when_told_to() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ready");
        let mut server = shell(&format!(
            "trap 'exit 0' TERM; echo $WORD >{}; while :; do sleep 0.01; done",
            file.display()
        ));
        let word =
            server.wait_for(|| std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n')));
        assert_eq!(word.unwrap(), "here\n");
        server.stop().unwrap();
    }

    #[test]
    fn a_server_that_does_not_start_is_said() {
        assert!(shell("exit 3").wait_for(|| None::<()>).unwrap_err().contains("sh does not start"));
    }
}
