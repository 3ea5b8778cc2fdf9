//! The task `items`: is each item's heat right? The same requests, one after the other, are made of memcached with one
//! worker in each way of seeing accesses; then reads and writes by key must agree, and for the same code their bytes too: how
//! wide an access is, the code generator decides. And GETs of a key must rank keys as the heat of their items does.

use crate::builds::{Builds, Missing};
use crate::labels::{self, ByLabel, Heat};
use crate::rows::{FLAGS, SCOPES};
use crate::scatter::Scatter;
use crate::variants::{VARIANTS, Variant};
use bench_memcached::server::Server;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use thermalloc_bench::monitor::{self, Monitor};
use thermalloc_bench::places::Places;
use thermalloc_bench::service::Launch;
use thermalloc_bench::statistics::rank_correlation;
use thermalloc_bench::{machine, results};

/// Nothing but the requests may move items: no background threads that look at the clock. And chunks of 128 bytes: where
/// items share a granule of 16, its heat cannot be told apart.
const ARGUMENTS: [&str; 7] =
    ["-t", "1", "-m", "64", "-n", "80", "-ono_lru_maintainer,no_lru_crawler,no_slab_reassign"];
/// What the rank correlation must exceed.
const LEAST_CORRELATION: f64 = 0.99;

/// Requests, after each key has been stored once.
struct Sequence {
    ratio: &'static str,
    keys: u64,
    requests: u64,
    /// Requests on their way at a time.
    pipeline: u32,
}

impl Sequence {
    /// What all variants are asked, so that they can be compared.
    fn comparing(smoke: bool) -> Self {
        let (keys, requests) = if smoke { (50, 1100) } else { (200, 5500) };
        Self { ratio: "1:10", keys, requests, pipeline: 1 }
    }

    /// What one variant is asked, to find the hottest keys: GETs alone, so many that few keys get the same number.
    fn ranking(smoke: bool) -> Self {
        let (keys, requests) = if smoke { (40, 4000) } else { (200, 40_000) };
        Self { ratio: "0:1", keys, requests, pipeline: 32 }
    }
}

/// A variant's outcome.
struct Seen {
    variant: Variant,
    /// Heat by key, or why there is none.
    heat: Result<ByLabel, String>,
}

/// GETs and SETs that were made of a key.
struct Asked {
    key: String,
    sets: u64,
    gets: u64,
}

/// Runs all variants and compares.
pub fn run(smoke: bool, places: &Places) -> Result<(), String> {
    let sequence = Sequence::comparing(smoke);
    let mut builds = Builds::new(places);
    let (mut seen, mut ranked) = (Vec::new(), None);
    for variant in VARIANTS {
        let failed = |words| format!("{}: {words}", variant.name);
        let heat = match able(&variant, places, &mut builds)? {
            Err(reason) => Err(reason),
            Ok(binary) => {
                if ranked.is_none() {
                    ranked =
                        Some(observe(&variant, &binary, &Sequence::ranking(smoke), places).map_err(failed)?);
                }
                Ok(observe(&variant, &binary, &sequence, places).map_err(failed)?.0)
            }
        };
        eprintln!("{}: {}", variant.name, heat.as_ref().map_or("skipped", |_| "done"));
        seen.push(Seen { variant, heat });
    }
    let (heat, asked) = ranked.ok_or("no variant can run here")?;
    let points = points(&heat, &asked)?;
    let verdicts: Vec<Verdict> = seen.iter().map(|one| verdict(one, &seen)).collect();
    publish(&verdicts, &points, smoke, &places.results)
}

/// The binary; the inner error says why this machine cannot run the variant.
fn able(
    variant: &Variant,
    places: &Places,
    builds: &mut Builds,
) -> Result<Result<std::path::PathBuf, String>, String> {
    if let Err(reason) = monitor::able(&places.library, variant.mode) {
        return Ok(Err(reason));
    }
    match builds.get(variant.build) {
        Ok(binary) => Ok(Ok(binary)),
        Err(Missing::Compiler(reason)) => Ok(Err(reason)),
        Err(Missing::Failure(words)) => Err(words),
    }
}

fn observe(
    variant: &Variant,
    binary: &Path,
    sequence: &Sequence,
    places: &Places,
) -> Result<(ByLabel, Vec<Asked>), String> {
    let directory = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let [_, scope, _] = SCOPES;
    let monitor = Monitor {
        view: variant.view,
        scope: Some(scope),
        ..Monitor::new(&places.library, variant.mode, directory.path())
    };
    let (here, there) = machine::split(machine::cores());
    let launch = Launch { binary, arguments: &ARGUMENTS, processors: &here, monitor: Some(&monitor) };
    let server = Server::start(&launch, directory.path())?;
    let asked = ask(server.port, sequence, &there, &places.programs, directory.path())?;
    server.stop()?;
    let heat = labels::sum(&monitor.report()?)?;
    if heat.is_empty() {
        return Err(
            "no object in the report has a label: the runtime has not seen memcached name its items".into()
        );
    }
    Ok((heat, asked))
}

/// Stores all keys, then makes the requests, on one connection and one at a time. What was asked of each key comes back.
fn ask(
    port: u16,
    sequence: &Sequence,
    processors: &str,
    programs: &Path,
    directory: &Path,
) -> Result<Vec<Asked>, String> {
    let json = directory.join("load.json");
    let mut command = Command::new("taskset");
    command.args(["-c", processors]).arg(programs.join("bench-memcached"));
    command.args(["--threads=1", "--clients=1", "--data-size=32", "--key-pattern=Z:Z", "--populate"]);
    command.args(["--timeout=600", "--hide-histogram"]);
    command
        .arg(format!("--port={port}"))
        .arg(format!("--ratio={}", sequence.ratio))
        .arg(format!("--pipeline={}", sequence.pipeline))
        .arg(format!("--requests={}", sequence.requests));
    command
        .arg(format!("--key-maximum={}", sequence.keys - 1))
        .arg(format!("--json-out-file={}", json.display()));
    let output = command.output().map_err(|e| format!("cannot start taskset: {e}"))?;
    if !output.status.success() {
        return Err(format!("the load failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let text = fs::read(&json).map_err(|e| format!("the load's results: {e}"))?;
    let results: Value = serde_json::from_slice(&text).map_err(|e| format!("the load's results: {e}"))?;
    let key = |entry: &Value| {
        Some(Asked {
            key: entry["key"].as_str()?.into(),
            sets: entry["sets"].as_u64()?,
            gets: entry["gets"].as_u64()?,
        })
    };
    let keys: Option<Vec<Asked>> = results["keys"].as_array().and_then(|keys| keys.iter().map(key).collect());
    keys.ok_or_else(|| "the load's results are not understood".to_owned())
}

/// GETs and heat of each key.
fn points(heat: &ByLabel, asked: &[Asked]) -> Result<Vec<(f64, f64)>, String> {
    asked
        .iter()
        .map(|one| {
            let heat = heat.get(&one.key).ok_or_else(|| format!("no item has the label {}", one.key))?;
            // The populating SET comes before those that are counted.
            if heat.objects != one.sets + 1 {
                return Err(format!("{}: {} items for {} SETs", one.key, heat.objects, one.sets + 1));
            }
            Ok((one.gets as f64, heat.accesses() as f64))
        })
        .collect()
}

/// How a variant compares with the first one and with single step on its own code.
struct Verdict {
    name: &'static str,
    words: String,
    wrong: bool,
    document: Value,
}

fn verdict(one: &Seen, all: &[Seen]) -> Verdict {
    let name = one.variant.name;
    let heat = match &one.heat {
        Ok(heat) => heat,
        Err(reason) => {
            let document = json!({"name": name, "skipped": reason});
            return Verdict {
                name,
                words: format!("skipped: {}", reason.replace('|', "/")),
                wrong: false,
                document,
            };
        }
    };
    let others: Vec<&Seen> = all
        .iter()
        .filter(|other| other.variant.name == VARIANTS[0].name || other.variant.build == one.variant.build)
        .filter(|other| other.variant.name != name && other.heat.is_ok())
        .collect();
    let mut document = json!({
        "name": name, "build": one.variant.build, "mode": one.variant.mode, "items": heat.len(),
        "reads": heat.values().map(|h| h.reads).sum::<u64>(),
        "writes": heat.values().map(|h| h.writes).sum::<u64>(),
    });
    let (mut words, mut wrong) = (Vec::new(), false);
    for other in others {
        let Ok(theirs) = &other.heat else { continue };
        let same_code = other.variant.build == one.variant.build;
        let differing = if same_code {
            labels::differing(heat, theirs, |heat| *heat)
        } else {
            labels::differing(heat, theirs, Heat::counts)
        };
        document["differing_from"][other.variant.name] = json!(differing);
        wrong |= !differing.is_empty();
        words.push(match differing.len() {
            0 => format!("all as {}", other.variant.name),
            n => {
                let (label, first) =
                    (differing[0], |side: &ByLabel| side.get(differing[0]).copied().unwrap_or_default());
                format!(
                    "{n} differ from {}, as {label}: {} instead of {}",
                    other.variant.name,
                    first(heat),
                    first(theirs)
                )
            }
        });
    }
    let counts = format!("{} labels, {} reads, {} writes", heat.len(), document["reads"], document["writes"]);
    Verdict { name, words: format!("{counts} | {}", words.join("; ")), wrong, document }
}

fn publish(verdicts: &[Verdict], points: &[(f64, f64)], smoke: bool, directory: &Path) -> Result<(), String> {
    let (compared, ranked) = (Sequence::comparing(smoke), Sequence::ranking(smoke));
    let correlation = rank_correlation(points);
    let mut page = format!(
        "memcached with one worker and one connection, Zipf. {} keys, {} GETs: the rank correlation (Spearman) of a \
         key's GETs and its item's accesses is {correlation:.4}. {} keys, {} requests, SET:GET {}: reads and writes, item \
         by item, and for the same code bytes too:\n\n| variant | seen | item by item |\n|---|---|---|\n",
        ranked.keys, ranked.requests, compared.keys, compared.requests, compared.ratio
    );
    for verdict in verdicts {
        let _ = writeln!(page, "| {} | {} |", verdict.name, verdict.words);
    }
    let rows: Vec<Value> = verdicts.iter().map(|verdict| verdict.document.clone()).collect();
    let settings = json!({
        "server": ARGUMENTS.join(" "),
        "compared": {"keys": compared.keys, "requests": compared.requests, "ratio": compared.ratio},
        "ranked": {"keys": ranked.keys, "requests": ranked.requests, "ratio": ranked.ratio},
    });
    let mut document = results::document("items", FLAGS, &results::command("bench-paper"), settings, rows);
    document["rank_correlation"] = correlation.into();
    let point = |(gets, accesses): &(f64, f64)| json!({"gets": gets, "accesses": accesses});
    document["points"] = points.iter().map(point).collect();
    let shown: Vec<(f64, f64)> = points.iter().copied().filter(|(gets, _)| *gets > 0.0).collect();
    let title = format!("{} keys of memcached, rank correlation {correlation:.4}", points.len());
    let plot = Scatter { title: &title, x: "GETs of the key", y: "accesses to its items", points: &shown };
    results::publish(directory, "items", &document, &page, &plot.draw()?)?;
    if let Some(wrong) = verdicts.iter().find(|verdict| verdict.wrong) {
        return Err(format!("{}: {}", wrong.name, wrong.words));
    }
    if correlation > LEAST_CORRELATION {
        Ok(())
    } else {
        Err(format!("the rank correlation is {correlation:.4}, not above {LEAST_CORRELATION}"))
    }
}
