//! The tables sites, objects and timeline. docs/export.md says what each column means.

use super::csv::Csv;
use super::parquet::Parquet;
use super::table::Kind::{Fraction, Number, Optional, Text};
use super::table::{Column, Kind, Rows, Value};
use crate::failure::{Failure, say};
use crate::input::{self, Histograms};
use crate::measure::stack_line;
use crate::options::{ExportFormat, ExportOptions, ExportTable};
use crate::output::{self, Sink, Stop};
use crate::symbols::{Function, Stacks};
use std::path::{Path, PathBuf};
use thermalloc_format::{Heat, Object, Program, Report, Site};

/// These name the run, so that tables of many runs can be queried together.
const RUN: [(&str, Kind); 3] = [("exe", Text), ("pid", Number), ("start_unix_ns", Number)];

const SITES: [(&str, Kind); 25] = [
    ("site", Number),
    ("function", Text),
    ("file", Text),
    ("line", Number),
    ("module", Text),
    ("stack", Text),
    ("allocs", Number),
    ("frees", Number),
    ("bytes", Number),
    ("live_bytes", Number),
    ("peak_live_bytes", Number),
    ("reads", Number),
    ("writes", Number),
    ("read_bytes", Number),
    ("write_bytes", Number),
    ("max_threads", Number),
    ("accesses_per_object_mean", Fraction),
    ("accesses_per_object_p50", Number),
    ("accesses_per_object_p99", Number),
    ("accesses_per_object_max", Number),
    ("freed_objects", Number),
    ("lifetime_ns_mean", Fraction),
    ("lifetime_ns_p50", Number),
    ("lifetime_ns_p99", Number),
    ("lifetime_ns_max", Number),
];

const OBJECTS: [(&str, Kind); 18] = [
    ("addr", Number),
    ("size", Number),
    ("class", Number),
    ("site", Number),
    ("alloc_ns", Number),
    ("free_ns", Optional),
    ("reads", Number),
    ("writes", Number),
    ("read_bytes", Number),
    ("write_bytes", Number),
    ("threads", Number),
    ("first_access_ns", Optional),
    ("last_access_ns", Optional),
    ("label", Text),
    ("granule", Number),
    ("granules_accessed", Number),
    ("hottest_offset", Optional),
    ("hottest_accesses", Number),
];

const TIMELINE: [(&str, Kind); 5] =
    [("site", Number), ("t_ns", Number), ("interval_ns", Number), ("reads", Number), ("writes", Number)];

/// The table or tables that the options ask for.
pub fn write(options: &ExportOptions) -> Result<(), Failure> {
    let report = input::without_objects::<Heat>(&options.path, Histograms::Drop)?;
    let run = Run::new(&report.program);
    for (table, path) in destinations(options) {
        output::write(path.as_deref(), |sink| {
            let mut rows = open(options.format, table, sink)?;
            match table {
                ExportTable::Sites => sites(&report, &run, options, &mut *rows)?,
                ExportTable::Objects => objects(&options.path, &run, &mut *rows)?,
                ExportTable::Timeline => timeline(&report, &run, &mut *rows)?,
            }
            rows.finish()
        })?;
        if let (Some(path), None) = (path, options.table) {
            say(&format!("{} written to {}", name(table), path.display()));
        }
    }
    Ok(())
}

fn destinations(options: &ExportOptions) -> Vec<(ExportTable, Option<PathBuf>)> {
    let file = options.output.as_deref().filter(|path| *path != "-");
    match (options.table, file) {
        (Some(table), file) => vec![(table, file.map(Path::to_owned))],
        (None, None) => vec![(ExportTable::Sites, None)],
        (None, Some(file)) => [ExportTable::Sites, ExportTable::Objects, ExportTable::Timeline]
            .into_iter()
            .map(|table| (table, Some(of_table(file, table))))
            .collect(),
    }
}

/// The table's name goes before the extension.
fn of_table(file: &Path, table: ExportTable) -> PathBuf {
    let mut path = file.file_stem().unwrap_or_default().to_owned();
    path.push(format!(".{}", name(table)));
    if let Some(extension) = file.extension() {
        path.push(".");
        path.push(extension);
    }
    file.with_file_name(path)
}

fn name(table: ExportTable) -> &'static str {
    match table {
        ExportTable::Sites => "sites",
        ExportTable::Objects => "objects",
        ExportTable::Timeline => "timeline",
    }
}

fn columns(table: ExportTable) -> Vec<Column> {
    let own: &[(&str, Kind)] = match table {
        ExportTable::Sites => &SITES,
        ExportTable::Objects => &OBJECTS,
        ExportTable::Timeline => &TIMELINE,
    };
    RUN.iter().chain(own).map(|&(name, kind)| Column { name, kind }).collect()
}

fn open<'a>(
    format: ExportFormat,
    table: ExportTable,
    sink: &'a mut Sink<'_>,
) -> Result<Box<dyn Rows + 'a>, Stop> {
    let columns = columns(table);
    Ok(match format {
        ExportFormat::Parquet => Box::new(Parquet::new(sink, &columns)?),
        _ => Box::new(Csv::new(sink, &columns)?),
    })
}

/// What the columns of [`RUN`] say.
struct Run {
    exe: String,
    pid: u64,
    start_unix_ns: u64,
}

impl Run {
    fn new(program: &Program) -> Self {
        Self { exe: program.exe.clone(), pid: program.pid.into(), start_unix_ns: program.start_unix_ns }
    }

    fn row(&self, rows: &mut dyn Rows, own: &[Value<'_>]) -> Result<(), Stop> {
        let run = [Value::Text(&self.exe), Value::Number(self.pid), Value::Number(self.start_unix_ns)];
        rows.row(&[&run, own].concat())
    }
}

fn sites(report: &Report, run: &Run, options: &ExportOptions, rows: &mut dyn Rows) -> Result<(), Stop> {
    let mut stacks = Stacks::with_files(report, &options.symbols);
    for site in &report.sites {
        let stack = stack_line(&stacks.functions(site));
        let shown = stacks.telling(site);
        let text = |of: fn(&Function) -> &str| Value::Text(shown.map_or("", of));
        let names = [
            Value::Number(site.id.into()),
            text(|function| &function.name),
            text(|function| &function.file),
            Value::Number(shown.map_or(0, |function| function.line.into())),
            text(|function| &function.module),
            Value::Text(&stack),
        ];
        run.row(rows, &[&names[..], &quantities(site)].concat())?;
    }
    stacks.notes().iter().for_each(|note| say(note));
    Ok(())
}

fn quantities(site: &Site) -> [Value<'static>; 19] {
    let (accesses, lifetime) = (&site.accesses_per_object, &site.lifetime_ns);
    [
        Value::Number(site.allocs),
        Value::Number(site.frees),
        Value::Number(site.bytes),
        Value::Number(site.live_bytes),
        Value::Number(site.peak_live_bytes),
        Value::Number(site.reads),
        Value::Number(site.writes),
        Value::Number(site.read_bytes),
        Value::Number(site.write_bytes),
        Value::Number(site.max_threads.into()),
        Value::Fraction(accesses.mean),
        Value::Number(accesses.p50),
        Value::Number(accesses.p99),
        Value::Number(accesses.max),
        Value::Number(lifetime.count),
        Value::Fraction(lifetime.mean),
        Value::Number(lifetime.p50),
        Value::Number(lifetime.p99),
        Value::Number(lifetime.max),
    ]
}

fn objects(path: &Path, run: &Run, rows: &mut dyn Rows) -> Result<(), Stop> {
    let mut result = Ok(());
    input::read(path, Histograms::Drop, |object: Object| {
        if result.is_ok() {
            result = object_row(&object, run, rows);
        }
    })?;
    result
}

fn object_row(object: &Object, run: &Run, rows: &mut dyn Rows) -> Result<(), Stop> {
    let heat = heat(&object.heat);
    let own = [
        Value::Number(object.addr),
        Value::Number(object.size),
        Value::Number(object.class.into()),
        Value::Number(object.site.into()),
        Value::Number(object.alloc_ns),
        Value::Optional(object.free_ns),
        Value::Number(object.reads),
        Value::Number(object.writes),
        Value::Number(object.read_bytes),
        Value::Number(object.write_bytes),
        Value::Number(object.threads.into()),
        Value::Optional(object.first_access_ns),
        Value::Optional(object.last_access_ns),
        Value::Text(&object.label),
        Value::Number(object.heat.granule),
        Value::Number(heat.accessed),
        Value::Optional(heat.hottest.map(|(offset, _)| offset)),
        Value::Number(heat.hottest.map_or(0, |(_, accesses)| accesses)),
    ];
    run.row(rows, &own)
}

/// What the arrays of an object's heat come to.
struct Summary {
    /// Granules that were accessed.
    accessed: u64,
    /// Offset of the first of the hottest ones, and its accesses.
    hottest: Option<(u64, u64)>,
}

fn heat(heat: &Heat) -> Summary {
    let mut summary = Summary { accessed: 0, hottest: None };
    let count = |counts: &[u64], index: usize| counts.get(index).copied().unwrap_or(0);
    for index in 0..heat.reads.len().max(heat.writes.len()) {
        let accesses = count(&heat.reads, index).saturating_add(count(&heat.writes, index));
        summary.accessed += u64::from(accesses > 0);
        if accesses > summary.hottest.map_or(0, |(_, most)| most) {
            summary.hottest = Some((heat.granule.saturating_mul(index as u64), accesses));
        }
    }
    summary
}

fn timeline(report: &Report, run: &Run, rows: &mut dyn Rows) -> Result<(), Stop> {
    let timeline = &report.timeline;
    for site in &timeline.sites {
        for (index, &t) in timeline.t_ns.iter().enumerate() {
            let count = |counts: &[u64]| Value::Number(counts.get(index).copied().unwrap_or(0));
            let own = [
                Value::Number(site.site.into()),
                Value::Number(t),
                Value::Number(timeline.interval_ns),
                count(&site.reads),
                count(&site.writes),
            ];
            run.row(rows, &own)?;
        }
    }
    Ok(())
}
