//! The comparison as one JSON object: `format` "thermalloc-diff", `version` 1. docs/export.md says what its keys mean.

use super::compare::{Change, Comparison, Kind, Run, Side};
use serde_json::{Value, json};

/// At most `n` sites of each kind.
pub fn json(comparison: &Comparison, n: usize) -> String {
    let counts: serde_json::Map<String, Value> =
        Kind::ALL.into_iter().map(|kind| (kind.word().into(), comparison.of(kind).count().into())).collect();
    let sites: Vec<Value> =
        Kind::ALL.into_iter().flat_map(|kind| comparison.of(kind).take(n)).map(site).collect();
    let whole = json!({
        "format": "thermalloc-diff",
        "version": 1,
        "by": comparison.measure(),
        "relative": comparison.relative,
        "threshold_percent": comparison.threshold_percent,
        "old": run(&comparison.old),
        "new": run(&comparison.new),
        "notes": comparison.notes,
        "counts": counts,
        "sites_omitted": comparison.changes.len() - sites.len(),
        "sites": sites,
    });
    whole.to_string() + "\n"
}

fn run(run: &Run) -> Value {
    json!({"path": run.path, "command": run.command, "elapsed_ns": run.elapsed_ns, "totals": run.totals, "sum": run.sum})
}

fn site(change: &Change) -> Value {
    let shown = change.shown.as_ref();
    json!({
        "kind": change.kind.word(),
        "function": shown.map(|function| &function.name),
        "file": shown.map(|function| &function.file),
        "line": shown.map(|function| function.line),
        "module": shown.map(|function| &function.module),
        "stack": change.stack.steps,
        "old": change.old.as_ref().map(side),
        "new": change.new.as_ref().map(side),
        "difference": change.difference(),
    })
}

fn side(side: &Side) -> Value {
    let sum = &side.sum;
    json!({
        "value": side.value,
        "sites": side.ids,
        "allocs": sum.allocs,
        "frees": sum.frees,
        "bytes": sum.bytes,
        "live_bytes": sum.live_bytes,
        "peak_live_bytes": sum.peak_live_bytes,
        "reads": sum.reads,
        "writes": sum.writes,
        "read_bytes": sum.read_bytes,
        "write_bytes": sum.write_bytes,
    })
}
