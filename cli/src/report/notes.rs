//! What stands at the top of a run: what ran, how it was watched, what that cost, and what the numbers do not say.

use super::names::text;
use crate::units::{bytes_with_unit, count, duration};
use serde::Serialize;
use thermalloc_format::{End, Report};

/// Typical costs of the monitor's work in ns, measured on a server processor; they differ between machines by a factor of two.
const FAULT_NS: u64 = 4_000;
const STEP_NS: u64 = 7_000;
const STEP_BY_PROTECTION_NS: u64 = 15_000;
const SYSTEM_CALL_NS: u64 = 6_000;
/// An object's birth and death, stack included.
const OBJECT_NS: u64 = 600;
/// In mode `patch`: translating a site, a system call from patched code, an access that is counted inline.
const SITE_NS: u64 = 80_000;
const PATCHED_CALL_NS: u64 = 200;
const INLINE_NS: u64 = 4;

/// Sites named of those that mode patch could not patch.
const UNPATCHED: usize = 5;

/// Sentences for the overview.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Notes {
    /// Command line.
    pub command: String,
    /// How the run ended.
    pub ended: String,
    /// How it was watched.
    pub watched: String,
    /// On which machine.
    pub machine: String,
    /// What watching cost.
    pub overhead: String,
    /// What to keep in mind about the numbers.
    pub warnings: Vec<String>,
}

/// All of them; warnings about names come from symbolisation.
pub fn notes<H>(report: &Report<H>, symbols: &[String]) -> Notes {
    let (program, host) = (&report.program, &report.host);
    let command = if program.cmdline.is_empty() { program.exe.clone() } else { program.cmdline.join(" ") };
    let keys = if host.pku { "with protection keys" } else { "without protection keys" };
    let unknown = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
    Notes {
        command: text(&command),
        ended: ended(report),
        watched: text(&watched(report)),
        machine: text(&format!("{}, {keys}, Linux {}", unknown(&host.cpu), unknown(&host.kernel))),
        overhead: overhead(report),
        warnings: warnings(report).iter().chain(symbols).map(|line| text(line)).collect(),
    }
}

fn ended<H>(report: &Report<H>) -> String {
    let program = &report.program;
    let after = duration(program.elapsed_ns);
    match program.end {
        End::Exit => format!("with status {} after {after}", program.status),
        End::Signal => format!("killed by signal {} after {after}", program.status),
        End::Exec => format!("by executing another program after {after}"),
        End::Interval => format!("not yet: a report made while it ran, after {after}"),
        End::Unknown => format!("in an unknown way after {after}"),
    }
}

fn watched<H>(report: &Report<H>) -> String {
    let config = &report.config;
    let kinds = if config.access == "w" { "writes only" } else { "reads and writes" };
    let objects = if config.watch.is_empty() { "all objects".to_owned() } else { config.watch.clone() };
    let depth = match config.depth {
        0 => "immediate callers only".to_owned(),
        depth => format!("stacks of up to {depth} frames"),
    };
    format!("mode {}, {kinds} of {objects}, counters of {} B, {depth}", config.mode, config.granule)
}

/// The program's time without the monitor is not in a report, so this can only say what the monitor did, and what that
/// typically costs.
fn overhead<H>(report: &Report<H>) -> String {
    let (totals, elapsed) = (&report.totals, report.program.elapsed_ns);
    let step = if report.config.mode == "pp" { STEP_BY_PROTECTION_NS } else { STEP_NS };
    let accesses = totals.reads.saturating_add(totals.writes);
    let is_inline = report.config.mode == "patch";
    let (call, access) = if is_inline { (PATCHED_CALL_NS, INLINE_NS) } else { (SYSTEM_CALL_NS, 0) };
    let work = [
        (totals.faults, FAULT_NS),
        (totals.steps, step),
        (totals.patched_sites, SITE_NS),
        (totals.syscalls, call),
        (totals.allocs, OBJECT_NS),
        (accesses, access),
    ];
    let spent = work.iter().fold(0u64, |sum, (times, ns)| sum.saturating_add(times.saturating_mul(*ns)));
    let mut text = format!(
        "{} faults, {} single steps, {} system calls taken",
        count(totals.faults),
        count(totals.steps),
        count(totals.syscalls)
    );
    if totals.patched_sites > 0 {
        text += &format!(", {} instruction sites patched", count(totals.patched_sites));
    }
    if let Some(each) = elapsed.checked_div(accesses) {
        text += &format!("; {} of run time for each access", duration(each));
    }
    text += &match share(spent, elapsed) {
        _ if elapsed == 0 => String::new(),
        share if share >= 0.8 => ". At usual costs this is nearly all of the run's time".to_owned(),
        share if share < 0.01 => ". At usual costs this is under 1 % of the run's time".to_owned(),
        share => format!(". At usual costs this is about {:.0} % of the run's time", share * 100.0),
    };
    text + "; times on this page include it, and counts do not depend on it."
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn warnings<H>(report: &Report<H>) -> Vec<String> {
    let (config, totals) = (&report.config, &report.totals);
    let mut lines = report.warnings.clone();
    match report.program.end {
        End::Interval => {
            lines.push("The program was still running: the numbers go up to this report only.".into())
        }
        End::Signal => lines.push("A signal ended the program; what it did not free counts as live.".into()),
        _ => {}
    }
    if config.watch.contains("sample=") {
        lines.push(format!(
            "Only a sample of the objects was watched ({}): multiply to compare.",
            config.watch
        ));
    } else if !config.watch.is_empty() {
        lines.push(format!("Only some objects were watched ({}).", config.watch));
    }
    if config.access == "w" {
        lines.push("Reads were not watched: nothing here can be called never read.".into());
    }
    if config.mode == "pp" && report.sites.iter().any(|site| site.max_threads > 1) {
        lines.push("Mode pp misses what other threads access while one of them is stepped.".into());
    }
    if totals.unattributed > 0 {
        lines.push(format!(
            "{} accesses hit no live object (use after free, or beyond an object's end).",
            count(totals.unattributed)
        ));
    }
    if report.objects_omitted > 0 {
        lines.push(format!(
            "{} objects are counted in sites and classes but not listed one by one.",
            count(report.objects_omitted)
        ));
    }
    lines.extend(unpatched(report));
    lines
}

fn unpatched<H>(report: &Report<H>) -> Option<String> {
    let faults: u64 = report.unpatched.iter().fold(0, |sum, site| sum.saturating_add(site.faults));
    let named: Vec<String> = report
        .unpatched
        .iter()
        .take(UNPATCHED)
        .map(|site| {
            let module = site.module.and_then(|index| report.modules.get(index as usize));
            let file = module.map_or("", |module| module.path.rsplit('/').next().unwrap_or_default());
            format!("{file}+{:#x} ({}, {} faults)", site.offset, site.reason, count(site.faults))
        })
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "{} instruction sites could not be patched and took {} faults, such as {}.",
            report.unpatched.len(),
            count(faults),
            named.join(", ")
        )
    })
}

/// What the page leaves out, in words; empty: nothing.
pub fn cut(what: &str, shown: usize, all: u64, order: &str) -> Option<String> {
    (all > shown as u64)
        .then(|| format!("{} of {} {what} are on this page: {order}.", count(shown as u64), count(all)))
}

/// A size for the console.
pub fn size(bytes: usize) -> String {
    bytes_with_unit(bytes as u64)
}
