//! The command line, with memtier_benchmark's names and defaults where it has them.

use crate::pattern::{Pair, Pattern, Shape};
use crate::protocol::Protocol;
use clap::Parser;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Longest key that memcached accepts, in bytes.
const MAX_KEY: usize = 250;

/// A load generator for memcached that verifies every reply.
///
/// Values and flags are a pure function of the key and of --data-size. A hit must carry exactly them; a miss is an
/// error once the key was stored. Any deviation is reported, and the exit status is then 1.
#[derive(Clone, Debug, Parser)]
#[command(version)]
pub struct Options {
    /// Host name or address of the server
    #[arg(short, long, visible_alias = "host", default_value = "127.0.0.1")]
    pub server: String,
    /// TCP port of the server
    #[arg(short, long, default_value_t = 11211)]
    pub port: u16,
    /// Connect to this unix socket instead
    #[arg(short = 'S', long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,
    /// Protocol to speak
    #[arg(short = 'P', long, value_enum, default_value = "memcache_text")]
    pub protocol: Protocol,
    /// Number of threads
    #[arg(short, long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// Number of connections of each thread
    #[arg(short, long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub clients: u32,
    /// Number of requests of each connection
    #[arg(short = 'n', long, default_value_t = 10_000)]
    pub requests: u64,
    /// Begin no request after so many seconds of the measured load, even if some are left
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    pub test_time: Option<Duration>,
    /// Requests of each connection before the measured ones
    #[arg(long, default_value_t = 0, value_name = "REQUESTS")]
    pub warm_up: u64,
    /// SETs to GETs
    #[arg(long, default_value = "1:10", value_name = "SET:GET")]
    pub ratio: Pair<u32>,
    /// Size of the values in bytes
    #[arg(short, long, default_value_t = 32)]
    pub data_size: usize,
    /// Sizes of the values in bytes, evenly spread over the keys, the first key's the smallest
    #[arg(long, value_name = "MIN-MAX", conflicts_with = "data_size", value_parser = sizes)]
    pub data_size_range: Option<RangeInclusive<usize>>,
    /// How SETs and GETs choose keys: R random, S sequential, G Gaussian, Z Zipf
    #[arg(long, default_value = "R:R", value_name = "SET:GET")]
    pub key_pattern: Pair<Pattern>,
    /// Number of the first key
    #[arg(long, default_value_t = 0)]
    pub key_minimum: u64,
    /// Number of the last key
    #[arg(long, default_value_t = 10_000_000)]
    pub key_maximum: u64,
    /// What keys begin with, before their number
    #[arg(long, default_value = "memtier-")]
    pub key_prefix: String,
    /// Median of the Gaussian pattern [default: the middle of the keys]
    #[arg(long)]
    pub key_median: Option<f64>,
    /// Standard deviation of the Gaussian pattern [default: a sixth of the keys]
    #[arg(long)]
    pub key_stddev: Option<f64>,
    /// Exponent of the Zipf pattern
    #[arg(long, visible_alias = "zipf-exp", default_value_t = 1.0)]
    pub key_zipf_exp: f64,
    /// Requests that each connection keeps in flight
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pipeline: u32,
    /// Seed of all random choices: the same seed makes the same requests
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Store all keys before the measured load, so that every miss is an error
    #[arg(long)]
    pub populate: bool,
    /// Check replies
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true",
          action = clap::ArgAction::Set, value_name = "BOOL")]
    pub verify: bool,
    /// Give up on a connection that has not received anything for so long
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Report what this process (the server) uses during the measured load
    #[arg(long, value_name = "PID")]
    pub measure_pid: Option<u32>,
    /// Write the results to this file as JSON
    #[arg(long, value_name = "PATH")]
    pub json_out_file: Option<PathBuf>,
    /// Print no histogram, only the summary
    #[arg(long)]
    pub hide_histogram: bool,
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("expected a number of seconds above 0".into()),
    }
}

impl Options {
    /// Checks what the parser cannot: the error is one line that names the option.
    pub fn validate(&self) -> Result<(), String> {
        if self.key_minimum > self.key_maximum {
            return Err(format!(
                "--key-minimum {} is above --key-maximum {}",
                self.key_minimum, self.key_maximum
            ));
        }
        if self.key_prefix.bytes().any(|c| c <= b' ' || c == 0x7f) {
            return Err("--key-prefix must not contain spaces or control characters".into());
        }
        let longest = self.key(self.key_maximum).len();
        if longest > MAX_KEY {
            return Err(format!(
                "--key-prefix makes keys of {longest} bytes, memcached takes at most {MAX_KEY}"
            ));
        }
        Ok(())
    }

    /// The bytes of key number `number`.
    pub fn key(&self, number: u64) -> Vec<u8> {
        format!("{}{number}", self.key_prefix).into_bytes()
    }

    /// Size of the value of key number `number`, in bytes.
    pub fn value_size(&self, number: u64) -> usize {
        let Some(range) = &self.data_size_range else { return self.data_size };
        let (place, last) = (number - self.key_minimum, self.key_maximum - self.key_minimum);
        let more = (range.end() - range.start()) as u128 * u128::from(place) / u128::from(last.max(1));
        range.start() + more as usize
    }

    /// All key numbers.
    pub fn keys(&self) -> RangeInclusive<u64> {
        self.key_minimum..=self.key_maximum
    }

    /// Number of connections.
    pub fn connections(&self) -> u64 {
        u64::from(self.threads) * u64::from(self.clients)
    }

    /// Parameters of the key patterns.
    pub fn shape(&self) -> Shape {
        Shape {
            keys: self.keys(),
            zipf_exponent: self.key_zipf_exp,
            median: self.key_median,
            deviation: self.key_stddev,
        }
    }

    /// Longest wait for a reply.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

fn sizes(text: &str) -> Result<RangeInclusive<usize>, String> {
    let ends = text.split_once('-').and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)));
    match ends {
        Some((least, most)) if least <= most => Ok(least..=most),
        _ => Err("expected MIN-MAX, two numbers of bytes".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, String> {
        let options =
            Options::try_parse_from([&["bench-memcached"], args].concat()).map_err(|e| e.to_string())?;
        options.validate().map(|()| options)
    }

    #[test]
    fn memtiers_options_are_understood() {
        let options = parse(&[
            "--server=::1",
            "--port=1",
            "--protocol=memcache_binary",
            "--threads=16",
            "--clients=50",
            "--requests=10000",
            "--ratio=1:10",
            "--data-size=32",
            "--key-pattern=G:Z",
            "--key-maximum=9",
            "--hide-histogram",
            "--zipf-exp=0.9",
        ])
        .unwrap();
        assert_eq!(options.connections(), 800);
        assert_eq!(options.key_pattern, Pair { set: Pattern::Gaussian, get: Pattern::Zipf });
        assert_eq!(options.key(7), b"memtier-7");
        assert!(options.verify && options.key_zipf_exp == 0.9);
    }

    #[test]
    fn a_range_of_sizes_is_spread_over_the_keys() {
        let options = parse(&["--data-size-range=10-50", "--key-minimum=3", "--key-maximum=7"]).unwrap();
        assert_eq!(
            options.keys().map(|key| options.value_size(key)).collect::<Vec<_>>(),
            [10, 20, 30, 40, 50]
        );
        let one_key = parse(&["--data-size-range=10-50", "--key-minimum=3", "--key-maximum=3"]).unwrap();
        assert_eq!(one_key.value_size(3), 10);
        assert_eq!(parse(&["--data-size=7"]).unwrap().value_size(9), 7);
    }

    #[test]
    fn verify_can_be_turned_off() {
        assert!(!parse(&["--verify=false"]).unwrap().verify);
        assert!(parse(&["--verify"]).unwrap().verify);
    }

    #[test]
    fn bad_values_are_refused_with_the_options_name() {
        let long = format!("--key-prefix={}", "x".repeat(250));
        for (args, name) in [
            (&["--key-minimum=5", "--key-maximum=4"][..], "--key-minimum"),
            (&["--key-prefix=a b"], "--key-prefix"),
            (&[long.as_str()], "--key-prefix"),
            (&["--ratio=0:0"], "--ratio"),
            (&["--threads=0"], "--threads"),
            (&["--test-time=0"], "--test-time"),
            (&["--test-time=-1"], "--test-time"),
            (&["--pipeline=0"], "--pipeline"),
            (&["--data-size-range=9-8"], "--data-size-range"),
            (&["--data-size-range=8-9", "--data-size=8"], "--data-size-range"),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
    }
}
