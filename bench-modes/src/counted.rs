//! What the monitor counted, from its report.

use serde::Deserialize;
use thermalloc_bench::monitor::Monitor;

/// Of a report, what costs time and what was seen for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Allocations.
    pub allocs: u64,
    /// Reads and writes.
    pub accesses: u64,
    /// Faults.
    pub faults: u64,
    /// Instructions that were single-stepped.
    pub steps: u64,
    /// Instructions that were emulated.
    pub emulated: u64,
    /// Sites that were patched.
    pub patched_sites: u64,
    /// System calls that were caught.
    pub syscalls: u64,
    /// Sites that could not be patched.
    pub unpatched_sites: u64,
    /// Faults at these.
    pub unpatched_faults: u64,
    /// From the runtime's start to its report, in seconds.
    pub watched_s: f64,
}

#[derive(Deserialize)]
struct Report {
    totals: Totals,
    program: Program,
    #[serde(default)]
    unpatched: Vec<Unpatched>,
}

#[derive(Deserialize)]
struct Totals {
    allocs: u64,
    reads: u64,
    writes: u64,
    faults: u64,
    steps: u64,
    emulated: u64,
    patched_sites: u64,
    syscalls: u64,
}

#[derive(Deserialize)]
struct Program {
    elapsed_ns: u64,
}

#[derive(Deserialize)]
struct Unpatched {
    faults: u64,
}

/// Reads the report of a program that has ended. A monitor that saw a heap but no access to it did not work, unless a budget
/// says when it looks.
pub fn counted(monitor: &Monitor) -> Result<Counted, String> {
    let Report { totals, program, unpatched }: Report = monitor.report()?;
    let accesses = totals.reads + totals.writes;
    if accesses == 0 && totals.allocs > 0 && monitor.budget.is_none() {
        return Err("the monitor saw no access".into());
    }
    Ok(Counted {
        allocs: totals.allocs,
        accesses,
        faults: totals.faults,
        steps: totals.steps,
        emulated: totals.emulated,
        patched_sites: totals.patched_sites,
        syscalls: totals.syscalls,
        unpatched_sites: unpatched.len() as u64,
        unpatched_faults: unpatched.iter().map(|site| site.faults).sum(),
        watched_s: program.elapsed_ns as f64 / 1e9,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_report_is_summed_up_and_an_empty_one_refused() {
        let directory = tempfile::tempdir().unwrap();
        let monitor = Monitor::new(Path::new("lib"), "patch", directory.path());
        let report = |allocs: u64, reads: u64| {
            let text = serde_json::json!({
                "config": {"mode": "patch"}, "program": {"elapsed_ns": 1_500_000_000u64}, "sites": [],
                "totals": {"allocs": allocs, "reads": reads, "writes": 0, "faults": 5, "steps": 1, "emulated": 2, "patched_sites": 3,
                    "syscalls": 4, "other": 9},
                "unpatched": [{"faults": 7, "reason": "x"}, {"faults": 1}],
            });
            std::fs::write(&monitor.report, text.to_string()).unwrap();
        };
        report(1, 8);
        let seen = counted(&monitor).unwrap();
        assert_eq!((seen.accesses, seen.unpatched_sites, seen.unpatched_faults), (8, 2, 8));
        assert_eq!(seen.watched_s, 1.5);
        report(0, 0);
        assert_eq!(counted(&monitor).unwrap().accesses, 0);
        report(1, 0);
        assert!(counted(&monitor).is_err());
        assert!(counted(&Monitor { budget: Some(5), ..monitor.clone() }).is_ok());
    }
}
