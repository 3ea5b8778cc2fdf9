//! A run of a program that keeps one processor busy.

use crate::child;
use crate::columns::Way;
use crate::counted::counted;
use crate::programs::{self, Program};
use crate::run::{Bench, Run};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use thermalloc_bench::monitor::Monitor;

/// What every program finds in its environment, so that it does the same each time.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("PATH", programs::PATH),
    ("LC_ALL", "C.UTF-8"),
    ("PYTHONHASHSEED", "0"),
    ("PERL_HASH_SEED", "0"),
    ("PERL_PERTURB_KEYS", "0"),
];

/// Runs the program with its standard output in `output`.
pub fn run(program: &Program, way: Way, bench: &Bench, output: &Path) -> Result<Run, String> {
    let directory = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let monitor = bench.monitor(way, directory.path());
    let mut command = match way {
        Way::Native | Way::Runtime(..) => Command::new(&program.binary),
        Way::Dhat => {
            let mut command = Command::new(programs::find("valgrind")?);
            let file = directory.path().join("dhat.json");
            command.args(["--tool=dhat", "-q"]).arg(format!("--dhat-out-file={}", file.display()));
            command.arg(&program.binary);
            command
        }
    };
    let failed = |e: std::io::Error| format!("cannot run {}: {e}", program.binary.display());
    let errors = directory.path().join("stderr");
    command.args(&program.arguments).current_dir(directory.path()).env_clear().envs(ENVIRONMENT);
    let variables = monitor.as_ref().map(Monitor::variables).unwrap_or_default();
    command.envs(variables.iter().filter_map(|variable| variable.split_once('=')));
    command.stdout(File::create(output).map_err(failed)?).stderr(File::create(&errors).map_err(failed)?);
    command.stdin(match &program.stdin {
        Some(path) => File::open(path).map_err(failed)?.into(),
        None => Stdio::null(),
    });
    let outcome = child::run(&mut command, bench.limit).map_err(failed)?;
    if !outcome.stopped && !outcome.status.success() {
        let words = fs::read(&errors).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        return Err(format!("{}: {}", outcome.status, words.trim().lines().last().unwrap_or_default()));
    }
    let report = monitor.filter(|monitor| monitor.reports() && !outcome.stopped);
    Ok(Run {
        cpu_s: outcome.cpu_s,
        wall_s: outcome.wall_s,
        peak_kib: outcome.peak_kib,
        stopped: outcome.stopped,
        requests: None,
        counted: report.as_ref().map(counted).transpose()?,
    })
}
