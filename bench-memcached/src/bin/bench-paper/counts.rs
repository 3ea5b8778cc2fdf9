//! Accesses for each request, exactly: the difference of two loads that are alike but for their length, so that starting,
//! connecting and ending cancel out.

use crate::measure::Bench;
use crate::results::Line;
use std::path::PathBuf;

/// Connections: as many as a round of the paper's ratio has requests.
const CLIENTS: u32 = 11;
/// Requests of each connection: whole rounds.
const LENGTHS: [u64; 2] = [11, 55];

/// Accesses for each request in a scope.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// The scope's name.
    pub scope: &'static str,
    /// Reads and writes, by the program and by the kernel for it.
    pub accesses: f64,
}

/// Counts in each scope, by the first of its lines that can: all modes count the same.
pub fn measure(bench: &Bench, lines: &[(Line, Option<PathBuf>)]) -> Result<Vec<Count>, String> {
    let mut counts: Vec<Count> = Vec::new();
    for (line, binary) in lines {
        let (Some(scope), Some(binary), "plain") = (line.scope, binary, line.row.build) else { continue };
        if counts.iter().any(|count| count.scope == scope.name) {
            continue;
        }
        let total = |requests: u64| {
            let run = bench.with_load(requests, CLIENTS).run(binary, &line.row, line.scope)?;
            let counted = run.counted.ok_or("no report")?;
            Ok::<_, String>((run.outcome.requests as f64, counted.accesses as f64))
        };
        let (short, long) = (total(LENGTHS[0])?, total(LENGTHS[1])?);
        counts.push(Count { scope: scope.name, accesses: (long.1 - short.1) / (long.0 - short.0) });
    }
    Ok(counts)
}
