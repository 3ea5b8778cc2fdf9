//! `results/paper.md`, which is also what is printed.

use crate::measure::{Bench, Run};
use crate::results::{Line, Results};
use std::fmt::Write;

/// The whole page.
pub fn page(results: &Results, bench: &Bench) -> String {
    let load = &bench.load;
    let mut text = format!(
        "memcached with {}, {} x {} connections, SET:GET {}, {} bytes, keys {} of {}; load: {}. \
         Times are of the server, user and system together, for one request; medians, and the least and most of {} \
         interleaved runs; relative to native. Paper: Wang et al. 2024 (writes to slab pages).\n",
        bench.arguments.join(" "),
        load.threads,
        load.clients,
        load.ratio,
        load.data_size,
        load.key_pattern,
        load.key_maximum,
        bench.client.description(),
        results.lines.iter().map(|line| line.runs.len()).max().unwrap_or(0),
    );
    for (at, scope) in results.scopes.iter().enumerate() {
        let _ = write!(text, "\n### {}\n\n", scope.name);
        if let Some(count) = results.counts.iter().find(|count| count.scope == scope.name) {
            let _ = write!(text, "{:.2} accesses a request.\n\n", count.accesses);
        }
        text.push_str(
            "| row | paper | time / native | least - most | elapsed / native | us a request | peak MiB |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|\n");
        for line in results.lines.iter().filter(|l| l.scope.is_none_or(|s| s.name == scope.name)) {
            let paper =
                line.row.paper.filter(|_| at == 0).map_or("-".into(), |ratio| paper_words(line, ratio));
            let _ = writeln!(text, "| {} | {paper} | {} |", line.row.name, cells(results, line));
        }
    }
    text
}

/// The paper gives a bound for its control.
pub fn paper_words(line: &Line, ratio: f64) -> String {
    if line.row.wrpkru { format!("< {ratio}") } else { ratio.to_string() }
}

fn cells(results: &Results, line: &Line) -> String {
    let (Some(cpu), Some(wall)) = (results.ratio(line, Run::cpu_us), results.ratio(line, Run::wall_us))
    else {
        let reason = line.skipped.as_deref().unwrap_or("not measured");
        return format!("skipped: {} | | | |", reason.replace('|', "/"));
    };
    format!(
        "{:.2} | {:.2} - {:.2} | {:.2} | {:.1} | {:.1}",
        cpu.median,
        cpu.min,
        cpu.max,
        wall.median,
        line.middle(Run::cpu_us),
        line.middle(|run| run.outcome.peak_kib as f64) / 1024.0,
    )
}
