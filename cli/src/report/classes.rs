//! Size classes with what they waste, as a slab allocator's statistics show it.

use super::objects::Objects;
use serde::Serialize;
use std::collections::HashMap;
use thermalloc_format::Report;

/// Bytes of a slab page.
const SLAB: u64 = 1 << 20;

/// A class as the page shows it. All of this is as the report was written, at the end of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClassRow {
    /// Its number.
    pub id: u32,
    /// Bytes of a chunk; 0: whole pages.
    pub chunk: u64,
    /// Chunks in a slab page.
    pub per_slab: u64,
    /// Slab pages.
    pub slabs: u64,
    /// Objects allocated.
    pub allocs: u64,
    /// Objects alive.
    pub used: u64,
    /// Chunks that no object is in.
    pub free: u64,
    /// Bytes of free chunks.
    pub free_bytes: u64,
    /// Bytes at the ends of slab pages, too few for a chunk.
    pub tail_bytes: u64,
    /// Share of their chunks that listed objects did not ask for, dead ones included; null: unknown.
    pub slack: Option<f64>,
    /// Bytes of live objects' chunks that they did not ask for, going by the listed ones.
    pub slack_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Accesses of an object: half of the objects have at most this many.
    pub p50: u64,
    /// 99 % of the objects have at most this many.
    pub p99: u64,
    /// The most.
    pub max: u64,
}

/// Bytes asked for, of listed objects of a class.
#[derive(Default)]
struct Asked {
    objects: u64,
    bytes: u64,
    live: u64,
    live_bytes: u64,
}

/// All classes, smallest chunk first.
pub fn classes<H>(report: &Report<H>, objects: &Objects) -> Vec<ClassRow> {
    let mut asked: HashMap<u32, Asked> = HashMap::new();
    for object in &objects.all {
        let asked = asked.entry(object.class).or_default();
        asked.objects += 1;
        asked.bytes = asked.bytes.saturating_add(object.size);
        if object.free_ns.is_none() {
            asked.live += 1;
            asked.live_bytes = asked.live_bytes.saturating_add(object.size);
        }
    }
    let nobody = Asked::default();
    let mut rows: Vec<ClassRow> =
        report.classes.iter().map(|class| row(class, asked.get(&class.id).unwrap_or(&nobody))).collect();
    rows.sort_by_key(|row| (row.chunk == 0, row.chunk, row.id));
    rows
}

fn row(class: &thermalloc_format::Class, asked: &Asked) -> ClassRow {
    let used = class.allocs.saturating_sub(class.frees);
    let free = class.slabs.saturating_mul(class.per_slab).saturating_sub(used);
    let chunk = class.chunk_size;
    let held = chunk.saturating_mul(asked.objects);
    let slack = (held > 0).then(|| held.saturating_sub(asked.bytes) as f64 / held as f64);
    let tail = if chunk == 0 { 0 } else { SLAB.saturating_sub(class.per_slab.saturating_mul(chunk)) };
    let spread = &class.accesses_per_object;
    ClassRow {
        id: class.id,
        chunk,
        per_slab: class.per_slab,
        slabs: class.slabs,
        allocs: class.allocs,
        used,
        free,
        free_bytes: free.saturating_mul(chunk),
        tail_bytes: tail.saturating_mul(class.slabs),
        slack: slack.map(|share| (share * 1e4).round() / 1e4),
        slack_bytes: chunk.saturating_mul(asked.live).saturating_sub(asked.live_bytes),
        reads: class.reads,
        writes: class.writes,
        p50: spread.p50,
        p99: spread.p99,
        max: spread.max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thermalloc_format::{Class, Heat, Object};

    #[test]
    fn waste_adds_up_to_the_slab() {
        let mut objects = Objects::default();
        objects.push(Object { class: 3, size: 60, heat: Heat::default(), ..Object::default() });
        objects.push(Object { class: 3, size: 100, free_ns: Some(1), ..Object::default() });
        let class = Class {
            id: 3,
            chunk_size: 100,
            per_slab: 10_485,
            slabs: 1,
            allocs: 2,
            frees: 1,
            ..Class::default()
        };
        let report: Report = Report { classes: vec![class], ..Report::default() };
        let row = &classes(&report, &objects)[0];
        assert_eq!((row.used, row.free, row.slack, row.slack_bytes), (1, 10_484, Some(0.2), 40));
        assert_eq!(row.used * row.chunk + row.free_bytes + row.tail_bytes, SLAB);
    }
}
