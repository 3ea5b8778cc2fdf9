//! Counts of a program whose accesses are known from its assembly, compared with equality.

use serde_json::Value;
use std::collections::HashMap;
use thermalloc_tests::modes::{Mode, modes};
use thermalloc_tests::monitored::{self, Monitored};
use thermalloc_tests::report::{Counts, ObjectHeat, number};
use thermalloc_tests::victims;

/// What must have happened to one object.
struct Expected {
    label: String,
    address: u64,
    size: u64,
    threads: u64,
    counts: Counts,
    kernel_reads: u64,
    kernel_writes: u64,
    /// Offset, length, reads, writes.
    accesses: Vec<[u64; 4]>,
}

fn expected(line: &str) -> Expected {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let access =
        |entry: &Value| std::array::from_fn(|i| entry[i].as_u64().expect("an access is four numbers"));
    Expected {
        label: value["label"].as_str().expect("label").to_owned(),
        address: number(&value, "address"),
        size: number(&value, "size"),
        threads: number(&value, "threads"),
        counts: Counts::of(&value),
        kernel_reads: number(&value, "kernel_reads"),
        kernel_writes: number(&value, "kernel_writes"),
        accesses: value["accesses"].as_array().expect("accesses").iter().map(access).collect(),
    }
}

impl Expected {
    /// An access counts in the granule of its first byte and in each later one that it reaches by whole steps
    /// of a granule: the rule of ARCHITECTURE.md.
    fn granules(&self, granule: u64, which: usize) -> Vec<u64> {
        let mut counters = vec![0; self.size.div_ceil(granule) as usize];
        for access in &self.accesses {
            let [offset, length, ..] = *access;
            for step in 0..length.div_ceil(granule) {
                counters[((offset + step * granule) / granule) as usize] += access[which];
            }
        }
        counters
    }

    /// What differs in the report, if anything. `write_only`: reads were not monitored.
    fn difference(&self, found: Option<&ObjectHeat>, write_only: bool) -> Option<String> {
        let Some(found) = found else { return Some("not in the report".to_owned()) };
        let Counts { writes, write_bytes, .. } = self.counts;
        let mut problems = Vec::new();
        if found.size != self.size {
            problems.push(format!("size {} instead of {}", found.size, self.size));
        }
        if (found.counts.writes, found.counts.write_bytes) != (writes, write_bytes)
            || !write_only && found.counts != self.counts
        {
            problems.push(format!("{:?} instead of {:?}", found.counts, self.counts));
        }
        if self.counts != Counts::default() && !write_only && found.threads != self.threads {
            problems.push(format!("{} threads instead of {}", found.threads, self.threads));
        }
        let (reads, writes) = (self.granules(found.granule, 2), self.granules(found.granule, 3));
        if !write_only && !same_counters(&found.granule_reads, &reads) {
            problems.push(format!("reads by granule {:?} instead of {reads:?}", found.granule_reads));
        }
        if !same_counters(&found.granule_writes, &writes) {
            problems.push(format!("writes by granule {:?} instead of {writes:?}", found.granule_writes));
        }
        (!problems.is_empty()).then(|| problems.join("; "))
    }
}

/// Equal, where a report may leave out zeroes at the end.
fn same_counters(found: &[u64], expected: &[u64]) -> bool {
    let length = found.len().max(expected.len());
    (0..length).all(|i| found.get(i).unwrap_or(&0) == expected.get(i).unwrap_or(&0))
}

fn run(mode: Mode, settings: &[&str]) -> (Vec<Expected>, Monitored) {
    let monitored = monitored::run(mode, settings, &victims::victim("exact").program(), &[]);
    assert_eq!(monitored.outcome.status, 0, "exact in {mode}: {}", monitored.outcome.error_text());
    let expected: Vec<Expected> = monitored.outcome.text().lines().map(expected).collect();
    assert!(expected.len() > 70, "only {} cases ran", expected.len());
    (expected, monitored)
}

fn compare(mode: Mode, settings: &[&str], write_only: bool) {
    let (expected, monitored) = run(mode, settings);
    let [report] = &monitored.reports[..] else {
        panic!("{} reports instead of one", monitored.reports.len())
    };
    let objects: HashMap<u64, ObjectHeat> = report.live_objects();
    // Page protection loses accesses where several threads run.
    let checked = || expected.iter().filter(|object| object.threads == 1 || mode.exact_with_threads());
    let differ = |object: &Expected| {
        let difference = object.difference(objects.get(&object.address), write_only)?;
        Some(format!("{}: {difference}", object.label))
    };
    let wrong: Vec<String> = checked().filter_map(differ).collect();
    assert!(
        wrong.is_empty(),
        "{mode} {settings:?}, {} of {} wrong:\n{}",
        wrong.len(),
        expected.len(),
        wrong.join("\n")
    );
    if !write_only {
        // The program has other objects too: the kernel touches the buffer of stdout.
        let at_least = |total: &str, least: u64| assert!(report.total(total) >= least, "too few {total}");
        at_least("kernel_reads", checked().map(|object| object.kernel_reads).sum());
        at_least("kernel_writes", checked().map(|object| object.kernel_writes).sum());
        at_least("reads", checked().map(|object| object.counts.reads).sum());
        at_least("write_bytes", checked().map(|object| object.counts.write_bytes).sum());
    }
}

#[test]
fn counts_are_exact() {
    for mode in modes() {
        if mode.monitors() {
            compare(mode, &[], false);
        } else {
            run(mode, &[]);
        }
    }
}

#[test]
fn writes_alone_are_exact() {
    for mode in modes().into_iter().filter(|mode| mode.monitors()) {
        compare(mode, &["--access", "w"], true);
    }
}

#[test]
fn other_granules_are_exact() {
    for mode in modes().into_iter().filter(|mode| mode.monitors()) {
        compare(mode, &["--granule", "64"], false);
    }
}
