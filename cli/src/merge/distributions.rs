//! Sums of distributions. Count, smallest, largest and mean are exact; percentiles come from the histograms, as exact as the
//! coarsest of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use thermalloc_format::Distribution;

/// Length of the head, whose first word is this; then come the payload's length, an offset and the digits.
const HEAD: usize = 40;
const COOKIE: u32 = 0x1c84_9313;
/// More significant digits than the runtime ever uses would take megabytes for each site.
const DIGITS: u32 = 3;

/// A sum of distributions.
#[derive(Debug, Default)]
pub struct Sum {
    count: u64,
    min: u64,
    max: u64,
    total: f64,
    /// Largest percentiles seen: what is known where a histogram is missing.
    highest: [u64; 3],
    /// Histograms as they were read: most sites occur once, and need not be decoded.
    parts: Vec<String>,
}

impl Sum {
    /// Adds one.
    pub fn add(&mut self, distribution: &Distribution) {
        if distribution.count == 0 {
            return;
        }
        self.min = if self.count == 0 { distribution.min } else { self.min.min(distribution.min) };
        self.max = self.max.max(distribution.max);
        self.count = self.count.saturating_add(distribution.count);
        self.total += distribution.mean * distribution.count as f64;
        let percentiles = [distribution.p50, distribution.p90, distribution.p99];
        self.highest = std::array::from_fn(|at| self.highest[at].max(percentiles[at]));
        self.parts.push(distribution.hdr_v2_base64.clone());
    }

    /// All of them as one.
    pub fn distribution(mut self) -> Distribution {
        if self.count == 0 {
            return Distribution::default();
        }
        let (encoded, [p50, p90, p99]) = match self.parts.len() {
            1 => (std::mem::take(&mut self.parts[0]), self.highest),
            _ => self.decoded().unwrap_or((String::new(), self.highest)),
        };
        let mean = self.total / self.count as f64;
        let mean = if mean.is_finite() { mean } else { 0.0 };
        let Self { count, min, max, .. } = self;
        Distribution { count, min, mean, p50, p90, p99, max, hdr_v2_base64: encoded }
    }

    /// The sum of the histograms, encoded, and its percentiles; `None` if not all can be read.
    fn decoded(&self) -> Option<(String, [u64; 3])> {
        let mut sum: Option<Histogram<u64>> = None;
        for part in &self.parts {
            let histogram = decode(part)?;
            match &mut sum {
                None => sum = Some(histogram),
                Some(sum) => sum.add(histogram).ok()?,
            }
        }
        let sum = sum?;
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&sum, &mut bytes).ok()?;
        let quantile = |q| sum.value_at_quantile(q).clamp(self.min.min(self.max), self.max);
        Some((STANDARD.encode(bytes), [0.5, 0.9, 0.99].map(quantile)))
    }
}

/// A histogram of reasonable size.
fn decode(encoded: &str) -> Option<Histogram<u64>> {
    let bytes = STANDARD.decode(encoded).ok()?;
    let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let whole = (word(4)? as usize).checked_add(HEAD)? == bytes.len();
    if word(0)? != COOKIE || !whole || word(12)? > DIGITS {
        return None;
    }
    let mut histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
    histogram.auto(true);
    Some(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn distribution(values: &[u64]) -> Distribution {
        let mut histogram = Histogram::<u64>::new(1).unwrap();
        values.iter().for_each(|&value| histogram.record(value).unwrap());
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
        Distribution {
            count: values.len() as u64,
            min: values.iter().copied().min().unwrap_or(0),
            mean: values.iter().map(|&value| value as f64).sum::<f64>() / values.len().max(1) as f64,
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            max: values.iter().copied().max().unwrap_or(0),
            hdr_v2_base64: STANDARD.encode(bytes),
        }
    }

    fn sum(parts: &[Distribution]) -> Distribution {
        let mut sum = Sum::default();
        parts.iter().for_each(|part| sum.add(part));
        sum.distribution()
    }

    proptest! {
        #[test]
        fn as_if_recorded_together(
            a in prop::collection::vec(0u64..1 << 40, 1..50),
            b in prop::collection::vec(0u64..1 << 40, 1..50),
        ) {
            let (together, merged) = (distribution(&[&a[..], &b].concat()), sum(&[distribution(&a), distribution(&b)]));
            prop_assert_eq!((merged.count, merged.min, merged.max), (together.count, together.min, together.max));
            prop_assert!((merged.mean - together.mean).abs() <= together.mean * 1e-9);
            for (merged, together) in
                [(merged.p50, together.p50), (merged.p90, together.p90), (merged.p99, together.p99)]
            {
                // One is cut to the largest value, the other to its neighbourhood.
                prop_assert!(merged.abs_diff(together) as f64 <= together as f64 * 0.1 + 1.0, "{} {}", merged, together);
            }
            prop_assert!(!merged.hdr_v2_base64.is_empty());
        }

        #[test]
        fn damaged_histograms_do_no_harm(at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
            let good = distribution(&[1, 500, 1 << 33]);
            let mut bytes = STANDARD.decode(&good.hdr_v2_base64).unwrap();
            let index = at.index(bytes.len());
            bytes[index] = byte;
            bytes.truncate(bytes.len() - cut.index(4));
            let bad = Distribution { hdr_v2_base64: STANDARD.encode(bytes), ..good.clone() };
            let merged = sum(&[good, bad]);
            prop_assert_eq!((merged.count, merged.max), (6, 1 << 33));
        }
    }

    #[test]
    fn without_a_histogram_the_highest_percentiles_remain() {
        let bare = Distribution { hdr_v2_base64: String::new(), ..distribution(&[7, 9]) };
        let merged = sum(&[bare, distribution(&[1000])]);
        assert_eq!((merged.count, merged.min, merged.max), (3, 7, 1000));
        assert!(merged.hdr_v2_base64.is_empty() && merged.p50 >= 1000);
        assert_eq!(sum(&[]), Distribution::default());
    }
}
