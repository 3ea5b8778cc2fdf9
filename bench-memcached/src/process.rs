//! What a process has used so far, from procfs.

use std::ops::Sub;
use std::str::FromStr;

/// Clock ticks a second in procfs (USER_HZ; 100 on every Linux of this architecture).
const TICKS: f64 = 100.0;

/// Processor time of all threads of a process, dead ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// In user mode, in seconds.
    pub user_s: f64,
    /// In the kernel, in seconds.
    pub system_s: f64,
}

impl CpuTime {
    /// Both together, in seconds.
    pub fn total_s(self) -> f64 {
        self.user_s + self.system_s
    }
}

impl Sub for CpuTime {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self { user_s: self.user_s - earlier.user_s, system_s: self.system_s - earlier.system_s }
    }
}

/// Processor time of process `pid` so far.
pub fn cpu_time(pid: u32) -> Result<CpuTime, String> {
    let stat = read(pid, "stat")?;
    parse_stat(&stat).ok_or_else(|| format!("/proc/{pid}/stat is not understood"))
}

/// Most memory that process `pid` has had resident at a time, in KiB.
pub fn peak_kib(pid: u32) -> Result<u64, String> {
    let status = read(pid, "status")?;
    parse_peak(&status).ok_or_else(|| format!("/proc/{pid}/status has no VmHWM"))
}

fn read(pid: u32, file: &str) -> Result<String, String> {
    let path = format!("/proc/{pid}/{file}");
    std::fs::read_to_string(&path).map_err(|e| format!("cannot read {path}: {e}"))
}

/// Fields 14 and 15; the second one, the name in parentheses, may hold spaces and parentheses itself.
fn parse_stat(stat: &str) -> Option<CpuTime> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(u64::from_str);
    let mut seconds = || Some(fields.next()?.ok()? as f64 / TICKS);
    Some(CpuTime { user_s: seconds()?, system_s: seconds()? })
}

fn parse_peak(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_mislead() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 93 0 0 0 250 75 9 9 20 0 10 0 45 1";
        let time = parse_stat(stat).unwrap();
        assert_eq!(time, CpuTime { user_s: 2.5, system_s: 0.75 });
        let later = CpuTime { user_s: 3.0, system_s: 1.0 };
        assert_eq!((later - time).total_s(), 0.75);
        assert_eq!(parse_stat("7 (x) S 1"), None);
    }

    #[test]
    fn the_peak_is_read_in_kib() {
        assert_eq!(parse_peak("Name:\tx\nVmHWM:\t    6172 kB\nVmRSS:\t 1 kB\n"), Some(6172));
        assert_eq!(parse_peak("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_has_used_something() {
        let pid = std::process::id();
        let before = cpu_time(pid).unwrap();
        while (cpu_time(pid).unwrap() - before).total_s() < 0.02 {}
        assert!(peak_kib(pid).unwrap() > 100);
    }
}
