//! The machine: what it calls itself, which processors server and load get, and what it can run.

use crate::server::Monitor;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Model name of the processor.
pub fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    model.unwrap_or_default().trim_start_matches([' ', '\t', ':']).to_owned()
}

/// Number of processors.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a command prints on its standard output; empty if it fails.
pub fn output(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// Processors for the server and for the load, as taskset wants them: half for each, and the same one where there is
/// but one.
pub fn split(cores: usize) -> (String, String) {
    let list = |from: usize, to: usize| if from == to { from.to_string() } else { format!("{from}-{to}") };
    match cores {
        0 | 1 => ("0".into(), "0".into()),
        _ => (list(0, cores / 2 - 1), list(cores / 2, cores - 1)),
    }
}

/// Why instrumented code cannot execute WRPKRU here, if it cannot.
pub fn wrpkru() -> Result<(), String> {
    let keys = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & 1 << 4 != 0;
    if keys { Ok(()) } else { Err("this machine has no protection keys".into()) }
}

/// Why the runtime cannot run in a mode here, if it cannot: a program is run in it, and must leave a report that says so.
pub fn mode(library: &Path, mode: &str) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let report = directory.path().join("heat.json");
    let monitor = Monitor { library: library.to_owned(), mode: mode.into(), view: None, scope: None, report };
    let mut command = Command::new("env");
    command.args(monitor.variables()).args(["ls", "-d", "/"]);
    let output = command.output().map_err(|e| format!("cannot run a program: {e}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    match monitor.report() {
        Ok(_) if output.status.success() => Ok(()),
        _ => Err(errors.lines().next().unwrap_or("the runtime leaves no report").to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn server_and_load_share_no_processor_where_there_are_two() {
        assert_eq!(split(1), ("0".into(), "0".into()));
        assert_eq!(split(2), ("0".into(), "1".into()));
        assert_eq!(split(5), ("0-1".into(), "2-4".into()));
        assert_eq!(split(16), ("0-7".into(), "8-15".into()));
    }
}
