//! What a thread has counted: requests, hits, latencies, requests of each key, and the first deviations.

use crate::pattern::Kind;
use hdrhistogram::Histogram;
use std::collections::HashMap;
use std::time::Duration;

/// Deviations kept in words; the others are only counted.
const KEPT_DEVIATIONS: usize = 20;

/// Requests of one kind.
pub struct KindTally {
    /// Requests answered.
    pub count: u64,
    /// Time from handing the request to the connection to having its whole reply, in microseconds.
    pub latency_us: Histogram<u64>,
}

impl KindTally {
    fn new() -> Self {
        let latency_us = Histogram::new(3).expect("three digits are a valid precision");
        Self { count: 0, latency_us }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.latency_us.add(&other.latency_us).expect("the histogram grows");
    }
}

/// Requests of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCount {
    /// SETs answered.
    pub sets: u64,
    /// GETs answered.
    pub gets: u64,
}

/// Replies that were not what they must be.
#[derive(Clone, Debug, Default)]
pub struct Deviations {
    /// All of them.
    pub count: u64,
    /// The first few, in words.
    pub first: Vec<String>,
}

impl Deviations {
    /// Adds one.
    pub fn add(&mut self, words: String) {
        self.count += 1;
        if self.first.len() < KEPT_DEVIATIONS {
            self.first.push(words);
        }
    }

    /// Adds those of another tally.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        let room = KEPT_DEVIATIONS - self.first.len();
        self.first.extend(other.first.into_iter().take(room));
    }
}

/// Everything that is counted.
pub struct Tally {
    /// SETs.
    pub sets: KindTally,
    /// GETs.
    pub gets: KindTally,
    /// GETs answered with a value.
    pub hits: u64,
    /// GETs answered without.
    pub misses: u64,
    /// Bytes sent and received.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Requests by key number.
    pub keys: HashMap<u64, KeyCount>,
    /// What went wrong.
    pub deviations: Deviations,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            sets: KindTally::new(),
            gets: KindTally::new(),
            hits: 0,
            misses: 0,
            bytes_sent: 0,
            bytes_received: 0,
            keys: HashMap::new(),
            deviations: Deviations::default(),
        }
    }
}

impl Tally {
    /// Counts one answered request.
    pub fn answer(&mut self, kind: Kind, key: u64, latency: Duration) {
        let count = self.keys.entry(key).or_default();
        let tally = match kind {
            Kind::Set => {
                count.sets += 1;
                &mut self.sets
            }
            Kind::Get => {
                count.gets += 1;
                &mut self.gets
            }
        };
        tally.count += 1;
        let latency = latency.as_micros().try_into().unwrap_or(u64::MAX);
        tally.latency_us.record(latency).expect("the histogram grows");
    }

    /// Adds another thread's tally.
    pub fn merge(&mut self, other: Self) {
        self.sets.merge(&other.sets);
        self.gets.merge(&other.gets);
        self.hits += other.hits;
        self.misses += other.misses;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        for (key, count) in other.keys {
            let mine = self.keys.entry(key).or_default();
            mine.sets += count.sets;
            mine.gets += count.gets;
        }
        self.deviations.merge(other.deviations);
    }

    /// The `n` keys with the most requests, hottest first; equally hot ones in order of their number.
    pub fn hottest(&self, n: usize) -> Vec<(u64, KeyCount)> {
        let mut keys: Vec<_> = self.keys.iter().map(|(key, count)| (*key, *count)).collect();
        keys.sort_unstable_by_key(|(key, count)| (std::cmp::Reverse(count.sets + count.gets), *key));
        keys.truncate(n);
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_everything_up() {
        let mut left = Tally::default();
        let mut right = Tally::default();
        left.answer(Kind::Get, 4, Duration::from_micros(10));
        right.answer(Kind::Get, 4, Duration::from_micros(20));
        right.answer(Kind::Set, 2, Duration::from_micros(30));
        right.deviations.add("bad".into());
        left.merge(right);
        assert_eq!((left.sets.count, left.gets.count, left.gets.latency_us.len()), (1, 2, 2));
        assert_eq!(left.hottest(9), [(4, KeyCount { sets: 0, gets: 2 }), (2, KeyCount { sets: 1, gets: 0 })]);
        assert_eq!(left.hottest(1).len(), 1);
        assert_eq!((left.deviations.count, &left.deviations.first[..]), (1, &["bad".to_string()][..]));
    }

    #[test]
    fn latencies_of_any_length_keep_three_digits() {
        let mut tally = Tally::default();
        for latency in [7, 20_000, 3_600_000_000] {
            tally.answer(Kind::Get, 1, Duration::from_micros(latency));
            let recorded = tally.gets.latency_us.max();
            assert!(recorded >= latency && recorded - latency <= latency / 1000, "{latency}: {recorded}");
        }
    }

    #[test]
    fn deviations_are_all_counted_but_few_kept() {
        let mut all = Deviations::default();
        for i in 0..100 {
            let mut one = Deviations::default();
            one.add(i.to_string());
            all.merge(one);
        }
        assert_eq!((all.count, all.first.len()), (100, KEPT_DEVIATIONS));
        assert_eq!(all.first[0], "0");
    }
}
