//! The whole merge.

use super::*;
use crate::options::Align;
use proptest::prelude::*;
use thermalloc_format::{Class, Distribution, Frame, Module, Name, Site, SiteTimeline, Timeline};

fn options(objects: usize) -> MergeOptions {
    MergeOptions {
        paths: Vec::new(),
        output: "out".into(),
        by_name: false,
        align: None,
        objects,
        symbols: Vec::new(),
    }
}

/// A process whose file was mapped at `base`, with one site for each (offset, reads), each with one live object.
fn report(base: u64, start: u64, sites: &[(u64, u64)]) -> Report {
    let mut report = Report { format: FORMAT.into(), version: VERSION, ..Report::default() };
    report.program.start_unix_ns = start;
    report.program.elapsed_ns = 1000;
    report.modules = vec![Module { path: "/bin/prog".into(), base, build_id: "ab".into() }];
    report.classes =
        vec![Class { id: 4, chunk_size: 64, per_slab: 9, allocs: sites.len() as u64, ..Class::default() }];
    report.timeline =
        Timeline { interval_ns: 100, t_ns: (0..10).map(|at| at * 100).collect(), sites: Vec::new() };
    for (index, &(offset, reads)) in sites.iter().enumerate() {
        let id = index as u32 + 1;
        report.frames.push(Frame { ip: base + offset, module: Some(0), offset });
        let accesses_per_object =
            Distribution { count: 1, min: reads, max: reads, mean: reads as f64, ..Distribution::default() };
        report.sites.push(Site {
            id,
            frames: vec![index as u32],
            allocs: 1,
            bytes: 64,
            reads,
            accesses_per_object,
            ..Site::default()
        });
        report.objects.push(Object {
            addr: 0x1000,
            size: 64,
            class: 4,
            site: id,
            alloc_ns: 5,
            reads,
            ..Object::default()
        });
        let mut row = vec![0; 10];
        row[index % 10] = reads;
        report.timeline.sites.push(SiteTimeline { site: id, reads: row, writes: vec![0; 10] });
        report.totals.reads += reads;
        report.totals.allocs += 1;
        report.totals.bytes += 64;
    }
    report
}

fn merge(reports: &[Report], options: &MergeOptions) -> Report {
    let without = reports.iter().map(|report| Report { objects: Vec::new(), ..report.clone() }).collect();
    let mut each = |index: usize, take: &mut dyn FnMut(Object)| {
        reports[index].objects.iter().cloned().for_each(take);
        Ok(())
    };
    merged(without, options, &mut each).unwrap().0
}

#[test]
fn the_same_code_in_two_processes_is_one_site() {
    let (a, b) = (report(0x5000, 100, &[(1, 10), (2, 20)]), report(0x9000, 300, &[(3, 4), (2, 5)]));
    let merged = merge(&[a, b], &options(100));
    let sites: Vec<(u32, u64)> = merged.sites.iter().map(|site| (site.id, site.reads)).collect();
    assert_eq!(sites, [(1, 10), (2, 25), (3, 4)]);
    assert_eq!((merged.modules.len(), merged.frames.len(), merged.classes.len()), (1, 3, 1));
    assert_eq!((merged.totals.reads, merged.classes[0].allocs, merged.program.elapsed_ns), (39, 4, 1200));
    // The second process's objects: other ids, later, elsewhere.
    let found = merged.objects.iter().find(|object| object.reads == 5).unwrap();
    assert_eq!((found.site, found.class, found.alloc_ns, found.addr), (2, 0, 205, 0x1000 + (1 << 48)));
    assert_eq!(merged.sites[1].accesses_per_object.count, 2);
    assert_eq!(merged.parts.len(), 2);
}

#[test]
fn the_share_of_time_that_was_watched_stays() {
    let (mut a, b) = (report(0x5000, 0, &[(1, 10)]), report(0x9000, 0, &[(1, 4)]));
    assert_eq!(merge(&[a.clone(), b.clone()], &options(9)).program.watched_ns, None);
    a.program.watched_ns = Some(500);
    // The other says nothing: it was watched all the time.
    assert_eq!(merge(&[a, b], &options(9)).program.watched_ns, Some(750));
}

#[test]
fn different_builds_meet_by_name() {
    let named = |mut report: Report, build: &str| {
        report.modules[0].build_id = build.into();
        let name = Name { function: "f".into(), file: "f.c".into(), line: 3 };
        report.names = vec![vec![name]; report.frames.len()];
        report
    };
    let (a, b) = (named(report(0x5000, 0, &[(1, 10)]), "aa"), named(report(0x9000, 0, &[(2, 20)]), "bb"));
    let by_code = merge(&[a.clone(), b.clone()], &options(9));
    assert_eq!(by_code.sites.len(), 2);
    let by_name = merge(&[a, b], &MergeOptions { by_name: true, ..options(9) });
    assert_eq!((by_name.sites.len(), by_name.sites[0].reads), (1, 30));
    assert_eq!(by_name.names[0][0].function, "f");
}

#[test]
fn a_merge_of_merges_keeps_objects_apart() {
    let single = |start| report(0x5000, start, &[(1, 10)]);
    let inner = merge(&[single(0), single(10)], &options(9));
    let outer = merge(&[inner.clone(), single(20), inner], &options(9));
    let parts: Vec<u64> = outer.objects.iter().map(|object| object.addr >> ADDRESS_BITS).collect();
    assert_eq!(parts, [0, 1, 2, 3, 4]);
    assert_eq!((outer.parts.len(), outer.sites.len(), outer.totals.reads), (5, 1, 50));
}

#[test]
fn runs_that_do_not_overlap_begin_together() {
    let (a, b) = (report(0, 0, &[(1, 10)]), report(0, 5000, &[(1, 20)]));
    let merged = merge(&[a.clone(), b.clone()], &options(9));
    assert_eq!((merged.program.elapsed_ns, merged.objects[0].alloc_ns), (1000, 5));
    let merged = merge(&[a, b], &MergeOptions { align: Some(Align::Clock), ..options(9) });
    assert_eq!((merged.program.elapsed_ns, merged.objects[0].alloc_ns), (6000, 5005));
}

proptest! {
    #[test]
    fn totals_add_up_whatever_is_cut(
        runs in prop::collection::vec((0u64..3000, prop::collection::vec((0u64..8, 0u64..1000), 0..12)), 1..5),
        limit in 0usize..30,
    ) {
        let reports: Vec<Report> =
            runs.iter().enumerate().map(|(index, (start, sites))| report(index as u64 * 4096, *start, sites)).collect();
        let merged = merge(&reports, &options(limit));
        let all = reports.iter().map(|report| report.totals.reads).sum::<u64>();
        let objects: u64 = reports.iter().map(|report| report.objects.len() as u64).sum();
        prop_assert_eq!(merged.totals.reads, all);
        prop_assert_eq!(merged.sites.iter().map(|site| site.reads).sum::<u64>(), all);
        prop_assert_eq!(merged.timeline.sites.iter().flat_map(|row| &row.reads).sum::<u64>(), all);
        prop_assert!(merged.objects.len() <= limit && merged.timeline.t_ns.len() <= 64);
        prop_assert_eq!(merged.objects.len() as u64 + merged.objects_omitted, objects);
        // Every reference leads somewhere, and ids are not given twice.
        let ids: std::collections::HashSet<u32> = merged.sites.iter().map(|site| site.id).collect();
        prop_assert_eq!(ids.len(), merged.sites.len());
        prop_assert!(merged.objects.iter().all(|object| ids.contains(&object.site)));
        prop_assert!(merged.timeline.sites.iter().all(|row| ids.contains(&row.site)));
        prop_assert!(merged.sites.iter().flat_map(|site| &site.frames).all(|&at| (at as usize) < merged.frames.len()));
        // It reads back as it was written.
        let text = serde_json::to_vec(&merged).unwrap();
        prop_assert_eq!(thermalloc_format::read::parse::<Heat>(&text).unwrap(), merged);
    }
}
