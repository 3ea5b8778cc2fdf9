//! `results/modes.md`, which is also what is printed.

use crate::columns::{Column, NATIVE};
use crate::counted::Counted;
use crate::lines::{Line, Lines, Mean};
use crate::measured::{Measured, Steady};
use crate::run::{Bench, Run};
use std::fmt::Write;
use thermalloc_bench::bars::number;
use thermalloc_bench::statistics::{geometric_mean, median};

/// Reasons that cells refer to.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    /// The number of a reason; equal ones share it.
    fn refer(&mut self, reason: &str) -> usize {
        let known = self.0.iter().position(|note| note == reason);
        known.unwrap_or_else(|| {
            self.0.push(reason.to_owned());
            self.0.len() - 1
        }) + 1
    }
}

/// A table: which lines, and what of them.
struct Matrix {
    servers: bool,
    wall: bool,
    title: &'static str,
    remark: &'static str,
    unit: &'static str,
}

/// All of them, in the order of the page.
const MATRICES: [Matrix; 3] = [
    Matrix {
        servers: false,
        wall: false,
        title: "Programs: user and system time",
        remark: "Start-up included, and in monitoring modes the writing of the report too.",
        unit: "native, s",
    },
    Matrix {
        servers: false,
        wall: true,
        title: "Programs: elapsed time",
        remark: "Start-up and report likewise.",
        unit: "native, s",
    },
    Matrix {
        servers: true,
        wall: false,
        title: "Servers: user and system time of the server for one request",
        remark: "Start-up and the writing of the report excluded.",
        unit: "native, us",
    },
];

/// The whole page.
pub fn page(measured: &Measured, bench: &Bench) -> String {
    let (lines, runs) = (&measured.lines, measured.runs);
    let mut notes = Notes::default();
    let mut text = format!(
        "Programs as distributed, every read and write of the heap counted. Relative to native: medians of {runs} \
         interleaved runs (least - most); emulate and valgrind ran once. Scale {}. What takes longer than {:.0} s is \
         stopped, and takes at least as long as is said.\n",
        bench.scale,
        bench.limit.as_secs_f64(),
    );
    for matrix in &MATRICES {
        if !lines.programs(matrix.servers).is_empty() {
            matrix.write(&mut text, lines, &mut notes);
        }
    }
    steady(&mut text, measured);
    counts(&mut text, lines);
    if !notes.0.is_empty() {
        text.push_str("\n### Notes\n\n");
        for (at, note) in notes.0.iter().enumerate() {
            let _ = writeln!(text, "{}. {note}", at + 1);
        }
    }
    text
}

impl Matrix {
    fn quantity(&self, run: &Run) -> f64 {
        if self.wall { run.wall_s } else { run.cpu_s }
    }

    /// Programs down, columns across.
    fn write(&self, text: &mut String, lines: &Lines, notes: &mut Notes) {
        let mut columns = lines.columns();
        columns.retain(|column| column.name != NATIVE && (column.servers || !self.servers));
        let titles: String = columns.iter().map(|column| format!(" {} |", column.title)).collect();
        let _ =
            writeln!(text, "\n### {}\n\n{}\n\n| program | {} |{titles}", self.title, self.remark, self.unit);
        let _ = writeln!(text, "|---|---|{}", "---|".repeat(columns.len()));
        for native in lines.programs(self.servers) {
            let base = match native.measured() {
                true => format!("{:.3}", native.middle(|run| self.quantity(run))),
                false => self.cell(lines, native, notes),
            };
            let _ = write!(text, "| {} | {base} |", native.program);
            for column in &columns {
                let line = lines.line(native.program, column.name);
                let _ = write!(text, " {} |", line.map_or("-".into(), |line| self.cell(lines, line, notes)));
            }
            text.push('\n');
        }
        if !self.servers {
            self.write_means(text, "geometric mean", &lines.means(true), &columns);
            let heapless = lines.heapless();
            if !heapless.is_empty() {
                let title = format!("without {} (allocates nothing)", heapless.join(", "));
                self.write_means(text, &title, &lines.means(false), &columns);
            }
        }
    }

    fn write_means(&self, text: &mut String, title: &str, means: &[Mean], columns: &[Column]) {
        let _ = write!(text, "| {title} | |");
        for column in columns {
            let mean = means.iter().find(|mean| mean.column.name == column.name);
            let _ = write!(text, " {} |", mean.map_or("-".into(), |mean| self.mean(mean)));
        }
        text.push('\n');
    }

    fn cell(&self, lines: &Lines, line: &Line, notes: &mut Notes) -> String {
        if let Some(reason) = &line.failed {
            return format!(
                "**FAILED** ({})",
                notes.refer(&format!("{} {}: {reason}", line.program, line.column.title))
            );
        }
        let Some(ratio) = lines.ratio(line, |run| self.quantity(run)) else {
            return format!("skipped ({})", notes.refer(line.skipped.as_deref().unwrap_or("not measured")));
        };
        match (line.stopped(), line.runs.len()) {
            (true, _) => format!("> {}, stopped", number(ratio.median)),
            (false, 1) => number(ratio.median),
            _ => format!("{} ({} - {})", number(ratio.median), number(ratio.min), number(ratio.max)),
        }
    }

    fn mean(&self, mean: &Mean) -> String {
        let bound = if mean.at_least { "> " } else { "" };
        let of = match mean.without.len() {
            0 => String::new(),
            missing => format!(" (of {} of {})", mean.of.len(), mean.of.len() + missing),
        };
        format!("**{bound}{}**{of}", number(if self.wall { mean.wall } else { mean.cpu }))
    }
}

/// What is left without start and end.
fn steady(text: &mut String, measured: &Measured) {
    let all = measured.steady();
    if all.is_empty() {
        return;
    }
    text.push_str(
        "\n### Steady state\n\nUser and system time for twice the input less that for the input once, relative to the same of \
         native. What is left happens once: start, patching, report.\n\n| program | column | more, s | ratio | once, ms | once, us \
         a patched site |\n|---|---|---|---|---|---|\n",
    );
    for one in &all {
        let line = measured.lines.line(one.program, one.column);
        let sites = line.map_or(0, |line| line.counts(|c| c.patched_sites).into_iter().max().unwrap_or(0));
        let each = if sites > 0 { format!("{:.0}", one.once_s * 1e6 / sites as f64) } else { "-".into() };
        let (ratio, once_ms) = (number(one.ratio), one.once_s * 1e3);
        let Steady { program, column, more_s, .. } = one;
        let _ = writeln!(text, "| {program} | {column} | {more_s:.3} | {ratio} | {once_ms:.0} | {each} |");
    }
    let mean = geometric_mean(&all.iter().map(|one| one.ratio).collect::<Vec<f64>>());
    let _ = writeln!(text, "| geometric mean | | | **{}** | | |", number(mean));
}

/// What the monitor counted in each column with a report, medians of the runs.
fn counts(text: &mut String, lines: &Lines) {
    let counted = |line: &&Line| line.measured() && line.runs.iter().any(|run| run.counted.is_some());
    let told: Vec<&Line> = lines.0.iter().filter(counted).collect();
    if told.is_empty() {
        return;
    }
    text.push_str(
        "\n### What was counted\n\nOf the whole process; unpatched: sites that could not be patched, and the faults there.\n\n\
         | program | column | accesses | faults | steps | emulated | patched sites | system calls | unpatched sites | faults \
         there | peak MiB |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for line in told {
        let middle = |count: fn(&Counted) -> u64| {
            median(&line.counts(count).iter().map(|&count| count as f64).collect::<Vec<f64>>())
        };
        let numbers = [
            middle(|c| c.accesses),
            middle(|c| c.faults),
            middle(|c| c.steps),
            middle(|c| c.emulated),
            middle(|c| c.patched_sites),
            middle(|c| c.syscalls),
            middle(|c| c.unpatched_sites),
            middle(|c| c.unpatched_faults),
        ];
        let cells: String = numbers.iter().map(|number| format!(" {number:.0} |")).collect();
        let peak = line.middle(|run| run.peak_kib as f64) / 1024.0;
        let _ = writeln!(text, "| {} | {} |{cells} {peak:.1} |", line.program, line.column.title);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::lines;
    use std::time::Duration;
    use thermalloc_bench::places::Places;

    #[test]
    fn bounds_failures_and_reasons_are_plain_to_see() {
        let places = Places { programs: "".into(), library: "".into(), results: "".into() };
        let processors = ("0".into(), "1".into());
        let limit = Duration::from_secs(120);
        let bench = Bench { places, work: "".into(), scale: 1.0, limit, seconds: 1.0, processors };
        let measured = Measured { lines: lines(), twice: Lines(Vec::new()), runs: 3, floor_kib: 0 };
        let page = page(&measured, &bench);
        for words in [
            "| program | native, s | off | patch | patch --budget 5 |",
            "| a | 2.000 | 1.50 (1.00 - 2.00) | 4.00 (4.00 - 4.00) | - |",
            "| b | 1.000 | **FAILED** (1) | > 9.00, stopped | skipped (2) |",
            "| geometric mean | | **1.50** (of 1 of 2) | **> 6.00** | - |",
            "1. b off: differs",
            "2. no budget",
        ] {
            assert!(page.contains(words), "no '{words}' in {page}");
        }
        assert!(!page.contains("Servers"));
    }
}
