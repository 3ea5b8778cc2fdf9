//! Runs programs under `thermalloc run`.

use crate::modes::{self, Mode};
use crate::places::{self, Scratch};
use crate::process::{self, Outcome};
use crate::report::Report;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long a program may take before it counts as hanging: far more than any needs, and more under emulation.
pub fn limit() -> Duration {
    Duration::from_secs(match (modes::emulated(), modes::everything()) {
        (true, true) => 3600,
        (true, false) => 600,
        (false, _) => 150,
    })
}

/// Prepares `program` under `thermalloc run`; each process that it starts leaves a report in `reports`.
pub fn command(mode: Mode, settings: &[&str], reports: &Path, program: &Path) -> Command {
    let tool = places::release("thermalloc");
    assert!(tool.is_file(), "{} is missing: run `make build` first", tool.display());
    let mut command = process::command(&tool);
    command.args(["run", "--mode", mode.name()]).args(settings);
    command.arg("-o").arg(reports.join("heat.%p.json")).arg("--").arg(program);
    command
}

/// A program's run under the monitor and the reports that it left.
#[derive(Debug)]
pub struct Monitored {
    /// Its end and output.
    pub outcome: Outcome,
    /// One for each process that wrote one.
    pub reports: Vec<Report>,
}

/// Runs `program` under the monitor with further `settings` of `thermalloc run`.
pub fn run(mode: Mode, settings: &[&str], program: &Path, arguments: &[String]) -> Monitored {
    let scratch = Scratch::new("reports");
    let outcome = process::run(command(mode, settings, scratch.path(), program).args(arguments), limit());
    Monitored { outcome, reports: Report::read_all(scratch.path()) }
}

/// Runs a program as it is, in the same environment.
pub fn native(program: &Path, arguments: &[String]) -> Outcome {
    process::run(process::command(program).args(arguments), limit())
}

/// Checks the reports of a run: there is one unless the program was killed, and they are of the right mode.
pub fn assert_reported(monitored: &Monitored, mode: Mode, what: &str) {
    const KILLED: i32 = 128 + 9;
    let Monitored { outcome, reports } = monitored;
    if !mode.monitors() || outcome.status == KILLED {
        return;
    }
    assert!(!reports.is_empty(), "{what}: no report\n{}", outcome.error_text());
    assert!(reports.iter().all(|report| report.mode() == mode.name()), "{what}: report of another mode");
}
