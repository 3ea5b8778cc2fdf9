//! Which key a request asks for: the four patterns of memtier_benchmark (`R` random, `S` sequential,
//! `G` Gaussian, `Z` Zipf), and the alternation of SETs and GETs. Reproducible from a seed and a client number.

use clap::ValueEnum;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal, Zipf};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Each key as likely as any other.
    #[value(name = "R")]
    Random,
    /// From the first key to the last, over and over; each client for itself.
    #[value(name = "S")]
    Sequential,
    /// Normal distribution around the median key.
    #[value(name = "G")]
    Gaussian,
    /// Zipf's law: the first key is the hottest.
    #[value(name = "Z")]
    Zipf,
}

/// `SET:GET`, each side a `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<T> {
    /// The SET side.
    pub set: T,
    /// The GET side.
    pub get: T,
}

impl FromStr for Pair<Pattern> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        split(text, |side| Pattern::from_str(side, true))
    }
}

impl FromStr for Pair<u32> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let pair: Self = split(text, |side| side.parse().map_err(|_| format!("'{side}' is not a number")))?;
        if pair.set == 0 && pair.get == 0 {
            Err("at least one side must be above 0".into())
        } else {
            Ok(pair)
        }
    }
}

fn split<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Pair<T>, String> {
    let (set, get) = text.split_once(':').ok_or("expected SET:GET")?;
    Ok(Pair { set: parse(set)?, get: parse(get)? })
}

/// What the patterns need to know besides their name.
#[derive(Clone, Debug)]
pub struct Shape {
    /// First and last key number.
    pub keys: RangeInclusive<u64>,
    /// Exponent of Zipf's law.
    pub zipf_exponent: f64,
    /// Median of the Gaussian pattern; the middle of the range if `None`.
    pub median: Option<f64>,
    /// Standard deviation of the Gaussian pattern; a sixth of the range if `None`.
    pub deviation: Option<f64>,
}

enum Chooser {
    Random(RangeInclusive<u64>),
    Sequential(RangeInclusive<u64>, u64),
    Gaussian(RangeInclusive<u64>, Normal<f64>),
    Zipf(u64, Zipf<f64>),
}

impl Chooser {
    fn new(pattern: Pattern, shape: &Shape) -> Result<Self, String> {
        let keys = shape.keys.clone();
        let (first, last) = (*keys.start(), *keys.end());
        Ok(match pattern {
            Pattern::Random => Self::Random(keys),
            Pattern::Sequential => Self::Sequential(keys, first),
            Pattern::Gaussian => {
                let median = shape.median.unwrap_or((first as f64 + last as f64) / 2.0);
                let deviation = shape.deviation.unwrap_or((last - first) as f64 / 6.0);
                if !shape.keys.contains(&(median.round() as u64)) {
                    return Err(format!("--key-median {median} lies outside the keys {first} to {last}"));
                }
                let normal = Normal::new(median, deviation);
                Self::Gaussian(keys, normal.map_err(|e| format!("--key-stddev {deviation}: {e}"))?)
            }
            Pattern::Zipf => {
                let zipf = Zipf::new((last - first + 1) as f64, shape.zipf_exponent);
                Self::Zipf(first, zipf.map_err(|e| format!("--key-zipf-exp {}: {e}", shape.zipf_exponent))?)
            }
        })
    }

    fn choose(&mut self, rng: &mut ChaCha8Rng) -> u64 {
        match self {
            Self::Random(keys) => rng.random_range(keys.clone()),
            Self::Sequential(keys, next) => {
                let key = *next;
                *next = if key == *keys.end() { *keys.start() } else { key + 1 };
                key
            }
            Self::Gaussian(keys, normal) => loop {
                let sample = normal.sample(rng).round();
                if sample >= 0.0 && keys.contains(&(sample as u64)) {
                    return sample as u64;
                }
            },
            Self::Zipf(first, zipf) => *first + zipf.sample(rng) as u64 - 1,
        }
    }
}

/// The two kinds of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Store the key's value.
    Set,
    /// Ask for the key's value.
    Get,
}

/// One client's endless sequence of requests: `ratio.set` SETs, then `ratio.get` GETs, and again. Each client begins at
/// another place of that round, so that the ratio holds even where each makes but a few requests.
pub struct Sequence {
    rng: ChaCha8Rng,
    choosers: Pair<Chooser>,
    ratio: Pair<u32>,
    position: u32,
}

impl Sequence {
    /// The sequence of client number `client` under `seed`. Fails if a distribution's parameter is unusable.
    pub fn new(
        patterns: Pair<Pattern>,
        ratio: Pair<u32>,
        shape: &Shape,
        seed: u64,
        client: u64,
    ) -> Result<Self, String> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(client);
        let choosers =
            Pair { set: Chooser::new(patterns.set, shape)?, get: Chooser::new(patterns.get, shape)? };
        let position = (client % (u64::from(ratio.set) + u64::from(ratio.get))) as u32;
        Ok(Self { rng, choosers, ratio, position })
    }
}

impl Iterator for Sequence {
    type Item = (Kind, u64);
    fn next(&mut self) -> Option<(Kind, u64)> {
        let kind = if self.position < self.ratio.set { Kind::Set } else { Kind::Get };
        self.position = (self.position + 1) % (self.ratio.set + self.ratio.get);
        let chooser = if kind == Kind::Set { &mut self.choosers.set } else { &mut self.choosers.get };
        Some((kind, chooser.choose(&mut self.rng)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(first: u64, last: u64) -> Shape {
        Shape { keys: first..=last, zipf_exponent: 1.0, median: None, deviation: None }
    }

    fn sequence(pattern: &str, ratio: &str, shape: &Shape, seed: u64, client: u64) -> Sequence {
        Sequence::new(pattern.parse().unwrap(), ratio.parse().unwrap(), shape, seed, client).unwrap()
    }

    fn counts(pattern: &str, keys: u64, samples: usize) -> Vec<u64> {
        let mut counts = vec![0; keys as usize];
        for (_, key) in sequence(pattern, "0:1", &shape(0, keys - 1), 7, 0).take(samples) {
            counts[key as usize] += 1;
        }
        counts
    }

    #[test]
    fn ratio_alternates_sets_and_gets() {
        let kinds: Vec<Kind> = sequence("R:R", "2:3", &shape(0, 9), 1, 0).map(|r| r.0).take(10).collect();
        let round = [Kind::Set, Kind::Set, Kind::Get, Kind::Get, Kind::Get];
        assert_eq!(kinds, [round, round].concat());
    }

    #[test]
    fn clients_together_hold_the_ratio_from_their_first_request_on() {
        let first = |client| sequence("R:R", "1:10", &shape(0, 9), 1, client).next().unwrap().0;
        assert_eq!((0..110).filter(|&client| first(client) == Kind::Set).count(), 10);
    }

    #[test]
    fn sequential_walks_the_range_and_wraps() {
        let keys: Vec<u64> = sequence("S:S", "0:1", &shape(5, 7), 1, 0).map(|r| r.1).take(7).collect();
        assert_eq!(keys, [5, 6, 7, 5, 6, 7, 5]);
    }

    #[test]
    fn zipf_falls_as_one_over_rank() {
        let counts = counts("Z:Z", 100, 100_000);
        // Harmonic number H(100) = 5.187: rank k is expected 100,000 / 5.187 / k times.
        for rank in [1usize, 2, 5, 20] {
            let expected = 100_000.0 / 5.187 / rank as f64;
            let seen = counts[rank - 1] as f64;
            assert!((seen / expected - 1.0).abs() < 0.1, "rank {rank}: {seen} instead of {expected}");
        }
    }

    #[test]
    fn gaussian_has_its_median_and_deviation() {
        let counts = counts("G:G", 600, 60_000);
        let total: u64 = counts.iter().sum();
        let mean = counts.iter().enumerate().map(|(k, n)| k as f64 * *n as f64).sum::<f64>() / total as f64;
        let inner: u64 = counts[200..400].iter().sum();
        assert!((mean - 299.5).abs() < 3.0, "mean {mean}");
        assert!(
            (inner as f64 / total as f64 - 0.683).abs() < 0.02,
            "within one deviation: {inner} of {total}"
        );
    }

    #[test]
    fn random_reaches_every_key_about_equally() {
        assert!(counts("R:R", 10, 10_000).iter().all(|n| (850..1150).contains(n)));
    }

    #[test]
    fn unusable_parameters_are_named() {
        let bad = Shape { median: Some(50.0), ..shape(0, 9) };
        let made = Sequence::new("G:G".parse().unwrap(), Pair { set: 0, get: 1 }, &bad, 1, 0).err().unwrap();
        assert!(made.contains("--key-median"), "{made}");
        for text in ["1", "0:0", "a:b", "1:"] {
            assert!(text.parse::<Pair<u32>>().is_err(), "{text}");
        }
        assert!("R:X".parse::<Pair<Pattern>>().is_err());
    }

    proptest! {
        #[test]
        fn keys_stay_in_range_and_repeat_for_a_seed(
            pattern in "[RSGZ]:[RSGZ]", first in 0u64..1000, more in 0u64..1000, seed: u64, client in 0u64..800,
        ) {
            let shape = shape(first, first + more);
            let once: Vec<_> = sequence(&pattern, "1:2", &shape, seed, client).take(50).collect();
            let again: Vec<_> = sequence(&pattern, "1:2", &shape, seed, client).take(50).collect();
            prop_assert!(once.iter().all(|(_, key)| shape.keys.contains(key)));
            prop_assert_eq!(once, again);
        }
    }
}
