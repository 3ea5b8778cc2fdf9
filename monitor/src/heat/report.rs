//! Everything known as a [`Report`].
//!
//! Two passes. The first reads the record of every live object, adds it to its site and class, and notes the
//! hottest. The second collects heat arrays, of these alone. What the dead have left is read before the live, and
//! the totals last: a count may be missed on its way from one to the other, but is never seen twice.

use super::cell::Tally;
use super::coarsen::coarsen;
use super::counts::Counts;
use super::life::format_entry;
use super::named::NAMED;
use super::objects::Objects;
use super::record::{Life, Record};
use super::spread::Spread;
use super::stacks::SiteId;
use super::{CLASS_DIGITS, ENTRIES, HeatMap};
use crate::access::Kind;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::Ordering::Relaxed;
use thermalloc_alloc::{ClassId, Object};
use thermalloc_format as format;

/// Entries of an object's heat arrays when the report's share is used up.
const FEW: usize = 64;
/// Sites in the timeline at most.
const TIMELINE_SITES: usize = 1000;

/// What the accounting cannot know.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The process.
    pub program: format::Program,
    /// The configuration; `granule` is filled in here.
    pub config: format::Config,
    /// The machine.
    pub host: format::Host,
    /// Size classes with `id`, `chunk_size`, `per_slab` and `slabs`; the rest is filled in here. Classes without
    /// allocations are left out.
    pub classes: Vec<format::Class>,
    /// Sites that were not patched.
    pub unpatched: Vec<format::Unpatched>,
    /// Further warnings.
    pub warnings: Vec<String>,
}

/// Where code addresses lie.
pub trait Locate {
    /// Index of the module that an address lies in, and the offset there.
    fn locate(&mut self, ip: u64) -> Option<(u32, u64)>;
    /// The modules. Asked after all addresses.
    fn modules(&mut self) -> Vec<format::Module>;
}

/// An entry of `objects`.
pub(super) fn entry(
    object: &Object,
    life: &Life,
    free_ns: Option<u64>,
    heat: format::Heat,
) -> format::Object {
    let known = |ns: u64| (ns != 0).then_some(ns);
    format::Object {
        addr: object.base as u64,
        size: life.size,
        class: object.class.0.into(),
        site: life.site.0,
        alloc_ns: life.alloc_ns,
        free_ns,
        reads: life.counts.reads,
        writes: life.counts.writes,
        read_bytes: life.counts.read_bytes,
        write_bytes: life.counts.write_bytes,
        threads: life.threads.count_ones(),
        first_access_ns: known(life.first_ns),
        last_access_ns: known(life.last_ns),
        label: String::new(),
        heat,
    }
}

/// What live objects add to the sum of the dead of a site or class.
struct Sum {
    counts: Counts,
    threads: u32,
    accesses: Spread,
}

impl Sum {
    fn add(&mut self, life: &Life) {
        self.counts += life.counts;
        self.threads = self.threads.max(life.threads.count_ones());
        self.accesses.record(life.counts.accesses());
    }
}

/// What the first pass finds.
struct Survey {
    sites: Vec<Sum>,
    classes: BTreeMap<ClassId, Sum>,
    /// The hottest live objects: accesses, then address, then whether named; the coldest on top.
    live: BinaryHeap<Reverse<(u64, usize, bool)>>,
    live_count: u64,
    /// Objects that had died before.
    dead_count: u64,
    /// The hottest of these.
    dead: Vec<format::Object>,
}

pub(super) fn build(
    heat: &HeatMap,
    objects: &impl Objects,
    header: Header,
    locate: &mut dyn Locate,
) -> format::Report {
    let survey = survey(heat, objects);
    let mut report = format::Report {
        format: format::FORMAT.into(),
        version: format::VERSION,
        program: header.program,
        config: format::Config { granule: heat.shadow.granule(), ..header.config },
        host: header.host,
        warnings: header.warnings,
        unpatched: header.unpatched,
        ..Default::default()
    };
    report.classes = classes(heat, header.classes, &survey);
    (report.frames, report.sites) = sites(heat, &survey, locate);
    report.modules = locate.modules();
    report.timeline = timeline(heat, &report.sites, &mut report.limits);
    list_objects(heat, objects, survey, &mut report);
    report.limits.stacks_unnamed = heat.stacks.overflows();
    warn(&mut report);
    report.totals = heat.totals.snapshot();
    add_uncollected(heat, objects, &mut report.totals);
    report
}

/// Adds what still lies in the sheets to the totals.
fn add_uncollected(heat: &HeatMap, objects: &impl Objects, totals: &mut format::Totals) {
    heat.sheets.peek(heat.sheets.covered(), &mut |tally, _| {
        let orphaned = heat.split(objects, &tally.access, |object, _, len| {
            let Some(_) = heat.record(object).and_then(Record::site) else { return false };
            add(totals, &tally, len as u64);
            true
        }) as u64;
        if orphaned != 0 {
            add(totals, &tally, orphaned);
            totals.unattributed += tally.count;
            totals.unattributed_bytes = totals.unattributed_bytes.wrapping_add(tally.bytes(orphaned));
        }
    });
}

fn add(totals: &mut format::Totals, tally: &Tally, len: u64) {
    let (count, bytes) = match tally.access.kind {
        Kind::Read => (&mut totals.reads, &mut totals.read_bytes),
        Kind::Write => (&mut totals.writes, &mut totals.write_bytes),
    };
    *count += tally.count;
    *bytes = bytes.wrapping_add(tally.bytes(len));
}

fn survey(heat: &HeatMap, objects: &impl Objects) -> Survey {
    let dead_count = heat.totals.frees.load(Relaxed);
    let dead = heat.hottest.snapshot();
    let sites = (0..heat.stacks.len()).map(|site| Sum {
        counts: heat.sites.site(SiteId(site as u32)).map_or_else(Counts::default, |site| site.counts.load()),
        threads: 0,
        accesses: heat.site_accesses.get(site),
    });
    let classes = heat.sites.classes_used().map(|(id, class)| {
        let accesses = heat.class_accesses.get(id.0.into());
        (id, Sum { counts: class.counts.load(), threads: 0, accesses })
    });
    let mut survey = Survey {
        sites: sites.collect(),
        classes: classes.collect(),
        live: BinaryHeap::new(),
        live_count: 0,
        dead_count,
        dead,
    };
    heat.for_each_live(objects, &mut |object| {
        if let Some(life) = heat.peek(objects, &object).filter(|_| object.watched) {
            survey.add(&object, &life, heat.config.report_objects);
        }
    });
    survey
}

impl Survey {
    fn add(&mut self, object: &Object, life: &Life, max_objects: usize) {
        self.live_count += 1;
        if let Some(site) = self.sites.get_mut(life.site.0 as usize) {
            site.add(life);
        }
        let nothing = || Sum { counts: Counts::default(), threads: 0, accesses: Spread::new(CLASS_DIGITS) };
        self.classes.entry(object.class).or_insert_with(nothing).add(life);
        let entry = Reverse((life.counts.accesses(), object.base, object.class == NAMED));
        if self.live.len() < max_objects {
            self.live.push(entry);
        } else if let Some(mut coldest) = self.live.peek_mut()
            && entry.0 > coldest.0
        {
            *coldest = entry;
        }
    }
}

fn classes(heat: &HeatMap, known: Vec<format::Class>, survey: &Survey) -> Vec<format::Class> {
    let mut known: BTreeMap<u32, format::Class> = known.into_iter().map(|class| (class.id, class)).collect();
    let filled = survey.classes.iter().filter_map(|(&id, sum)| {
        let class = heat.sites.class(id)?;
        let id = u32::from(id.0);
        Some(format::Class {
            id,
            allocs: class.allocs.load(Relaxed),
            frees: class.frees.load(Relaxed),
            reads: sum.counts.reads,
            writes: sum.counts.writes,
            accesses_per_object: sum.accesses.distribution(),
            ..known.remove(&id).unwrap_or_default()
        })
    });
    filled.collect()
}

/// Sites in use, and the frames that they refer to.
fn sites(
    heat: &HeatMap,
    survey: &Survey,
    locate: &mut dyn Locate,
) -> (Vec<format::Frame>, Vec<format::Site>) {
    let mut frames = Vec::new();
    let mut known = BTreeMap::new();
    let mut frame = |ip: u64| {
        *known.entry(ip).or_insert_with(|| {
            let place = locate.locate(ip);
            let (module, offset) = place.map_or((None, 0), |(module, offset)| (Some(module), offset));
            frames.push(format::Frame { ip, module, offset });
            frames.len() as u32 - 1
        })
    };
    let mut sites = Vec::new();
    for (id, sum) in survey.sites.iter().enumerate() {
        let Some(site) = heat.sites.site(SiteId(id as u32)) else { continue };
        let allocs = site.allocs.load(Relaxed);
        if allocs == 0 && sum.accesses.count() == 0 {
            continue;
        }
        sites.push(format::Site {
            id: id as u32,
            frames: heat.stacks.get(SiteId(id as u32)).map(&mut frame).collect(),
            allocs,
            frees: site.frees.load(Relaxed),
            bytes: site.bytes.load(Relaxed),
            live_bytes: site.live_bytes.load(Relaxed),
            peak_live_bytes: site.peak_live_bytes.load(Relaxed),
            reads: sum.counts.reads,
            writes: sum.counts.writes,
            read_bytes: sum.counts.read_bytes,
            write_bytes: sum.counts.write_bytes,
            max_threads: sum.threads.max(site.max_threads.load(Relaxed) as u32),
            accesses_per_object: sum.accesses.distribution(),
            lifetime_ns: heat.site_lifetimes.get(id).distribution(),
        });
    }
    (frames, sites)
}

fn timeline(heat: &HeatMap, sites: &[format::Site], limits: &mut format::Limits) -> format::Timeline {
    let accesses = |site: &format::Site| site.reads + site.writes;
    let mut hot: Vec<&format::Site> = sites.iter().filter(|site| accesses(site) != 0).collect();
    hot.sort_by_key(|site| Reverse(accesses(site)));
    limits.timeline_sites_omitted = hot.len().saturating_sub(TIMELINE_SITES) as u64;
    hot.truncate(TIMELINE_SITES);
    let ids: Vec<SiteId> = hot.iter().map(|site| SiteId(site.id)).collect();
    let (interval_ns, reached, rows) = heat.timeline.rows(&ids);
    format::Timeline {
        interval_ns,
        t_ns: (0..reached as u64).map(|bucket| bucket * interval_ns).collect(),
        sites: hot
            .iter()
            .zip(rows)
            .map(|(site, row)| format::SiteTimeline {
                site: site.id,
                reads: row.reads[..reached].to_vec(),
                writes: row.writes[..reached].to_vec(),
            })
            .collect(),
    }
}

/// Fills in the hottest objects, live before dead where they are equally hot, and counts the others.
fn list_objects(heat: &HeatMap, objects: &impl Objects, survey: Survey, report: &mut format::Report) {
    let Survey { live, live_count, dead_count, dead, .. } = survey;
    let live = live.into_iter().filter_map(|Reverse((_, base, named))| {
        let object = if named { heat.named.at(base) } else { objects.at(base) };
        let object = object.filter(|object| object.base == base)?;
        let life = heat.peek(objects, &object)?;
        Some((object, format_entry(heat, &object, &life, None, format::Heat::default())))
    });
    let mut listed: Vec<(Option<Object>, format::Object)> =
        live.map(|(object, entry)| (Some(object), entry)).collect();
    listed.extend(dead.into_iter().map(|entry| (None, entry)));
    let rank = |(_, entry): &(Option<Object>, format::Object)| {
        (
            Reverse(entry.reads.saturating_add(entry.writes)),
            entry.free_ns.is_some(),
            entry.addr,
            entry.alloc_ns,
        )
    };
    listed.sort_by_key(rank);
    listed.truncate(heat.config.report_objects);

    let mut room = heat.config.report_entries;
    for (object, entry) in &mut listed {
        let limit = if room == 0 { FEW } else { ENTRIES };
        match object {
            Some(object) if entry.reads | entry.writes != 0 => {
                entry.heat =
                    heat.shadow.collect(object, entry.size, limit, &heat.uncollected(objects, object));
            }
            Some(_) => entry.heat.granule = heat.shadow.granule(),
            None => {
                coarsen(&mut entry.heat, limit);
            }
        }
        room = room.saturating_sub(entry.heat.reads.len());
        report.limits.objects_coarsened += u64::from(entry.heat.granule > heat.shadow.granule());
    }
    let live_listed = listed.iter().filter(|(object, _)| object.is_some()).count() as u64;
    report.limits.live_objects_omitted = live_count.saturating_sub(live_listed);
    report.objects_omitted = (live_count + dead_count).saturating_sub(listed.len() as u64);
    report.objects = listed.into_iter().map(|(_, entry)| entry).collect();
}

/// Says in words what was cut.
fn warn(report: &mut format::Report) {
    let limits = &report.limits;
    let mut warn = |count: u64, what: &str| {
        if count != 0 {
            report.warnings.push(format!("{count} {what}"));
        }
    };
    warn(
        limits.stacks_unnamed,
        "allocations are counted at site 0 because the table of call stacks is full; a smaller depth helps",
    );
    warn(
        limits.timeline_sites_omitted,
        "sites with accesses are not in the timeline, which shows the hottest alone",
    );
    warn(
        limits.live_objects_omitted,
        "live objects are not listed; they are counted in their sites and classes",
    );
}
