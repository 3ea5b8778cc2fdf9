//! Reads and writes, and what they are worth.

use std::ops::AddAssign;
use thermalloc_format::{Object, Site};

/// Accesses and their bytes. Fractions come from objects that lie in several pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Reads.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes of both.
    pub bytes: f64,
}

impl Traffic {
    /// What placing it well is worth, where a read is worth 1.
    pub fn worth(self, write_cost: f64) -> f64 {
        self.reads + self.writes * write_cost
    }

    /// A part of it.
    pub fn part(self, share: f64) -> Self {
        Self { reads: self.reads * share, writes: self.writes * share, bytes: self.bytes * share }
    }

    /// What is left without `other`, at least nothing.
    pub fn without(self, other: Self) -> Self {
        Self {
            reads: (self.reads - other.reads).max(0.0),
            writes: (self.writes - other.writes).max(0.0),
            bytes: (self.bytes - other.bytes).max(0.0),
        }
    }
}

impl From<&Site> for Traffic {
    fn from(site: &Site) -> Self {
        let bytes = site.read_bytes as f64 + site.write_bytes as f64;
        Self { reads: site.reads as f64, writes: site.writes as f64, bytes }
    }
}

impl<H> From<&Object<H>> for Traffic {
    fn from(object: &Object<H>) -> Self {
        let bytes = object.read_bytes as f64 + object.write_bytes as f64;
        Self { reads: object.reads as f64, writes: object.writes as f64, bytes }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.bytes += other.bytes;
    }
}
