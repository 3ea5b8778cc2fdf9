//! The life of an object: birth, accesses, death; and what the sheets still hold of it.

use super::cell::Tally;
use super::counts::Counts;
use super::dying::Dying;
use super::freeze::Freeze;
use super::named::{NAMED, Named, NewName};
use super::objects::{Objects, split};
use super::record::{Life, Record};
use super::shadow::{self, Uncollected};
use super::sheets::{Sheet, Sheets};
use super::spread::Spreads;
use super::stacks::SiteId;
use super::{
    CLASS_DIGITS, Config, ENTRIES, HeatMap, Hottest, InitError, Records, SITE_DIGITS, SLOT, Shadow, Sites,
    Stacks, Timeline, report, stacks,
};
use crate::access::{Access, By};
use crate::clock;
use crate::counter::Counter;
use crate::totals::Totals;
use std::ops::Range;
use thermalloc_alloc::Object;

impl HeatMap {
    pub fn new(config: Config, arena: Range<usize>, totals: &'static Totals) -> Result<Self, InitError> {
        let Config { granule, dead_objects, dead_bytes, .. } = config;
        if !granule.is_power_of_two() || !(shadow::LEAST..=shadow::LARGEST).contains(&granule) {
            return Err(InitError::Granule(granule));
        }
        Ok(Self {
            config,
            totals,
            records: Records::new(arena.len())?,
            shadow: Shadow::new(&arena, granule)?,
            sheets: Sheets::new(&arena, config.covered, config.loads),
            named: Named::new(arena),
            stacks: Stacks::new()?,
            sites: Sites::new()?,
            timeline: Timeline::new(stacks::SITES)?,
            site_accesses: Spreads::new(SITE_DIGITS),
            site_lifetimes: Spreads::new(SITE_DIGITS),
            class_accesses: Spreads::new(CLASS_DIGITS),
            hottest: Hottest::new(dead_objects, dead_bytes),
        })
    }

    /// The record of an object, named or not.
    pub fn record(&self, object: &Object) -> Option<&Record> {
        if object.class == NAMED { self.named.record(object) } else { self.records.of(object) }
    }

    pub fn born(&self, objects: &impl Objects, object: &Object, size: u64, site: SiteId, now_ns: u64) {
        let Some(record) = self.record(object).filter(|_| object.watched) else { return };
        self.settle(objects, &chunk(object), now_ns);
        if object.class != NAMED {
            self.totals.born(size);
        }
        if let Some(site) = self.sites.site(site) {
            site.born(size);
        }
        if let Some(class) = self.sites.class(object.class) {
            class.allocs.plus(1);
        }
        let late = record.begin(size, site, now_ns);
        self.totals.orphaned(late.accesses(), late.bytes());
    }

    pub fn died(&self, objects: &impl Objects, object: &Object, now_ns: u64) {
        let mut dying = Dying::new();
        let is_sole = object.class != NAMED && !self.named.is_any();
        let is_alive = self.record(object).is_some_and(|record| record.site().is_some());
        self.sheets.take_out(chunk(object), &mut |tally, thread| {
            if !(is_sole && is_alive && dying.take(object, &tally, thread)) {
                self.charge(objects, &tally, thread, now_ns);
            }
        });
        if object.class != NAMED && self.named.is_any() {
            self.named.remove_pools(chunk(object));
            self.named.within(chunk(object)).iter().for_each(|named| self.unname(objects, named, now_ns));
        }
        let Some(mut life) = self.record(object).and_then(|record| record.end()) else { return };
        dying.add_to(&mut life, now_ns);
        for (kind, accesses, bytes) in dying.kinds() {
            self.totals.accessed(kind, By::Program, accesses, bytes);
            self.timeline.charge(life.site, kind, accesses, now_ns);
        }
        let accesses = life.counts.accesses();
        if object.class != NAMED {
            self.totals.died(life.size);
        }
        if let Some(site) = self.sites.site(life.site) {
            site.died(life.size, &life.counts, life.threads.count_ones().into());
        }
        if let Some(class) = self.sites.class(object.class) {
            class.frees.plus(1);
            class.counts.add(&life.counts);
        }
        let site = life.site.0 as usize;
        self.site_accesses.record(site, accesses);
        self.site_lifetimes.record(site, now_ns.saturating_sub(life.alloc_ns));
        self.class_accesses.record(object.class.0.into(), accesses);
        if accesses != 0 {
            self.bury(object, &life, &dying, now_ns);
        }
    }

    /// Keeps a dead object if it is among the hottest, and empties its granules.
    fn bury(&self, object: &Object, life: &Life, dying: &Dying, now_ns: u64) {
        if self.hottest.wants(life.counts.accesses()) {
            dying.charge(object, &self.shadow);
            let heat = self.shadow.collect(object, life.size, ENTRIES, &[]);
            self.hottest.offer(format_entry(self, object, life, Some(now_ns), heat));
        }
        self.shadow.clear(object);
    }

    /// A named object begins; the one that had its first granule ends.
    pub fn name(&self, objects: &impl Objects, name: NewName<'_>, site: SiteId, now_ns: u64) {
        let NewName { addr, size, label, of_pool } = name;
        if let Some(before) = self.named.at(addr) {
            self.unname(objects, &before, now_ns);
        }
        // What has been counted so far belongs to the chunk around.
        self.settle(objects, &(addr..addr.saturating_add(size)), now_ns);
        if let Some(object) = self.named.begin(addr, size, label, of_pool) {
            self.born(objects, &object, size as u64, site, now_ns);
        }
    }

    /// A named object ends.
    pub fn unname(&self, objects: &impl Objects, object: &Object, now_ns: u64) {
        self.died(objects, object, now_ns);
        self.named.end(object);
    }

    /// Charges what the sheets say of a range of addresses, to whoever owns it now.
    pub fn settle(&self, objects: &impl Objects, range: &Range<usize>, now_ns: u64) {
        self.sheets
            .take_out(range.clone(), &mut |tally, thread| self.charge(objects, &tally, thread, now_ns));
    }

    /// The addresses of a slot.
    pub fn slot(&self, slot: u32) -> Range<usize> {
        let start = self.sheets.covered().start + slot as usize * SLOT;
        start..start + SLOT
    }

    pub fn charge(&self, objects: &impl Objects, tally: &Tally, thread: u32, now_ns: u64) {
        let Access { kind, by, .. } = tally.access;
        let orphaned = self.split(objects, &tally.access, |object, offset, len| {
            self.charge_object(object, offset, len, tally, thread, now_ns)
                .inspect(|_| self.totals.accessed(kind, by, tally.count, tally.bytes(len as u64)))
                .is_some()
        }) as u64;
        if orphaned != 0 {
            let bytes = tally.bytes(orphaned);
            self.totals.accessed(kind, by, tally.count, bytes);
            self.totals.orphaned(tally.count, bytes);
        }
    }

    /// [`split`], where named objects go before the chunks around them.
    pub fn split(
        &self,
        objects: &impl Objects,
        access: &Access,
        owned: impl FnMut(&Object, usize, usize) -> bool,
    ) -> usize {
        split(&objects.arena(), |addr| self.named.at(addr).or_else(|| objects.at(addr)), access, owned)
    }

    /// Charges accesses to one object, unless none is alive there.
    fn charge_object(
        &self,
        object: &Object,
        offset: usize,
        len: usize,
        tally: &Tally,
        thread: u32,
        now_ns: u64,
    ) -> Option<()> {
        let (kind, count) = (tally.access.kind, tally.count);
        let record = self.record(object)?;
        let site = record.site()?;
        self.shadow.charge(object, offset, len, kind, count);
        let late = record.charge(kind, count, tally.bytes(len as u64), thread, now_ns);
        if late == Counts::default() {
            self.timeline.charge(site, kind, count, now_ns);
        } else {
            // The object died under the charge: what was taken back is counted, but has no owner.
            self.shadow.undo(object, offset, len, kind, count);
            self.totals.orphaned(late.accesses(), late.bytes());
        }
        Some(())
    }

    /// The object in a chunk as it is now, with what the sheets say of it.
    pub fn peek(&self, objects: &impl Objects, object: &Object) -> Option<Life> {
        let mut life = self.record(object)?.peek()?;
        let now = clock::now().max(1);
        self.peek_sheets(objects, object, &mut |tally, thread, _, len| {
            life.add(tally.access.kind, tally.count, tally.bytes(len as u64), thread, now);
        });
        Some(life)
    }

    /// The accesses to an object that the sheets hold.
    pub fn uncollected(&self, objects: &impl Objects, object: &Object) -> Vec<Uncollected> {
        let mut found = Vec::new();
        self.peek_sheets(objects, object, &mut |tally, _, offset, len| {
            if tally.count != 0 {
                found.push(Uncollected { offset, len, kind: tally.access.kind, count: tally.count });
            }
        });
        found
    }

    /// Calls back with each tally of the sheets that concerns an object, its thread, and the offset and bytes within it.
    fn peek_sheets(
        &self,
        objects: &impl Objects,
        object: &Object,
        visit: &mut impl FnMut(&Tally, u32, usize, usize),
    ) {
        self.sheets.peek(chunk(object), &mut |tally, thread| {
            self.split(objects, &tally.access, |owner, offset, len| {
                if (owner.base, owner.class) == (object.base, object.class) {
                    visit(&tally, thread, offset, len);
                }
                true
            });
        });
    }

    fn spreads(&self) -> [&Spreads; 3] {
        [&self.site_accesses, &self.site_lifetimes, &self.class_accesses]
    }

    pub fn forked(&self, objects: &impl Objects, sheet: Option<&Sheet>) {
        self.sheets.forked(sheet);
        self.totals.forked();
        self.sites.forked(self.stacks.len());
        self.timeline.forked();
        self.spreads().into_iter().for_each(Spreads::clear);
        self.hottest.clear();
        self.shadow.clear_all();
        self.for_each_live(objects, &mut |object| {
            if let Some(record) = self.record(&object).filter(|_| object.watched) {
                record.reset();
            }
        });
    }

    /// Calls back for each object that is alive, the named ones too.
    pub fn for_each_live(&self, objects: &impl Objects, each: &mut dyn FnMut(Object)) {
        objects.for_each_live(each);
        self.named.within(0..usize::MAX).into_iter().for_each(each);
    }
}

/// An entry of `objects`, with the name of a named object.
pub(super) fn format_entry(
    heat: &HeatMap,
    object: &Object,
    life: &Life,
    free_ns: Option<u64>,
    granules: thermalloc_format::Heat,
) -> thermalloc_format::Object {
    let mut entry = report::entry(object, life, free_ns, granules);
    if object.class == NAMED {
        entry.label = heat.named.label(object).unwrap_or_default();
    }
    entry
}

/// The addresses of a chunk.
fn chunk(object: &Object) -> Range<usize> {
    object.base..object.base + object.capacity
}

impl Freeze for HeatMap {
    fn freeze(&self) {
        self.stacks.freeze();
        self.named.freeze();
        self.hottest.freeze();
        self.spreads().into_iter().for_each(Freeze::freeze);
    }

    fn thaw(&self) {
        self.stacks.thaw();
        self.named.thaw();
        self.hottest.thaw();
        self.spreads().into_iter().for_each(Freeze::thaw);
    }
}
