//! What was measured, and `results/paper.json`.

use crate::counts::Count;
use crate::measure::{Bench, Run};
use crate::rows::{FLAGS, NATIVE, Row};
use serde_json::{Value, json};
use std::collections::HashMap;
use thermalloc_bench::monitor::Scope;
use thermalloc_bench::results;
use thermalloc_bench::statistics::{Spread, median};

/// A row in a scope, with its runs or the reason why there are none.
pub struct Line {
    /// The row.
    pub row: Row,
    /// The scope; `None`: it holds for all of them.
    pub scope: Option<Scope>,
    /// Why it was not measured.
    pub skipped: Option<String>,
    /// The runs.
    pub runs: Vec<Run>,
}

impl Line {
    /// A quantity of each run.
    pub fn values(&self, quantity: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs.iter().map(quantity).collect()
    }

    /// The median of a quantity.
    pub fn middle(&self, quantity: impl Fn(&Run) -> f64) -> f64 {
        median(&self.values(quantity))
    }

    /// Whether it was measured.
    pub fn measured(&self) -> bool {
        !self.runs.is_empty()
    }
}

/// All lines, and how they came about.
pub struct Results {
    /// The lines.
    pub lines: Vec<Line>,
    /// The names of the scopes that were measured.
    pub scopes: Vec<Scope>,
    /// Accesses for each request.
    pub counts: Vec<Count>,
}

impl Results {
    /// The line of a row in a scope.
    pub fn line(&self, name: &str, scope: &str) -> Option<&Line> {
        self.lines.iter().find(|l| l.row.name == name && l.scope.is_none_or(|s| s.name == scope))
    }

    /// A line's spread relative to native's median.
    pub fn ratio(&self, line: &Line, quantity: impl Fn(&Run) -> f64 + Copy) -> Option<Spread> {
        let native = self.lines.iter().find(|l| l.row.name == NATIVE && l.measured())?;
        line.measured().then(|| Spread::of(&line.values(quantity)).over(native.middle(quantity)))
    }

    /// `results/paper.json`.
    pub fn document(&self, bench: &Bench) -> Value {
        let load = &bench.load;
        let rows: Vec<Value> = self
            .scopes
            .iter()
            .flat_map(|scope| {
                self.lines
                    .iter()
                    .filter(|l| l.scope.is_none_or(|s| s.name == scope.name))
                    .map(|l| self.row(l, scope))
            })
            .collect();
        let settings = json!({
                "time": "runs_s and median_s: user + system time of the server, in seconds for 1,000,000 requests; \
                         wall_runs_s: elapsed time likewise; ratios are of medians",
                "load": bench.client.description(),
                "server": bench.arguments.join(" "),
                "server_processors": bench.processors.0,
                "load_processors": bench.processors.1,
                "threads": load.threads,
                "clients": load.clients,
                "requests": load.requests,
                "seconds_a_run": load.seconds,
                "ratio": load.ratio,
                "data_size": load.data_size,
                "key_pattern": load.key_pattern,
                "key_maximum": load.key_maximum,
                "accesses_per_request": self.counts.iter().map(|c| (c.scope, c.accesses)).collect::<HashMap<_, _>>(),
                "paper": "Wang et al., Computer Engineering & Science 46(1), 2024: PP 5.07, MPK 3.43, MPK-CI 2.1, \
                          WRPKRU below 1.04",
        });
        results::document("paper", FLAGS, &results::command("bench-paper"), settings, rows)
    }

    fn row(&self, line: &Line, scope: &Scope) -> Value {
        let mut row = json!({
            "name": line.row.name,
            "program": format!("memcached, build {}", line.row.build),
            "scope": scope.name,
            "mode": line.row.mode,
            "paper": line.row.paper,
            "runs_s": line.values(Run::cpu_us),
            "median_s": null,
            "ratio_to_native": null,
            "peak_kib": null,
        });
        if let Some(reason) = &line.skipped {
            row["skipped"] = reason.as_str().into();
        }
        if !line.measured() {
            return row;
        }
        let (cpu, wall) = (self.ratio(line, Run::cpu_us), self.ratio(line, Run::wall_us));
        row["median_s"] = line.middle(Run::cpu_us).into();
        row["ratio_to_native"] = cpu.map(|s| s.median).into();
        row["ratio_min"] = cpu.map(|s| s.min).into();
        row["ratio_max"] = cpu.map(|s| s.max).into();
        row["wall_runs_s"] = line.values(Run::wall_us).into();
        row["wall_ratio_to_native"] = wall.map(|s| s.median).into();
        row["peak_kib"] = line.middle(|run| run.outcome.peak_kib as f64).into();
        row["requests"] = line.values(|run| run.outcome.requests as f64).into();
        row["hits"] = line.values(|run| run.outcome.hits as f64).into();
        for (at, name) in ["p50", "p99", "p99.9"].iter().enumerate() {
            row["get_latency_us"][name] = line.middle(|run| run.outcome.latency_us[at]).into();
        }
        if line.row.mode.is_some() {
            let counted = |pick: fn(&crate::measure::Counted) -> u64| {
                line.runs.iter().filter_map(|run| run.counted.as_ref()).map(pick).collect::<Vec<u64>>()
            };
            row["faults"] = counted(|c| c.faults).into();
            row["steps"] = counted(|c| c.steps).into();
        }
        row
    }
}
