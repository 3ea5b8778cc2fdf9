//! The task `table`: every row in every scope, in turns.

use crate::builds::{Builds, Missing};
use crate::measure::Bench;
use crate::options::Table;
use crate::results::{Line, Results};
use crate::rows::{NATIVE, ROWS, Row, SCOPES, cells};
use crate::{chart, counts, table};
use bench_memcached::client::{Client, Load};
use std::collections::HashMap;
use std::path::PathBuf;
use thermalloc_bench::monitor::{self, Scope};
use thermalloc_bench::places::Places;
use thermalloc_bench::{machine, results as files};

/// What the paper does.
const REQUESTS: u64 = 10_000;

/// Makes all runs and writes the results.
pub fn run(options: &Table, places: &Places) -> Result<(), String> {
    let rows: Vec<Row> = chosen(&ROWS, &options.rows, |row| row.name)?;
    let scopes: Vec<Scope> = chosen(&SCOPES, &options.scopes, |scope| scope.name)?;
    let bench = bench(options, places)?;
    let mut builds = Builds::new(places);
    let mut lines = plan(&rows, &scopes, &bench, &mut builds)?;
    let runs = if options.smoke { 1 } else { options.runs };
    for number in 1..=runs {
        for (line, binary) in &mut lines {
            let Some(binary) = binary else { continue };
            let run =
                bench.run(binary, &line.row, line.scope).map_err(|e| format!("{}: {e}", title(line)))?;
            eprintln!(
                "run {number} of {runs}: {:<24}{:>12.2} us a request ({} requests in {:.1} s)",
                title(line),
                run.cpu_us(),
                run.outcome.requests,
                run.outcome.wall_s
            );
            line.runs.push(run);
        }
    }
    let counts = counts::measure(&bench, &lines)?;
    let results = Results { lines: lines.into_iter().map(|(line, _)| line).collect(), scopes, counts };
    let (document, page) = (results.document(&bench), table::page(&results, &bench));
    files::publish(&places.results, "paper", &document, &page, &chart::draw(&results)?)
}

/// Those of `all` whose names are among `names`, or all if there are none; native always comes along.
fn chosen<T: Copy>(all: &[T], names: &[String], name: impl Fn(&T) -> &'static str) -> Result<Vec<T>, String> {
    if let Some(unknown) = names.iter().find(|wanted| all.iter().all(|one| name(one) != wanted.as_str())) {
        let known: Vec<&str> = all.iter().map(&name).collect();
        return Err(format!("'{unknown}' is none of {}", known.join(", ")));
    }
    let wanted = |one: &&T| names.is_empty() || name(one) == NATIVE || names.iter().any(|n| n == name(one));
    Ok(all.iter().filter(wanted).copied().collect())
}

fn bench(options: &Table, places: &Places) -> Result<Bench, String> {
    let (threads, clients) = if options.smoke { (2, 5) } else { (16, 50) };
    let load = Load {
        threads,
        clients,
        requests: REQUESTS / options.scale,
        seconds: if options.smoke { 0.5 } else { options.seconds },
        ratio: "1:10".into(),
        data_size: 32,
        key_pattern: "R:R".into(),
        key_maximum: options.key_maximum,
        populate: false,
    };
    let arguments = ["-t", "4", "-c", "2048", "-m", "1024"];
    Ok(Bench {
        client: Client::new(options.load, places.programs.join("bench-memcached"))?,
        load,
        library: places.library.clone(),
        arguments: arguments.map(str::to_owned).into(),
        processors: machine::split(machine::cores()),
    })
}

/// All lines, each with its binary, or with the reason why it cannot be measured.
fn plan(
    rows: &[Row],
    scopes: &[Scope],
    bench: &Bench,
    builds: &mut Builds,
) -> Result<Vec<(Line, Option<PathBuf>)>, String> {
    let mut modes: HashMap<&str, Result<(), String>> = HashMap::new();
    let mut lines = Vec::new();
    for (row, scope) in cells(rows, scopes) {
        let able = match row.mode {
            _ if row.wrpkru => machine::wrpkru(),
            None => Ok(()),
            Some(mode) => modes.entry(mode).or_insert_with(|| monitor::able(&bench.library, mode)).clone(),
        };
        let binary = match able.map(|()| builds.get(row.build)) {
            Ok(Ok(binary)) => Ok(binary),
            Ok(Err(Missing::Compiler(words))) | Err(words) => Err(words),
            Ok(Err(Missing::Failure(words))) => return Err(words),
        };
        let mut line = Line { row, scope, skipped: None, runs: Vec::new() };
        if let Err(words) = &binary {
            eprintln!("skipped: {}: {words}", title(&line));
            line.skipped = Some(words.clone());
        }
        lines.push((line, binary.ok()));
    }
    Ok(lines)
}

fn title(line: &Line) -> String {
    line.scope.map_or(line.row.name.to_owned(), |scope| format!("{} {}", line.row.name, scope.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_comes_along_and_unknown_names_are_refused() {
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|&w| w.into()).collect();
            chosen(&ROWS, &wanted, |row| row.name).map(|rows| rows.iter().map(|r| r.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["pp"]).unwrap(), ["native", "pp"]);
        assert_eq!(names(&[]).unwrap().len(), ROWS.len());
        assert!(names(&["fast"]).unwrap_err().contains("'fast'"));
    }
}
