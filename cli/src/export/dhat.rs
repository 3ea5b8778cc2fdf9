//! A report as DHAT writes its results, version 2 of the format, for Valgrind's dh_view.html. Times are in microseconds.
//!
//! What a heat.json does not have for all objects (blocks at a site's peak, what was alive when the heap was largest) is taken
//! from the listed ones.

use super::histogram::Histograms;
use super::lifetimes::{Alive, Lifetimes, Summary};
use crate::failure::{Failure, say};
use crate::input;
use crate::measure::{UNKNOWN, live};
use crate::options::ExportOptions;
use crate::output::{self, Stop};
use crate::symbols::{Function, Stacks};
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use thermalloc_format::{Heat, Report, Site};

/// Below this many microseconds a block is short-lived: the viewer has a list of these.
const SHORT_LIVED: u64 = 500;

/// The whole file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    dhat_file_version: u32,
    mode: &'static str,
    verb: &'static str,
    /// Lifetimes are known, and accesses.
    bklt: bool,
    bkacc: bool,
    /// Unit of time, and what a million of these are.
    tu: &'static str,
    #[serde(rename = "Mtu")]
    million_tu: &'static str,
    tuth: u64,
    cmd: String,
    pid: u32,
    /// End, and when the heap was largest.
    te: u64,
    tg: u64,
    pps: Vec<Point>,
    ftbl: Vec<String>,
}

/// Where blocks were allocated: t stands for total, m for the point's own maximum, g for the heap's maximum, e for the end, r
/// and w for accesses, b for bytes, bk for blocks.
#[derive(Clone, Default, Serialize)]
struct Point {
    tb: u64,
    tbk: u64,
    tl: u64,
    mb: u64,
    mbk: u64,
    gb: u64,
    gbk: u64,
    eb: u64,
    ebk: u64,
    rb: u64,
    wb: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    acc: Option<Vec<i64>>,
    /// Indices into `ftbl`, innermost first.
    fs: Vec<usize>,
}

/// Reads the report and writes the file.
pub fn write(options: &ExportOptions) -> Result<(), Failure> {
    let (mut lifetimes, mut histograms) = (Lifetimes::default(), Histograms::default());
    let report = input::read::<Heat>(&options.path, input::Histograms::Drop, |object| {
        lifetimes.add(&object);
        histograms.add(&object);
    })?;
    let mut stacks = Stacks::with_files(&report, &options.symbols);
    let file = file(&report, &lifetimes.summary(), &histograms, &mut stacks);
    output::write(options.output.as_deref(), |sink| {
        serde_json::to_writer(sink, &file).map_err(|error| Stop::Write(io::Error::from(error)))
    })?;
    stacks.notes().iter().for_each(|note| say(note));
    if report.objects_omitted > 0 && !ends_at_peak(&report) {
        let omitted = report.objects_omitted;
        say(&format!("what was alive at t-gmax is too low: the report does not list {omitted} objects"));
    }
    Ok(())
}

fn file(report: &Report, times: &Summary, histograms: &Histograms, stacks: &mut Stacks<'_>) -> File {
    let elapsed = report.program.elapsed_ns;
    let (mut frames, mut points) = (Frames::new(), Points::default());
    for site in &report.sites {
        let fs = frames.of(site, report, stacks);
        points.add(Point { acc: histograms.encoded(site), fs, ..point(site, report, times) });
    }
    File {
        dhat_file_version: 2,
        mode: "heap",
        verb: "Allocated",
        bklt: true,
        bkacc: true,
        tu: "µs",
        million_tu: "s",
        tuth: SHORT_LIVED,
        cmd: report.program.cmdline.join(" "),
        pid: report.program.pid,
        te: elapsed / 1000,
        tg: if ends_at_peak(report) { elapsed } else { times.peak_ns } / 1000,
        pps: points.points,
        ftbl: frames.texts,
    }
}

/// Whether the heap is largest at the end: then what was alive at the peak is known without the objects.
fn ends_at_peak(report: &Report) -> bool {
    report.totals.live_bytes == report.totals.peak_live_bytes
}

fn point(site: &Site, report: &Report, times: &Summary) -> Point {
    let end = Alive { bytes: site.live_bytes, blocks: live(site) };
    let at_peak = times.at_peak.get(&site.id).copied().unwrap_or_default();
    let at_peak = if ends_at_peak(report) { end } else { at_peak };
    let freed = site.lifetime_ns.mean * site.lifetime_ns.count as f64;
    let lived = freed + times.ages(site.id, report.program.elapsed_ns) as f64;
    Point {
        tb: site.bytes,
        tbk: site.allocs,
        tl: (lived / 1000.0) as u64,
        mb: site.peak_live_bytes,
        mbk: blocks_at_peak(site, times.largest.get(&site.id).copied().unwrap_or_default()),
        gb: at_peak.bytes,
        gbk: at_peak.blocks,
        eb: end.bytes,
        ebk: end.blocks,
        rb: site.read_bytes,
        wb: site.write_bytes,
        ..Point::default()
    }
}

/// Of the listed objects, if they are all that made up the peak; else as many as have its bytes at the average size.
fn blocks_at_peak(site: &Site, listed: Alive) -> u64 {
    if listed.bytes == site.peak_live_bytes || site.bytes == 0 {
        return listed.blocks;
    }
    let blocks = u128::from(site.peak_live_bytes) * u128::from(site.allocs) / u128::from(site.bytes);
    u64::try_from(blocks).unwrap_or(u64::MAX).min(site.allocs)
}

/// The table of frames; index 0 is the root of the viewer's tree.
struct Frames {
    texts: Vec<String>,
    indices: HashMap<String, usize>,
}

impl Frames {
    fn new() -> Self {
        Self { texts: vec!["[root]".into()], indices: HashMap::new() }
    }

    fn of(&mut self, site: &Site, report: &Report, stacks: &mut Stacks<'_>) -> Vec<usize> {
        let mut texts = Vec::new();
        for &index in &site.frames {
            let ip = report.frames.get(index as usize).map_or(0, |frame| frame.ip);
            texts.extend(stacks.frame(index).iter().map(|function| text(ip, function)));
        }
        if texts.is_empty() {
            texts.push(UNKNOWN.into());
        }
        texts.into_iter().map(|text| self.index(text)).collect()
    }

    fn index(&mut self, text: String) -> usize {
        let texts = &mut self.texts;
        *self.indices.entry(text).or_insert_with_key(|text| {
            texts.push(text.clone());
            texts.len() - 1
        })
    }
}

/// As Valgrind writes it: address, function, and file with line or module.
fn text(ip: u64, function: &Function) -> String {
    match (function.known, function.file.is_empty()) {
        (false, _) => format!("{ip:#X}: ??? ({})", function.name),
        (true, true) => format!("{ip:#X}: {} (in {})", function.name, function.module),
        (true, false) => format!("{ip:#X}: {} ({})", function.name, function.place()),
    }
}

/// Points in order of arrival, one for each stack: the viewer refuses a stack that comes twice.
#[derive(Default)]
struct Points {
    points: Vec<Point>,
    indices: HashMap<Vec<usize>, usize>,
}

impl Points {
    fn add(&mut self, point: Point) {
        match self.indices.get(&point.fs) {
            Some(&index) => self.points[index].merge(point),
            None => {
                self.indices.insert(point.fs.clone(), self.points.len());
                self.points.push(point);
            }
        }
    }
}

impl Point {
    fn merge(&mut self, other: Self) {
        let pairs = [
            (&mut self.tb, other.tb),
            (&mut self.tbk, other.tbk),
            (&mut self.tl, other.tl),
            (&mut self.mb, other.mb),
            (&mut self.mbk, other.mbk),
            (&mut self.gb, other.gb),
            (&mut self.gbk, other.gbk),
            (&mut self.eb, other.eb),
            (&mut self.ebk, other.ebk),
            (&mut self.rb, other.rb),
            (&mut self.wb, other.wb),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        // Histograms of other sizes do not add up.
        self.acc = None;
    }
}
