//! Counters of each allocation site and each size class. Accesses arrive here when their object dies; those of live
//! objects are added when a report is built.

use super::counts::{AtomicCounts, Counts};
use super::region::{Region, Zeroed};
use super::stacks::{SITES, SiteId};
use crate::counter::Counter;
use crate::totals::raise;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use thermalloc_alloc::ClassId;
use thermalloc_sys::mem::Errno;

/// One site's counters.
#[derive(Default)]
pub(super) struct Site {
    pub allocs: AtomicU64,
    pub frees: AtomicU64,
    pub bytes: AtomicU64,
    pub live_bytes: AtomicU64,
    pub peak_live_bytes: AtomicU64,
    pub counts: AtomicCounts,
    pub max_threads: AtomicU64,
}

// SAFETY: all fields are atomics.
#[allow(unsafe_code)]
unsafe impl Zeroed for Site {
    fn zero(&self) {
        self.live_bytes.store(0, Relaxed);
        self.forked();
    }
}

impl Site {
    pub fn born(&self, size: u64) {
        self.allocs.plus(1);
        self.bytes.plus(size);
        let live = self.live_bytes.plus(size).wrapping_add(size);
        raise(&self.peak_live_bytes, live);
    }

    pub fn died(&self, size: u64, counts: &Counts, threads: u64) {
        self.frees.plus(1);
        self.live_bytes.minus(size);
        self.counts.add(counts);
        raise(&self.max_threads, threads);
    }

    /// Everything starts again, but what is alive stays alive.
    fn forked(&self) {
        for counter in [&self.allocs, &self.frees, &self.bytes, &self.max_threads] {
            counter.store(0, Relaxed);
        }
        self.counts.take();
        self.peak_live_bytes.store(self.live_bytes.load(Relaxed), Relaxed);
    }
}

/// One class's counters.
#[derive(Default)]
pub(super) struct Class {
    pub allocs: AtomicU64,
    pub frees: AtomicU64,
    pub counts: AtomicCounts,
}

// SAFETY: all fields are atomics.
#[allow(unsafe_code)]
unsafe impl Zeroed for Class {
    fn zero(&self) {
        self.allocs.store(0, Relaxed);
        self.frees.store(0, Relaxed);
        self.counts.take();
    }
}

impl Class {
    fn is_used(&self) -> bool {
        self.allocs.load(Relaxed) | self.frees.load(Relaxed) != 0
    }
}

/// As many as there are ids: the highest stands for objects without a class.
const CLASSES: usize = 1 << 16;

/// Counters by site and by class.
pub(super) struct Sites {
    sites: Region<Site>,
    classes: Region<Class>,
}

impl Sites {
    pub fn new() -> Result<Self, Errno> {
        Ok(Self { sites: Region::new(SITES)?, classes: Region::new(CLASSES)? })
    }

    pub fn site(&self, site: SiteId) -> Option<&Site> {
        self.sites.get(site.0 as usize)
    }

    pub fn class(&self, class: ClassId) -> Option<&Class> {
        self.classes.get(usize::from(class.0))
    }

    /// Classes that had objects.
    pub fn classes_used(&self) -> impl Iterator<Item = (ClassId, &Class)> {
        let classes = self.classes.slice(0..CLASSES).iter().zip(0..=u16::MAX);
        classes.map(|(class, id)| (ClassId(id), class)).filter(|(_, class)| class.is_used())
    }

    /// In the child of a fork.
    pub fn forked(&self, sites_used: usize) {
        self.sites.slice(0..sites_used).iter().for_each(Site::forked);
        self.classes.clear(0..CLASSES);
    }
}
