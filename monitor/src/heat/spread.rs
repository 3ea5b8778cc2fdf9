//! Distributions of a quantity over objects, one for each site or class, made when first needed.
//!
//! An HdrHistogram of one significant digit takes 0.5 to 2 KiB, so 10,000 sites with two each stay below 40 MiB. Count,
//! smallest, largest and mean are kept exactly beside it.

use super::freeze::Freeze;
use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use thermalloc_format::Distribution;
use thermalloc_sys::lock::Lock;

/// Largest value that the histogram tells apart.
const LARGEST: u64 = 1 << 62;

/// One distribution.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    histogram: Option<Histogram<u32>>,
}

impl Spread {
    /// An empty distribution whose percentiles are exact to so many significant decimal digits.
    pub fn new(digits: u8) -> Self {
        Self { count: 0, sum: 0, min: u64::MAX, max: 0, histogram: Histogram::new(digits).ok() }
    }

    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if let Some(histogram) = &mut self.histogram {
            // Fails only where the histogram cannot grow, which LARGEST excludes.
            let _ = histogram.record(value.min(LARGEST));
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn distribution(&self) -> Distribution {
        if self.count == 0 {
            return Distribution::default();
        }
        let quantile = |q| {
            let value = self.histogram.as_ref().map_or(0, |histogram| histogram.value_at_quantile(q));
            value.clamp(self.min, self.max)
        };
        Distribution {
            count: self.count,
            min: self.min,
            mean: self.sum as f64 / self.count as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: self.max,
            hdr_v2_base64: self.histogram.as_ref().map(encode).unwrap_or_default(),
        }
    }
}

fn encode(histogram: &Histogram<u32>) -> String {
    let mut bytes = Vec::new();
    match V2Serializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => base64::engine::general_purpose::STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}

const SHARDS: usize = 16;

/// A distribution for each site or class.
pub(super) struct Spreads {
    digits: u8,
    /// Number n is entry `n / SHARDS` of shard `n % SHARDS`.
    shards: [Lock<Vec<Option<Box<Spread>>>>; SHARDS],
}

impl Spreads {
    pub const fn new(digits: u8) -> Self {
        Self { digits, shards: [const { Lock::new(Vec::new()) }; SHARDS] }
    }

    /// Records a value in number `of`. Not for handlers: takes a lock and allocates.
    pub fn record(&self, of: usize, value: u64) {
        let mut shard = self.shards[of % SHARDS].lock();
        let at = of / SHARDS;
        if shard.len() <= at {
            shard.resize_with(at + 1, || None);
        }
        shard[at].get_or_insert_with(|| Box::new(Spread::new(self.digits))).record(value);
    }

    /// A copy of number `of`.
    pub fn get(&self, of: usize) -> Spread {
        let shard = self.shards[of % SHARDS].lock();
        shard
            .get(of / SHARDS)
            .and_then(|spread| spread.as_deref().cloned())
            .unwrap_or(Spread::new(self.digits))
    }

    /// Empties all.
    pub fn clear(&self) {
        self.shards.iter().for_each(|shard| shard.lock().clear());
    }
}

impl Freeze for Spreads {
    fn freeze(&self) {
        self.shards.iter().for_each(Freeze::freeze);
    }

    fn thaw(&self) {
        self.shards.iter().for_each(Freeze::thaw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;

    fn decode(distribution: &Distribution) -> Histogram<u64> {
        let bytes = base64::engine::general_purpose::STANDARD.decode(&distribution.hdr_v2_base64).unwrap();
        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
    }

    proptest! {
        #[test]
        fn distributions_are_exact_where_they_say_so(
            mut values in proptest::collection::vec(prop_oneof![0u64..100, 0..LARGEST], 1..200),
        ) {
            let spreads = Spreads::new(1);
            values.iter().for_each(|&value| spreads.record(37, value));
            let found = spreads.get(37).distribution();
            values.sort_unstable();
            prop_assert_eq!(found.count, values.len() as u64);
            prop_assert_eq!((found.min, found.max), (values[0], values[values.len() - 1]));
            let exact = values[(values.len() as f64 * 0.5).ceil() as usize - 1];
            prop_assert!(found.p50.abs_diff(exact) as f64 <= exact as f64 * 0.1, "{} {exact}", found.p50);
            let histogram = decode(&found);
            prop_assert_eq!(histogram.len(), values.len() as u64);
        }
    }

    #[test]
    fn extremes_and_nothing() {
        let mut spread = Spread::new(1);
        assert_eq!(spread.distribution(), Distribution::default());
        spread.record(u64::MAX);
        spread.record(0);
        let found = spread.distribution();
        assert_eq!((found.min, found.max, found.count), (0, u64::MAX, 2));
        assert_eq!(decode(&found).len(), 2);
    }

    #[test]
    fn ten_thousand_sites_stay_within_tens_of_mebibytes() {
        // Values over the whole range that sites have: accesses up to a million, lifetimes up to an hour.
        let mut bytes = 0;
        for largest in [1_000_000u64, 3_600_000_000_000] {
            let mut spread = Spread::new(1);
            (0..40)
                .map(|bit| 1u64 << bit)
                .filter(|value| *value < largest)
                .for_each(|value| spread.record(value));
            bytes += spread.histogram.unwrap().distinct_values() * size_of::<u32>() + size_of::<Spread>();
        }
        assert!(bytes * 10_000 < 50 << 20, "{bytes}");
    }
}
