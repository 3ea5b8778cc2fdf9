//! The accounting as a whole, over a small allocator of the tests' own.

use super::cell::{narrow_offset, wide_offset};
use super::freeze::Freeze;
use super::objects::Objects;
use super::*;
use crate::access::{By, Kind};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::RwLock;
use thermalloc_alloc::ClassId;
use thermalloc_format as format;

const START: usize = 0x20_0000_0000;
const SLOTS: usize = 6;

/// Slots 0 and 1: chunks of 48 and 1,000 bytes; 2 and 3: one span; 4: unwatched chunks; 5: empty.
struct Heap {
    chunks: BTreeMap<usize, Object>,
    live: RwLock<BTreeMap<usize, ()>>,
}

impl Heap {
    fn new() -> Self {
        let mut chunks = BTreeMap::new();
        let mut add = |slot: usize, index: usize, capacity: usize| {
            let base = START + slot * SLOT + index * capacity;
            // Spans have the highest class, as the allocator's.
            let (class, watched) = (ClassId(if slot == 2 { u16::MAX } else { slot as u16 }), slot != 4);
            let (slot, index) = (slot as u32, index as u32);
            chunks.insert(base, Object { base, capacity, class, slot, index, watched, live: false });
        };
        (0..SLOT / 48).for_each(|index| add(0, index, 48));
        (0..SLOT / 1008).for_each(|index| add(1, index, 1008));
        add(2, 0, SLOT + SLOT / 2);
        (0..SLOT / 64).for_each(|index| add(4, index, 64));
        Self { chunks, live: RwLock::default() }
    }

    fn chunk(&self, slot: usize, index: usize) -> Object {
        let capacity = [48, 1008, 0, 0, 64][slot];
        self.chunks[&(START + slot * SLOT + index * capacity)]
    }

    fn born(&self, heat: &HeatMap, chunk: &Object, size: usize, site: SiteId, now_ns: u64) {
        heat.born(self, chunk, size as u64, site, now_ns);
        self.live.write().unwrap().insert(chunk.base, ());
    }

    fn died(&self, heat: &HeatMap, chunk: &Object, now_ns: u64) {
        self.live.write().unwrap().remove(&chunk.base);
        heat.died(self, chunk, now_ns);
    }
}

impl Objects for Heap {
    fn arena(&self) -> Range<usize> {
        START..START + SLOTS * SLOT
    }

    fn at(&self, addr: usize) -> Option<Object> {
        let (_, object) = self.chunks.range(..=addr).next_back()?;
        let live = self.live.read().unwrap().contains_key(&object.base);
        (addr - object.base < object.capacity).then_some(Object { live, ..*object })
    }

    fn for_each_live(&self, each: &mut dyn FnMut(Object)) {
        for base in self.live.read().unwrap().keys() {
            each(Object { live: true, ..self.chunks[base] });
        }
    }
}

fn heat_map(config: Config) -> HeatMap {
    HeatMap::new(config, START..START + SLOTS * SLOT, Box::leak(Box::default())).unwrap()
}

struct OneModule;

impl Locate for OneModule {
    fn locate(&mut self, ip: u64) -> Option<(u32, u64)> {
        ip.checked_sub(1000).map(|offset| (0, offset))
    }

    fn modules(&mut self) -> Vec<format::Module> {
        vec![format::Module { path: "/bin/it".into(), base: 1000, build_id: String::new() }]
    }
}

fn report(heat: &HeatMap, heap: &Heap) -> format::Report {
    report::build(heat, heap, Header::default(), &mut OneModule)
}

fn access(addr: usize, len: usize, kind: Kind) -> Access {
    Access { addr, len, kind, by: By::Program }
}

/// Every sum of the report, taken two ways.
fn assert_conserved(report: &format::Report) {
    let totals = &report.totals;
    let accesses: u64 = report.sites.iter().map(|site| site.reads + site.writes).sum();
    assert_eq!(accesses + totals.unattributed, totals.reads + totals.writes);
    let bytes: u64 = report.sites.iter().map(|site| site.read_bytes + site.write_bytes).sum();
    assert_eq!(bytes + totals.unattributed_bytes, totals.read_bytes + totals.write_bytes);
    assert_eq!(report.classes.iter().map(|class| class.reads + class.writes).sum::<u64>(), accesses);
    assert_eq!(report.sites.iter().map(|site| site.allocs).sum::<u64>(), totals.allocs);
    assert_eq!(report.classes.iter().map(|class| class.allocs).sum::<u64>(), totals.allocs);
    assert_eq!(report.sites.iter().map(|site| site.frees).sum::<u64>(), totals.frees);
    assert_eq!(report.sites.iter().map(|site| site.live_bytes).sum::<u64>(), totals.live_bytes);
    for site in &report.sites {
        assert_eq!(site.accesses_per_object.count, site.allocs);
        assert_eq!(site.lifetime_ns.count, site.frees);
        let mean = (site.reads + site.writes) as f64 / site.allocs as f64;
        assert!((site.accesses_per_object.mean - mean).abs() <= mean * 1e-9);
    }
    assert_eq!(report.objects.len() as u64 + report.objects_omitted, totals.allocs);
    if report.objects_omitted == 0 {
        assert_eq!(report.objects.iter().map(|object| object.reads + object.writes).sum::<u64>(), accesses);
    }
}

fn timeline_sum(report: &format::Report) -> u64 {
    report.timeline.sites.iter().flat_map(|row| row.reads.iter().chain(&row.writes)).sum()
}

#[derive(Clone, Debug)]
enum Step {
    Toggle { slot: usize, index: usize, size: usize, site: u64 },
    Access { at: usize, len: usize, write: bool, kernel: bool, thread: u32, inline: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let toggle = (0usize..3, 0usize..30, 0usize..=48, 0u64..5).prop_map(|(slot, index, size, site)| {
        let index = if slot == 2 { 0 } else { index };
        Step::Toggle { slot, index, size, site }
    });
    // Among the chunks that toggle; at the arena's start, across slots, in the span, in unwatched and empty slots.
    let near = prop_oneof![
        4 => 1000usize..2500,
        4 => SLOT + 1000..SLOT + 31_000,
        1 => 0usize..1100,
        1 => SLOT - 3000..SLOT + 3000,
        1 => 2 * SLOT..4 * SLOT,
        1 => 4 * SLOT..SLOTS * SLOT + 2000,
    ];
    let len = prop_oneof![0usize..70, 0usize..3000, Just(8), Just(16), Just(32), Just(64)];
    let access = (near, len, any::<bool>(), any::<bool>(), 0u32..70, any::<bool>()).prop_map(
        |(at, len, write, kernel, thread, inline)| Step::Access { at, len, write, kernel, thread, inline },
    );
    prop_oneof![toggle, access]
}

/// What the accounting should say, found byte by byte.
#[derive(Default)]
struct Model {
    /// By address, the object's number.
    alive: BTreeMap<usize, usize>,
    /// Reads, writes, bytes of each.
    objects: Vec<[u64; 3]>,
    unattributed: u64,
}

impl Model {
    fn access(&mut self, heap: &Heap, access: &Access) {
        let mut owners = BTreeMap::new();
        let arena = heap.arena();
        let end = access.addr + access.len;
        for addr in (access.addr.max(arena.start)..end.min(arena.end)).step_by(16) {
            let chunk = heap.at(addr);
            if chunk.is_none_or(|chunk| chunk.watched) {
                let owner = chunk.and_then(|chunk| self.alive.get(&chunk.base).copied());
                *owners.entry(owner).or_insert(0) += (end.min(arena.end) - addr).min(16) as u64;
            }
        }
        for (owner, bytes) in owners {
            match owner {
                Some(owner) => {
                    self.objects[owner][usize::from(access.kind == Kind::Write)] += 1;
                    self.objects[owner][2] += bytes;
                }
                None => self.unattributed += 1,
            }
        }
    }
}

fn one(addr: usize, len: usize, kind: Kind) -> Tally {
    Tally::one(access(addr, len, kind))
}

/// Counts an access as inline code does; false if there is no counter for it.
fn count_inline(heat: &HeatMap, access: &Access, thread: u32) -> bool {
    let Access { addr, len, kind, by } = *access;
    if by == By::Kernel || !heat.sheets.covered().contains(&addr) {
        return false;
    }
    let sheet = heat.sheets.of(thread);
    let cell = (addr & !15).wrapping_add(sheet.bias());
    let words = match (len, wide_offset(kind, len)) {
        (1..=16, _) => [(cell + narrow_offset(kind), 1), (cell + narrow_offset(kind) + 4, len as i32 - 8)],
        (_, Some(offset)) => [(cell + sheet.wide() + offset, 1), (cell + sheet.wide() + offset, 0)],
        _ => return false,
    };
    for (word, by) in words {
        heat.sheets.on_fault(word);
        // SAFETY: a word of the sheet, which the call above has made accessible.
        #[allow(unsafe_code)]
        unsafe {
            *(word as *mut i32) += by;
        }
    }
    true
}

fn run(heat: &HeatMap, heap: &Heap, steps: &[Step]) -> Model {
    let mut model = Model::default();
    for (now, step) in steps.iter().enumerate() {
        let now_ns = now as u64 * 10_000_000;
        match *step {
            Step::Toggle { slot, index, size, site } => {
                let chunk =
                    if slot == 2 { heap.chunks[&(START + 2 * SLOT)] } else { heap.chunk(slot, index) };
                if model.alive.remove(&chunk.base).is_some() {
                    heap.died(heat, &chunk, now_ns);
                } else {
                    heap.born(heat, &chunk, size, heat.stacks.intern(&[1000 + site]), now_ns);
                    model.alive.insert(chunk.base, model.objects.len());
                    model.objects.push([0; 3]);
                }
            }
            Step::Access { at, len, write, kernel, thread, inline } => {
                let kind = if write { Kind::Write } else { Kind::Read };
                let by = if kernel { By::Kernel } else { By::Program };
                let access = Access { addr: START - 1000 + at, len, kind, by };
                model.access(heap, &access);
                if !(inline && count_inline(heat, &access, thread)) {
                    heat.charge(heap, &Tally::one(access), thread, now_ns);
                }
            }
        }
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_access_is_charged_to_its_owner(steps in proptest::collection::vec(step(), 0..150)) {
        let (heat, heap) = (heat_map(Config::default()), Heap::new());
        let mut model = run(&heat, &heap, &steps);
        let uncollected = report(&heat, &heap);
        assert_conserved(&uncollected);
        heat.settle(&heap, &heap.arena(), u64::MAX >> 1);
        let report = report(&heat, &heap);
        assert_conserved(&report);
        prop_assert_eq!(&uncollected.totals, &report.totals);
        let known = |report: &format::Report| -> Vec<_> {
            report.objects.iter().map(|o| (o.addr, o.reads, o.writes, o.threads, o.heat.clone())).collect()
        };
        prop_assert_eq!(known(&uncollected), known(&report));
        prop_assert_eq!(timeline_sum(&report) + report.totals.unattributed, report.totals.reads + report.totals.writes);
        prop_assert_eq!(report.totals.unattributed, model.unattributed);
        // Dead objects without accesses are not kept; all others are.
        let mut found: Vec<[u64; 3]> = report.objects.iter()
            .map(|object| [object.reads, object.writes, object.read_bytes + object.write_bytes]).collect();
        found.resize(model.objects.len(), [0; 3]);
        found.sort_unstable();
        model.objects.sort_unstable();
        prop_assert_eq!(found, model.objects);
        for object in &report.objects {
            let is_hot = object.reads + object.writes != 0;
            prop_assert_eq!(!object.heat.reads.is_empty(), is_hot);
            prop_assert_eq!(object.heat.reads.len(), object.heat.writes.len());
            prop_assert_eq!(object.first_access_ns.is_some(), is_hot);
            prop_assert_eq!(object.threads != 0, is_hot);
        }
        let text = serde_json::to_vec(&report).unwrap();
        prop_assert!(format::read::parse::<format::Heat>(&text).unwrap() == report);
    }

    #[test]
    fn a_fork_child_starts_again_with_what_is_alive(steps in proptest::collection::vec(step(), 0..100)) {
        let (heat, heap) = (heat_map(Config::default()), Heap::new());
        run(&heat, &heap, &steps);
        let before = report(&heat, &heap);
        heat.freeze();
        heat.thaw();
        heat.forked(&heap, None);
        let after = report(&heat, &heap);
        prop_assert_eq!(after.totals.live_bytes, before.totals.live_bytes);
        prop_assert_eq!(&after.totals, &format::Totals {
            live_bytes: before.totals.live_bytes, peak_live_bytes: before.totals.live_bytes, ..Default::default()
        });
        prop_assert_eq!(after.objects_omitted, 0);
        let key = |object: &format::Object| (object.addr, object.size, object.site, object.alloc_ns);
        let mut expected: Vec<_> = before.objects.iter().filter(|object| object.free_ns.is_none()).map(key).collect();
        let mut found: Vec<_> = after.objects.iter().map(key).collect();
        expected.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, expected);
        for object in &after.objects {
            prop_assert_eq!((object.reads, object.writes, object.first_access_ns), (0, 0, None));
            prop_assert!(object.heat.reads.is_empty());
        }
        prop_assert_eq!(timeline_sum(&after), 0);
        prop_assert!(after.sites.iter().all(|site| site.reads + site.writes + site.allocs == 0));
    }
}

#[test]
fn concurrent_charges_are_exact() {
    let (heat, heap) = (heat_map(Config::default()), Heap::new());
    let site = heat.stacks.intern(&[1, 2]);
    let chunks: Vec<_> = (0..4).map(|index| heap.chunk(1, index)).collect();
    chunks.iter().for_each(|chunk| heap.born(&heat, chunk, 1000, site, 5));
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (heat, heap, chunks) = (&heat, &heap, &chunks);
            scope.spawn(move || {
                for step in 0..20_000usize {
                    let chunk = &chunks[step % 4];
                    let now = 1 + step as u64 * 100_000;
                    heat.charge(heap, &one(chunk.base + 16 * (step % 3), 8, Kind::Write), thread, now);
                    heat.charge(heap, &one(chunk.base + 992, 32, Kind::Read), thread, now);
                }
            });
        }
    });
    let report = report(&heat, &heap);
    assert_conserved(&report);
    assert_eq!((report.sites[0].writes, report.sites[0].max_threads), (80_000, 4));
    assert_eq!(report.sites[0].write_bytes, 640_000);
    // Each read spans two chunks, the last of them a dead one.
    assert_eq!((report.sites[0].reads, report.totals.unattributed), (140_000, 20_000));
    assert_eq!(timeline_sum(&report), 220_000);
    for object in &report.objects {
        assert_eq!(object.heat.writes.iter().sum::<u64>(), 20_000);
        assert_eq!(object.heat.reads[62], 20_000);
    }
}

#[test]
fn sums_hold_while_objects_die_under_accesses() {
    let (heat, heap) = (heat_map(Config { dead_objects: 10, ..Config::default() }), Heap::new());
    std::thread::scope(|scope| {
        for thread in 0..2usize {
            let (heat, heap) = (&heat, &heap);
            scope.spawn(move || {
                for step in 0..20_000usize {
                    let chunk = heap.chunk(0, 2 * (step % 5) + thread);
                    heap.born(heat, &chunk, 40, heat.stacks.intern(&[step as u64 % 7]), step as u64);
                    heat.charge(heap, &one(chunk.base, 8, Kind::Write), thread as u32, step as u64);
                    heap.died(heat, &chunk, step as u64 + 10);
                }
            });
            scope.spawn(move || {
                for step in 0..40_000usize {
                    heat.charge(heap, &one(START + step % 480, 100, Kind::Read), 9, step as u64);
                }
            });
        }
    });
    let report = report(&heat, &heap);
    assert_conserved(&report);
    assert_eq!((report.totals.allocs, report.totals.frees, report.totals.live_bytes), (40_000, 40_000, 0));
    assert_eq!((report.objects.len(), report.objects_omitted), (10, 39_990));
    // Nothing of the dead is left in the granules.
    for index in 0..12 {
        assert!(heat.shadow.collect(&heap.chunk(0, index), 48, 64, &[]).reads.is_empty());
    }
}

#[test]
fn a_report_is_bounded_and_says_what_it_cut() {
    let config = Config { report_objects: 20, report_entries: 70, dead_objects: 5, ..Config::default() };
    let (heat, heap) = (heat_map(config), Heap::new());
    let site = heat.stacks.intern(&[5000]);
    let span = heap.chunks[&(START + 2 * SLOT)];
    heap.born(&heat, &span, span.capacity, site, 0);
    for step in 0..3000 {
        heat.charge(&heap, &one(span.base + SLOT + step % 16, 1, Kind::Read), 0, 1);
    }
    for index in 0..100 {
        let chunk = heap.chunk(1, index);
        heap.born(&heat, &chunk, 1000, site, 0);
        (0..=index).for_each(|_| heat.charge(&heap, &one(chunk.base + 999, 1, Kind::Write), 0, 1));
        if index % 2 == 0 {
            heap.died(&heat, &chunk, 2);
        }
    }
    let report = report(&heat, &heap);
    assert_conserved(&report);
    assert_eq!((report.objects.len(), report.objects_omitted), (20, 81));
    let hottest = &report.objects[0];
    assert!(hottest.heat.reads.len() <= ENTRIES && hottest.heat.granule > 16);
    assert_eq!(hottest.heat.reads[SLOT / hottest.heat.granule as usize], 3000);
    assert!(report.objects[1..].iter().all(|object| object.heat.reads.len() <= 64));
    assert_eq!(report.objects[1..].iter().filter(|object| object.free_ns.is_some()).count(), 5);
    assert!(
        report
            .objects
            .windows(2)
            .all(|pair| pair[0].reads + pair[0].writes >= pair[1].reads + pair[1].writes)
    );
    assert_eq!(report.limits.live_objects_omitted, 36);
    assert_eq!(report.warnings.len(), 1);
    assert_eq!(report.frames, [format::Frame { ip: 5000, module: Some(0), offset: 4000 }]);
    assert_eq!(report.modules.len(), 1);
}

#[test]
fn a_released_slot_keeps_nothing() {
    let (heat, heap) = (heat_map(Config::default()), Heap::new());
    let chunk = heap.chunk(1, 3);
    heap.born(&heat, &chunk, 9, SiteId::OTHER, 0);
    heat.charge(&heap, &one(chunk.base, 1, Kind::Read), 0, 1);
    heat.records.release(1);
    heat.shadow.clear_range(SLOT, SLOT);
    assert!(heat.records.of(&chunk).unwrap().peek().is_none());
    assert!(heat.shadow.collect(&chunk, 9, 9, &[]).reads.is_empty());
}

#[test]
fn bad_granules_are_refused() {
    for granule in [0, 8, 17, 48, 8192] {
        let made = HeatMap::new(Config { granule, ..Config::default() }, START..START + SLOT, &TOTALS);
        assert_eq!(made.err(), Some(InitError::Granule(granule)));
    }
}

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn churn_keeps_memory_bounded() {
    const ALONE: &str = "THERMALLOC_TEST_CHURN";
    if std::env::var_os(ALONE).is_none() {
        // In a process of its own: the other tests' memory must not show.
        let test = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "heat::tests::churn_keeps_memory_bounded"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        assert!(test.status.success(), "{}", String::from_utf8_lossy(&test.stdout));
        return;
    }
    let config = Config { dead_objects: 2000, dead_bytes: 1 << 20, ..Config::default() };
    let (heat, heap) = (heat_map(config), Heap::new());
    let churn = |round: usize| {
        for step in 0..20_000 {
            let chunk = heap.chunk(1, step % 1000);
            let now = (round * 20_000 + step) as u64 * 1000;
            heat.born(&heap, &chunk, 1000, heat.stacks.intern(&[step as u64 % 300, 1]), now);
            let accesses = 1 + step % 9 + round;
            (0..accesses).for_each(|at| heat.charge(&heap, &one(chunk.base + at, 8, Kind::Write), 0, now));
            heat.died(&heap, &chunk, now + step as u64);
        }
    };
    churn(0);
    churn(1);
    let before = resident();
    (2..8).for_each(churn);
    let growth = resident().saturating_sub(before);
    assert!(growth < 1 << 20, "{growth} bytes more after 120,000 more objects");
}
