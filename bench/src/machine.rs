//! The machine: what it calls itself, and which processors server and load get.

use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::fs;
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
