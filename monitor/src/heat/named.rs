//! Named objects: what the program itself says lies in a chunk, because it has an allocator of its own.
//!
//! While a named object lives, accesses to its granules are charged to it and not to the chunk around it. A map with a word for each
//! granule says how far back the named object begins that owns it; so an address finds its owner in one load, and two
//! objects that share a granule are told apart no further: the later one has it.
//!
//! # Signal context
//! `at` and `record` take no lock; the rest does.

use super::cell::GRANULE;
use super::freeze::Freeze;
use super::record::Record;
use super::region::Region;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use thermalloc_alloc::{ClassId, Object};
use thermalloc_sys::lock::Lock;

/// The class of named objects, which are of no size class.
pub const NAMED: ClassId = ClassId(u16::MAX - 1);

/// A named object that begins.
#[derive(Clone, Copy)]
pub(super) struct NewName<'a> {
    pub addr: usize,
    pub size: usize,
    pub label: &'a str,
    /// See `Name`.
    pub of_pool: bool,
}

/// What the program said of an object.
#[derive(Clone, Debug)]
struct Name {
    label: Box<str>,
    /// Whether it is a chunk of a pool, and has this name only until the program gives it another.
    of_pool: bool,
}

struct Tables {
    /// Granules back to the first of the owner, plus one; 0: no named object.
    owners: Region<AtomicU32>,
    /// At a named object's first granule: how many it has.
    lengths: Region<AtomicU32>,
    /// At a named object's first granule.
    records: Region<Record>,
}

/// A pool of the program's own allocator.
struct Pool {
    end: usize,
    chunk: usize,
    label: Box<str>,
}

/// The named objects of an arena.
pub(super) struct Named {
    arena: Range<usize>,
    tables: OnceLock<Tables>,
    names: Lock<BTreeMap<usize, Name>>,
    /// By where each begins.
    pools: Lock<BTreeMap<usize, Pool>>,
}

impl Named {
    pub fn new(arena: Range<usize>) -> Self {
        Self {
            arena,
            tables: OnceLock::new(),
            names: Lock::new(BTreeMap::new()),
            pools: Lock::new(BTreeMap::new()),
        }
    }

    fn granule(&self, addr: usize) -> usize {
        addr.wrapping_sub(self.arena.start) / GRANULE
    }

    /// The named object that owns the granule of an address.
    pub fn at(&self, addr: usize) -> Option<Object> {
        let tables = self.tables.get()?;
        if !self.arena.contains(&addr) {
            return None;
        }
        let granule = self.granule(addr);
        // Acquire pairs with the Release of `begin`: the length is this object's.
        let back = tables.owners.get(granule)?.load(Acquire).checked_sub(1)?;
        let first = granule - back as usize;
        let length = tables.lengths.get(first)?.load(Relaxed);
        let base = self.arena.start + first * GRANULE;
        Some(Object {
            base,
            capacity: length as usize * GRANULE,
            class: NAMED,
            slot: ((base - self.arena.start) / super::SLOT) as u32,
            index: (first % super::CHUNKS) as u32,
            watched: true,
            live: true,
        })
    }

    /// The record of a named object.
    pub fn record(&self, object: &Object) -> Option<&Record> {
        self.tables.get()?.records.get(self.granule(object.base))
    }

    /// A named object begins: the granules are its own. `None` where there is no room for tables.
    pub fn begin(&self, addr: usize, size: usize, label: &str, of_pool: bool) -> Option<Object> {
        if !self.arena.contains(&addr) || size == 0 || size > self.arena.end - addr {
            return None;
        }
        let tables = self.tables()?;
        let granules = self.granule(addr)..self.granule(addr + size - 1) + 1;
        let length = u32::try_from(granules.len()).ok()?;
        tables.lengths.get(granules.start)?.store(length, Relaxed);
        for (back, owner) in tables.owners.slice(granules.clone()).iter().enumerate() {
            owner.store(back as u32 + 1, Release);
        }
        let base = self.arena.start + granules.start * GRANULE;
        let name = Name { label: label.into(), of_pool };
        self.names.lock().insert(base, name);
        self.at(base)
    }

    fn tables(&self) -> Option<&Tables> {
        if self.tables.get().is_none() {
            let granules = self.arena.len() / GRANULE;
            let tables = Tables {
                owners: Region::new(granules).ok()?,
                lengths: Region::new(granules).ok()?,
                records: Region::new(granules).ok()?,
            };
            let _ = self.tables.set(tables);
        }
        self.tables.get()
    }

    /// A named object's granules are the surrounding chunk's again.
    pub fn end(&self, object: &Object) {
        if let Some(tables) = self.tables.get() {
            let first = self.granule(object.base);
            for (back, owner) in
                tables.owners.slice(first..first + object.capacity / GRANULE).iter().enumerate()
            {
                // What another object has taken over stays with it.
                let _ = owner.compare_exchange(back as u32 + 1, 0, Relaxed, Relaxed);
            }
            self.names.lock().remove(&object.base);
        }
    }

    /// What the program calls a named object.
    pub fn label(&self, object: &Object) -> Option<String> {
        self.names.lock().get(&object.base).map(|name| name.label.to_string())
    }

    /// Whether this is a chunk of a pool that the program has given no other name.
    pub fn is_of_pool(&self, object: &Object) -> bool {
        self.names.lock().get(&object.base).is_some_and(|name| name.of_pool)
    }

    /// Whether there is any.
    pub fn is_any(&self) -> bool {
        self.tables.get().is_some()
    }

    /// The named objects that begin within a range.
    pub fn within(&self, range: Range<usize>) -> Vec<Object> {
        if !self.is_any() {
            return Vec::new();
        }
        let bases: Vec<usize> = self.names.lock().range(range).map(|(base, _)| *base).collect();
        bases.into_iter().filter_map(|base| self.at(base).filter(|object| object.base == base)).collect()
    }

    /// Notes a pool.
    pub fn add_pool(&self, range: Range<usize>, chunk: usize, label: &str) {
        self.pools.lock().insert(range.start, Pool { end: range.end, chunk, label: label.into() });
    }

    /// The chunk of a pool that begins at an address: its size and the pool's label.
    pub fn chunk_at(&self, addr: usize) -> Option<(usize, String)> {
        let pools = self.pools.lock();
        let (start, pool) = pools.range(..=addr).next_back()?;
        let begins = addr < pool.end && (addr - start).is_multiple_of(pool.chunk);
        begins.then(|| (pool.chunk, pool.label.to_string()))
    }

    /// Forgets the pools that begin within a range.
    pub fn remove_pools(&self, range: Range<usize>) {
        self.pools.lock().retain(|start, _| !range.contains(start));
    }
}

impl Freeze for Named {
    fn freeze(&self) {
        self.names.freeze();
        self.pools.freeze();
    }

    fn thaw(&self) {
        self.names.thaw();
        self.pools.thaw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_object_has_the_granule() {
        let named = Named::new(1 << 20..3 << 20);
        let base = 1 << 20;
        assert!(named.at(base).is_none());
        let first = named.begin(base, 40, "first", false).unwrap();
        assert_eq!((first.base, first.capacity), (base, 48));
        let second = named.begin(base + 40, 24, "second", true).unwrap();
        assert_eq!((second.base, second.capacity), (base + 32, 32));
        assert_eq!(named.at(base + 31).unwrap().base, base);
        assert_eq!(named.at(base + 32).unwrap().base, base + 32);
        named.end(&first);
        assert!(named.at(base + 31).is_none());
        assert_eq!(named.at(base + 63).unwrap().base, base + 32);
        assert_eq!(named.label(&second), Some("second".into()));
        assert!(named.is_of_pool(&second) && named.label(&first).is_none());
        assert_eq!(named.within(base..base + 64).len(), 1);
        assert!(named.begin(3 << 20, 8, "outside", false).is_none());
    }
}
