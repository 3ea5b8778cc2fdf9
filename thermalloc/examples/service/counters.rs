//! The numbers behind `stats`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Counts since the start or the last `stats reset`. Relaxed throughout: independent counters.
pub struct Counters {
    start: Instant,
    connections: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    sets: AtomicU64,
}

impl Counters {
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self { start: Instant::now(), connections: zero(), hits: zero(), misses: zero(), sets: zero() }
    }

    pub fn get(&self, hit: bool) {
        if hit { &self.hits } else { &self.misses }.fetch_add(1, Relaxed);
    }

    pub fn set(&self) {
        self.sets.fetch_add(1, Relaxed);
    }

    pub fn connect(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    pub fn disconnect(&self) {
        self.connections.fetch_sub(1, Relaxed);
    }

    pub fn reset(&self) {
        [&self.hits, &self.misses, &self.sets].iter().for_each(|counter| counter.store(0, Relaxed));
    }

    /// Names and values under memcached's names.
    pub fn list(&self, items: usize, bytes: usize) -> [(&'static str, String); 11] {
        let (hits, misses) = (self.hits.load(Relaxed), self.misses.load(Relaxed));
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        [
            ("pid", std::process::id().to_string()),
            ("uptime", self.start.elapsed().as_secs().to_string()),
            ("time", unix.to_string()),
            ("version", env!("CARGO_PKG_VERSION").to_string()),
            ("curr_connections", self.connections.load(Relaxed).to_string()),
            ("cmd_get", (hits + misses).to_string()),
            ("cmd_set", self.sets.load(Relaxed).to_string()),
            ("get_hits", hits.to_string()),
            ("get_misses", misses.to_string()),
            ("bytes", bytes.to_string()),
            ("curr_items", items.to_string()),
        ]
    }
}
