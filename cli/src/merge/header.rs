//! What a merged report says of its programs, settings and machines; its totals; what was cut; and how far each report's
//! times are moved.

use crate::options::Align;
use thermalloc_format::{Config, End, Host, Limits, Object, Part, Program, Report, Totals};

/// How far each report's times are moved, in ns.
pub struct Shifts {
    shifts: Vec<u64>,
    align: Align,
    start_unix_ns: u64,
    end_ns: u64,
}

impl Shifts {
    /// By the clock if so asked, or if nothing is and the runs overlap.
    pub fn new<H>(reports: &[Report<H>], asked: Option<Align>) -> Self {
        let starts = reports.iter().map(|report| report.program.start_unix_ns);
        let start_unix_ns = starts.clone().min().unwrap_or(0);
        let align = asked.unwrap_or(if overlap(reports) { Align::Clock } else { Align::Start });
        let shifts: Vec<u64> = match align {
            Align::Clock => starts.map(|start| start - start_unix_ns).collect(),
            Align::Start => vec![0; reports.len()],
        };
        let ends = reports.iter().zip(&shifts);
        let end_ns = ends.map(|(report, shift)| report.program.elapsed_ns.saturating_add(*shift)).max();
        Self { shifts, align, start_unix_ns, end_ns: end_ns.unwrap_or(0) }
    }

    /// How far the times of the report of this index are moved.
    pub fn of(&self, index: usize) -> u64 {
        self.shifts[index]
    }

    /// When the last run ends.
    pub fn end(&self) -> u64 {
        self.end_ns
    }

    /// Moves an object's times.
    pub fn apply(&self, index: usize, object: &mut Object) {
        let by = self.shifts[index];
        let shift = |time: u64| time.saturating_add(by);
        object.alloc_ns = object.alloc_ns.saturating_add(by);
        object.free_ns = object.free_ns.map(shift);
        object.first_access_ns = object.first_access_ns.map(shift);
        object.last_access_ns = object.last_access_ns.map(shift);
    }
}

/// Whether the clock goes from the first start to the last end without a gap in which nothing ran.
fn overlap<H>(reports: &[Report<H>]) -> bool {
    let program = |report: &Report<H>| (report.program.start_unix_ns, report.program.elapsed_ns);
    let mut runs: Vec<(u64, u64)> = reports.iter().map(program).collect();
    runs.sort_unstable();
    let mut end = runs.first().map_or(0, |run| run.0);
    runs.into_iter().all(|(start, elapsed)| {
        let follows = start <= end;
        end = end.max(start.saturating_add(elapsed));
        follows
    })
}

/// Everything but sites, objects and code.
pub fn merge<H>(reports: &[Report<H>], shifts: &Shifts, result: &mut Report) {
    result.program = program(reports, shifts);
    result.parts = reports.iter().flat_map(parts).collect();
    result.config = config(reports);
    result.host = host(reports);
    for report in reports {
        add_totals(&mut result.totals, &report.totals);
        add_limits(&mut result.limits, &report.limits);
        result.objects_omitted = result.objects_omitted.saturating_add(report.objects_omitted);
        for warning in &report.warnings {
            if !result.warnings.contains(warning) {
                result.warnings.push(warning.clone());
            }
        }
    }
    if reports.len() > 1 {
        result.warnings.extend(warnings(reports, shifts));
    }
}

fn parts<H>(report: &Report<H>) -> Vec<Part> {
    if !report.parts.is_empty() {
        return report.parts.clone();
    }
    vec![Part { program: report.program.clone(), config: report.config.clone(), host: report.host.clone() }]
}

/// What all have in common, else `otherwise`.
fn common<H, T: Clone + PartialEq>(reports: &[Report<H>], of: impl Fn(&Report<H>) -> T, otherwise: T) -> T {
    let mut values = reports.iter().map(of);
    let first = values.next();
    match first {
        Some(first) if values.all(|value| value == first) => first,
        _ => otherwise,
    }
}

/// Texts in order of their first occurrence.
fn joined<H>(reports: &[Report<H>], of: impl Fn(&Report<H>) -> &str) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for text in reports.iter().map(of) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(" + ")
}

fn program<H>(reports: &[Report<H>], shifts: &Shifts) -> Program {
    let several = vec![format!("({} reports)", reports.len()), joined(reports, |report| &report.program.exe)];
    Program {
        cmdline: common(reports, |report| report.program.cmdline.clone(), several),
        exe: common(reports, |report| report.program.exe.clone(), String::new()),
        pid: common(reports, |report| report.program.pid, 0),
        ppid: common(reports, |report| report.program.ppid, 0),
        start_unix_ns: shifts.start_unix_ns,
        elapsed_ns: shifts.end(),
        watched_ns: watched_ns(reports, shifts.end()),
        end: common(reports, |report| report.program.end, End::Unknown),
        status: common(reports, |report| report.program.status, 0),
    }
}

/// The share of the runs' time that was watched, of the common axis's time; `None` if no report says it.
fn watched_ns<H>(reports: &[Report<H>], elapsed: u64) -> Option<u64> {
    let programs = || reports.iter().map(|report| &report.program);
    programs().find(|program| program.watched_ns.is_some())?;
    let sum = |of: fn(&Program) -> u64| programs().map(|program| of(program) as f64).sum::<f64>();
    let all = sum(|program| program.elapsed_ns);
    let watched = sum(|program| program.watched_ns.unwrap_or(program.elapsed_ns));
    Some(if all > 0.0 { (elapsed as f64 * (watched / all).min(1.0)) as u64 } else { 0 })
}

fn config<H>(reports: &[Report<H>]) -> Config {
    let of = |get: fn(&Report<H>) -> u64| reports.iter().map(get).max().unwrap_or(0);
    Config {
        mode: joined(reports, |report| &report.config.mode),
        access: common(reports, |report| report.config.access.clone(), "rw".into()),
        watch: common(reports, |report| report.config.watch.clone(), joined(reports, watched)),
        granule: of(|report| report.config.granule),
        depth: u32::try_from(of(|report| report.config.depth.into())).unwrap_or(u32::MAX),
        interval_ms: common(reports, |report| report.config.interval_ms, 0),
        view: joined(reports, |report| &report.config.view),
    }
}

fn watched<H>(report: &Report<H>) -> &str {
    if report.config.watch.is_empty() { "all" } else { &report.config.watch }
}

fn host<H>(reports: &[Report<H>]) -> Host {
    Host {
        cpu: joined(reports, |report| &report.host.cpu),
        kernel: joined(reports, |report| &report.host.kernel),
        pku: reports.iter().all(|report| report.host.pku),
        pkeys: reports.iter().map(|report| report.host.pkeys).min().unwrap_or(0),
        sud: reports.iter().all(|report| report.host.sud),
    }
}

fn add_totals(sum: &mut Totals, more: &Totals) {
    let pairs = [
        (&mut sum.allocs, more.allocs),
        (&mut sum.frees, more.frees),
        (&mut sum.bytes, more.bytes),
        (&mut sum.live_bytes, more.live_bytes),
        (&mut sum.peak_live_bytes, more.peak_live_bytes),
        (&mut sum.reads, more.reads),
        (&mut sum.writes, more.writes),
        (&mut sum.read_bytes, more.read_bytes),
        (&mut sum.write_bytes, more.write_bytes),
        (&mut sum.kernel_reads, more.kernel_reads),
        (&mut sum.kernel_writes, more.kernel_writes),
        (&mut sum.unattributed, more.unattributed),
        (&mut sum.unattributed_bytes, more.unattributed_bytes),
        (&mut sum.faults, more.faults),
        (&mut sum.steps, more.steps),
        (&mut sum.emulated, more.emulated),
        (&mut sum.patched_sites, more.patched_sites),
        (&mut sum.syscalls, more.syscalls),
    ];
    pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
}

fn add_limits(sum: &mut Limits, more: &Limits) {
    let pairs = [
        (&mut sum.stacks_unnamed, more.stacks_unnamed),
        (&mut sum.objects_coarsened, more.objects_coarsened),
        (&mut sum.live_objects_omitted, more.live_objects_omitted),
        (&mut sum.timeline_sites_omitted, more.timeline_sites_omitted),
    ];
    pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
}

fn warnings<H>(reports: &[Report<H>], shifts: &Shifts) -> Vec<String> {
    let count = reports.len();
    let aligned = match shifts.align {
        Align::Clock => "times count from the first start",
        Align::Start => "times count from each run's own start",
    };
    let mut warnings = vec![format!(
        "made from {count} reports: peaks are sums of peaks, which need not have been at the same time; {aligned}"
    )];
    let same_access = reports.iter().all(|report| report.config.access == reports[0].config.access);
    if !same_access {
        warnings.push("only some of the runs watched reads".into());
    }
    if reports.iter().any(|report| !report.unpatched.is_empty()) {
        warnings.push("sites that mode patch could not patch are in the single reports".into());
    }
    warnings
}
