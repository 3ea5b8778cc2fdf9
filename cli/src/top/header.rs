//! What stands above the table: the program, how it was watched, the totals, and what the numbers do not say.

use crate::options::{By, TopOptions};
use crate::symbols::printable;
use crate::table::{shorten, wrap};
use crate::units::{bytes_with_unit, count, duration};
use thermalloc_format::{End, Report};

/// Lines of at most `width` characters.
pub fn header(report: &Report, options: &TopOptions, width: usize, notes: &[String]) -> String {
    let mut text = shorten(&format!("program  {}", program(report)), width) + "\n";
    text += &wrap("ended    ", &ended(report), width);
    text += &wrap("monitor  ", &monitor(report), width);
    text += &wrap("heap     ", &heap(report), width);
    text += &wrap("accesses ", &accesses(report), width);
    for warning in warnings(report, options).iter().chain(notes) {
        text += &wrap("warning  ", warning, width);
    }
    text
}

fn program(report: &Report) -> String {
    let program = &report.program;
    let line = if program.cmdline.is_empty() { program.exe.clone() } else { program.cmdline.join(" ") };
    format!("[{}] {}", program.pid, printable(&line))
}

fn ended(report: &Report) -> String {
    let program = &report.program;
    let after = duration(program.elapsed_ns);
    match program.end {
        End::Exit => format!("with status {} after {after}", program.status),
        End::Signal => format!("by signal {} after {after}", program.status),
        End::Exec => format!("by executing another program after {after}"),
        End::Interval => format!("not yet: this is a periodic report, made after {after}"),
        End::Unknown => format!("in an unknown way after {after}"),
    }
}

fn monitor(report: &Report) -> String {
    let config = &report.config;
    let access = match config.access.as_str() {
        "w" => "writes only",
        _ => "reads and writes",
    };
    let watch = if config.watch.is_empty() { "all objects" } else { &config.watch };
    printable(&format!(
        "mode {}, {access}, view {}, watching {watch}, granule {} B, depth {}",
        config.mode, config.view, config.granule, config.depth
    ))
}

fn heap(report: &Report) -> String {
    let totals = &report.totals;
    format!(
        "{} allocations of {}; {} live at the end, {} at the peak",
        count(totals.allocs),
        bytes_with_unit(totals.bytes),
        bytes_with_unit(totals.live_bytes),
        bytes_with_unit(totals.peak_live_bytes)
    )
}

fn accesses(report: &Report) -> String {
    let totals = &report.totals;
    format!(
        "{} reads of {}, {} writes of {}; by the kernel {} reads, {} writes",
        count(totals.reads),
        bytes_with_unit(totals.read_bytes),
        count(totals.writes),
        bytes_with_unit(totals.write_bytes),
        count(totals.kernel_reads),
        count(totals.kernel_writes)
    )
}

fn warnings(report: &Report, options: &TopOptions) -> Vec<String> {
    let mut warnings: Vec<String> = report.warnings.iter().map(|warning| printable(warning)).collect();
    let config = &report.config;
    if config.watch.contains("sample=") {
        warnings.push(format!("only a sample of the objects was watched ({})", printable(&config.watch)));
    } else if !config.watch.is_empty() {
        warnings.push(format!("only some objects were watched ({})", printable(&config.watch)));
    }
    if config.access == "w" {
        warnings.push("reads were not watched".into());
    }
    if config.mode == "pp" && report.sites.iter().any(|site| site.max_threads > 1) {
        warnings.push("mode pp misses what other threads access while one of them is stepped".into());
    }
    if report.totals.unattributed > 0 {
        let accesses = count(report.totals.unattributed);
        warnings.push(format!(
            "{accesses} accesses hit no live object (use after free, or beyond an object's end)"
        ));
    }
    if options.by == By::Object && report.objects_omitted > 0 {
        let omitted = count(report.objects_omitted);
        warnings.push(format!("{omitted} objects are counted in sites and classes, not listed one by one"));
    }
    warnings
}
