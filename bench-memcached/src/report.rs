//! The results as text and as JSON. Units: microseconds for latencies, bytes, seconds.

use crate::load::Summary;
use crate::options::Options;
use crate::tally::KindTally;
use serde_json::{Value, json};
use std::fmt::{self, Display, Formatter};

/// Keys listed in the JSON file.
const LISTED_KEYS: usize = 1000;
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// Text for the terminal.
pub struct Text<'a> {
    /// The results.
    pub summary: &'a Summary,
    /// Whether the latency distributions follow the summary.
    pub histogram: bool,
}

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Summary { tally, populated, elapsed, server } = self.summary;
        if *populated > 0 {
            writeln!(f, "populated {populated} keys")?;
        }
        write!(f, "{:<6}{:>12}{:>14}{:>12}{:>12}", "", "requests", "requests/s", "hits", "misses")?;
        writeln!(f, "{}", QUANTILES.map(|(name, _)| format!("{:>11}", format!("{name} us"))).concat())?;
        row(f, "SETs", &tally.sets, elapsed.as_secs_f64(), None)?;
        row(f, "GETs", &tally.gets, elapsed.as_secs_f64(), Some((tally.hits, tally.misses)))?;
        let (seconds, total) = (elapsed.as_secs_f64(), tally.sets.count + tally.gets.count);
        writeln!(f, "{total} requests in {seconds:.3} s: {:.0} requests/s", rate(total, seconds))?;
        writeln!(f, "{} bytes sent, {} bytes received", tally.bytes_sent, tally.bytes_received)?;
        if let Some(server) = server {
            let (time, requests) = (server.cpu.total_s(), total.max(1) as f64);
            let each = time / requests * 1e6;
            writeln!(
                f,
                "server: {time:.2} s of processor time, {each:.2} us a request, peak {} KiB",
                server.peak_kib
            )?;
        }
        if self.histogram {
            distribution(f, "SET", &tally.sets)?;
            distribution(f, "GET", &tally.gets)?;
        }
        Ok(())
    }
}

fn rate(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

fn row(
    f: &mut Formatter<'_>,
    name: &str,
    tally: &KindTally,
    seconds: f64,
    found: Option<(u64, u64)>,
) -> fmt::Result {
    let cell = |n: Option<u64>| n.map_or("-".into(), |n| n.to_string());
    let (hits, misses) = (cell(found.map(|f| f.0)), cell(found.map(|f| f.1)));
    write!(f, "{name:<6}{:>12}{:>14.0}{hits:>12}{misses:>12}", tally.count, rate(tally.count, seconds))?;
    let quantiles = QUANTILES.map(|(_, q)| format!("{:>11}", tally.latency_us.value_at_quantile(q)));
    writeln!(f, "{}", quantiles.concat())
}

fn distribution(f: &mut Formatter<'_>, name: &str, tally: &KindTally) -> fmt::Result {
    if tally.count == 0 {
        return Ok(());
    }
    writeln!(f, "\n{name} latency: within us, percent")?;
    for step in tally.latency_us.iter_quantiles(1) {
        writeln!(f, "{:>12}{:>10.3}", step.value_iterated_to(), step.quantile() * 100.0)?;
    }
    Ok(())
}

/// The content of the JSON file. `keys` lists the keys with the most measured requests, hottest first.
pub fn to_json(options: &Options, summary: &Summary) -> Value {
    let Summary { tally, populated, elapsed, server } = summary;
    let (seconds, total) = (elapsed.as_secs_f64(), tally.sets.count + tally.gets.count);
    let keys: Vec<Value> = tally
        .hottest(LISTED_KEYS)
        .into_iter()
        .map(|(number, count)| {
            let key = String::from_utf8_lossy(&options.key(number)).into_owned();
            json!({"key": key, "sets": count.sets, "gets": count.gets})
        })
        .collect();
    json!({
        "settings": settings(options),
        "populated": populated,
        "seconds": seconds,
        "requests": total,
        "requests_per_s": rate(total, seconds),
        "sets": kind(&tally.sets),
        "gets": kind(&tally.gets),
        "hits": tally.hits,
        "misses": tally.misses,
        "bytes_sent": tally.bytes_sent,
        "bytes_received": tally.bytes_received,
        "server": server.map(|s| json!({"user_s": s.cpu.user_s, "system_s": s.cpu.system_s, "peak_kib": s.peak_kib})),
        "deviations": {"count": tally.deviations.count, "first": tally.deviations.first},
        "distinct_keys": tally.keys.len(),
        "keys": keys,
    })
}

fn kind(tally: &KindTally) -> Value {
    let histogram = &tally.latency_us;
    let mut latency = json!({"mean": histogram.mean(), "min": histogram.min()});
    for (name, quantile) in QUANTILES {
        latency[name] = histogram.value_at_quantile(quantile).into();
    }
    json!({"count": tally.count, "latency_us": latency})
}

fn settings(options: &Options) -> Value {
    json!({
        "protocol": format!("{:?}", options.protocol).to_lowercase(),
        "threads": options.threads,
        "clients": options.clients,
        "requests": options.requests,
        "ratio": format!("{}:{}", options.ratio.set, options.ratio.get),
        "data_size": options.data_size,
        "data_size_range": options.data_size_range.as_ref().map(|range| [range.start(), range.end()]),
        "key_pattern": format!("{:?}:{:?}", options.key_pattern.set, options.key_pattern.get).to_lowercase(),
        "key_minimum": options.key_minimum,
        "key_maximum": options.key_maximum,
        "key_prefix": options.key_prefix,
        "pipeline": options.pipeline,
        "warm_up": options.warm_up,
        "test_time": options.test_time.map(|time| time.as_secs_f64()),
        "seed": options.seed,
        "zipf_exp": options.key_zipf_exp,
        "populate": options.populate,
        "verify": options.verify,
    })
}
