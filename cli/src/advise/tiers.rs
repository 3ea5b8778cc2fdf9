//! Two memories, as simple as can be: each access waits for the latency of the memory that it goes to, one after the other;
//! and each memory moves its bytes at its bandwidth, both at once. What takes longer counts. There are no caches, so this is what
//! the accesses would cost if all of them went to memory: the ratios are of interest, not the times.

use super::traffic::Traffic;
use crate::options::AdviseOptions;

const FAST_LATENCY: f64 = 80.0;
const SLOW_LATENCY: f64 = 250.0;
const FAST_BANDWIDTH: f64 = 100.0;
const SLOW_BANDWIDTH: f64 = 30.0;

/// One memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// In ns.
    pub latency: f64,
    /// In bytes a ns, which is GB/s.
    pub bandwidth: f64,
}

/// Both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tiers {
    /// The small one.
    pub fast: Memory,
    /// The other.
    pub slow: Memory,
    /// How much longer a write takes than a read.
    pub write_cost: f64,
}

impl Tiers {
    /// As the options say; `None` if they say nothing.
    pub fn new(options: &AdviseOptions) -> Option<Self> {
        let (fast, slow) = (options.fast_latency, options.slow_latency);
        let (fast_bandwidth, slow_bandwidth) = (options.fast_bandwidth, options.slow_bandwidth);
        if [fast, slow, fast_bandwidth, slow_bandwidth].iter().all(Option::is_none) {
            return None;
        }
        let memory = |latency: Option<f64>, otherwise, bandwidth: Option<f64>, or| Memory {
            latency: latency.unwrap_or(otherwise),
            bandwidth: bandwidth.unwrap_or(or),
        };
        Some(Self {
            fast: memory(fast, FAST_LATENCY, fast_bandwidth, FAST_BANDWIDTH),
            slow: memory(slow, SLOW_LATENCY, slow_bandwidth, SLOW_BANDWIDTH),
            write_cost: options.write_cost,
        })
    }

    /// How long it takes, in ns, if `fast` of `all` goes to the fast memory.
    pub fn time(&self, all: Traffic, fast: Traffic) -> f64 {
        let slow = all.without(fast);
        let waiting =
            fast.worth(self.write_cost) * self.fast.latency + slow.worth(self.write_cost) * self.slow.latency;
        let moving = (fast.bytes / self.fast.bandwidth).max(slow.bytes / self.slow.bandwidth);
        waiting.max(moving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_or_bandwidth_whichever_takes_longer() {
        let tiers = Tiers {
            fast: Memory { latency: 10.0, bandwidth: 4.0 },
            slow: Memory { latency: 30.0, bandwidth: 2.0 },
            write_cost: 2.0,
        };
        let all = Traffic { reads: 10.0, writes: 5.0, bytes: 100.0 };
        assert_eq!(tiers.time(all, Traffic::default()), 600.0);
        assert_eq!(tiers.time(all, all), 200.0);
        assert_eq!(tiers.time(all, Traffic { reads: 10.0, ..Traffic::default() }), 400.0);
        let wide = Traffic { bytes: 10_000.0, ..all };
        assert_eq!(tiers.time(wide, Traffic::default()), 5000.0);
        assert_eq!(tiers.time(wide, wide), 2500.0);
    }
}
