//! The advice as a whole, on programs whose heat is known.

use super::*;
use crate::options::Place;
use proptest::prelude::*;
use serde_json::Value;
use thermalloc_format::{Frame, Heat, Module, Name, Object, Report, Site};

fn options(by: Place, fast_bytes: u64) -> AdviseOptions {
    AdviseOptions {
        path: "heat.json".into(),
        fast_bytes,
        by,
        write_cost: 1.0,
        hints: None,
        n: 20,
        fast_latency: None,
        slow_latency: None,
        fast_bandwidth: None,
        slow_bandwidth: None,
        symbols: Vec::new(),
    }
}

/// Name of the site, and its objects: size, begin, end, reads, writes.
type Planted<'a> = (&'a str, &'a [(u64, u64, Option<u64>, u64, u64)]);

const ELAPSED: u64 = 1000;

fn report(planted: &[Planted<'_>]) -> Report {
    let mut report = Report::default();
    report.program.elapsed_ns = ELAPSED;
    report.modules = vec![Module { path: "/bin/prog".into(), base: 0, build_id: "ab".into() }];
    for (index, (name, objects)) in planted.iter().enumerate() {
        let (index, offset) = (index as u32, 16 * index as u64);
        report.frames.push(Frame { ip: offset, module: Some(0), offset });
        report.names.push(vec![Name { function: (*name).into(), file: "prog.c".into(), line: 1 }]);
        let mut site = Site { id: index + 1, frames: vec![index], ..Site::default() };
        for &(size, begin, end, reads, writes) in *objects {
            site.allocs += 1;
            site.bytes += size;
            site.reads += reads;
            site.writes += writes;
            let addr = 0x10_0000 * (report.objects.len() as u64 + 1);
            let heat = Heat { granule: 16, reads: vec![reads], writes: vec![writes] };
            report.objects.push(Object {
                addr,
                size,
                site: site.id,
                alloc_ns: begin,
                free_ns: end,
                reads,
                writes,
                heat,
                ..Object::default()
            });
        }
        let alive = |at: u64| {
            objects.iter().filter(move |object| object.1 <= at && object.2.is_none_or(|end| at < end))
        };
        let peak = objects.iter().map(|object| alive(object.1).map(|object| object.0).sum()).max();
        site.peak_live_bytes = peak.unwrap_or(0);
        report.sites.push(site);
    }
    report
}

fn plan(report: &Report, options: &AdviseOptions) -> (Gathered, Plan) {
    let without = Report { objects: Vec::new(), ..report.clone() };
    let mut gathered = Gathered::new(without, options);
    report.objects.iter().for_each(|object| gathered.add(object.clone(), options.by));
    gathered.add_unlisted();
    let plan = Plan::new(&mut gathered, options);
    (gathered, plan)
}

fn chosen(report: &Report, options: &AdviseOptions) -> Vec<String> {
    let (gathered, plan) = plan(report, options);
    let site = |index: &usize| match plan.items[*index].what {
        items::What::Site(index) => gathered.report.sites[index].id,
        items::What::Object(index) => gathered.objects[index].site,
        items::What::Page(_, site) => site,
    };
    let name = |site: u32| gathered.report.names[site as usize - 1][0].function.clone();
    plan.choice.chosen.iter().map(|index| name(site(index))).collect()
}

const HEAP: [Planted<'static>; 4] = [
    ("cold", &[(1 << 20, 0, None, 10, 10)]),
    ("hot", &[(1000, 0, None, 50_000, 0), (1000, 0, None, 50_000, 0)]),
    ("written", &[(2000, 0, None, 0, 40_000)]),
    ("never", &[(100, 0, None, 0, 0)]),
];

#[test]
fn hot_sites_go_first_and_writes_weigh_as_asked() {
    let report = report(&HEAP);
    for by in [Place::Site, Place::Object] {
        assert_eq!(chosen(&report, &options(by, 2000)).first().map(String::as_str), Some("hot"), "{by:?}");
        let writes = AdviseOptions { write_cost: 5.0, ..options(by, 2000) };
        assert_eq!(chosen(&report, &writes), ["written"], "{by:?}");
    }
    assert_eq!(chosen(&report, &options(Place::Site, 1 << 30)), ["hot", "written", "cold"]);
    assert!(chosen(&report, &options(Place::Site, 0)).is_empty());
}

#[test]
fn pages_hold_what_lies_on_them() {
    // Each object begins a page; its heat is in its first bytes.
    let (_, plan) = plan(&report(&HEAP), &options(Place::Page, 3 * 4096));
    assert!(plan.share(plan.choice.worth) > 0.99, "{}", plan.share(plan.choice.worth));
    assert_eq!(plan.choice.peak, 3 * 4096);
}

#[test]
fn sites_that_live_one_after_the_other_share_memory() {
    let report = report(&[
        ("early", &[(1000, 0, Some(400), 100, 0)]),
        ("late", &[(1000, 500, None, 90, 0)]),
        ("always", &[(1000, 0, None, 150, 0)]),
    ]);
    assert_eq!(chosen(&report, &options(Place::Site, 1000)), ["early", "late"]);
}

#[test]
fn churn_needs_its_peak_not_its_sum() {
    let many: Vec<_> = (0..100).map(|at| (1000, at * 10, Some(at * 10 + 10), 50, 0)).collect();
    let report = report(&[("churn", &many), ("still", &[(1000, 0, None, 100, 0)])]);
    assert_eq!(chosen(&report, &options(Place::Site, 1000)), ["churn"]);
}

#[test]
fn hints_name_code_and_functions() {
    let report = report(&HEAP);
    let options = options(Place::Site, 2000);
    let (gathered, plan) = plan(&report, &options);
    let mut stacks = Stacks::new(&gathered.report);
    let hints: Value = serde_json::from_str(&hints::hints(&plan, &gathered, &mut stacks, &options)).unwrap();
    let sites = hints["sites"].as_array().unwrap();
    assert_eq!(sites.len(), 4);
    assert_eq!((&sites[0]["tier"], &sites[0]["site"]), (&"fast".into(), &2.into()));
    let frame = &sites[0]["frames"][0];
    assert_eq!((&frame["build_id"], &frame["offset"]), (&"ab".into(), &16.into()));
    assert_eq!(frame["functions"][0]["function"], "hot");
    assert!(sites[1..].iter().all(|site| site["tier"] == "slow"));
}

#[test]
fn text_says_what_two_memories_make_of_it() {
    let report = report(&HEAP);
    let options = AdviseOptions { slow_latency: Some(160.0), ..options(Place::Site, 1 << 30) };
    let (gathered, plan) = plan(&report, &options);
    for width in [40, 100, 200] {
        let mut stacks = Stacks::new(&gathered.report);
        let text = text::text(&plan, &gathered, &mut stacks, &options, width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // All that is accessed fits, at half the latency.
        assert!(words.contains("as advised 11.2 ms (2.00 times as fast)"), "{words}");
    }
}

fn any_objects() -> impl Strategy<Value = Vec<(u64, u64, Option<u64>, u64, u64)>> {
    let object = (1u64..5000, 0..ELAPSED, prop::option::of(0..ELAPSED), 0u64..1000, 0u64..1000);
    let object = object.prop_map(|(size, begin, length, reads, writes)| {
        let end = length.map(|length| (begin + 1 + length).min(ELAPSED));
        (size, begin, end, reads, writes)
    });
    prop::collection::vec(object, 0..8)
}

proptest! {
    #[test]
    fn within_budget_and_never_above_the_oracle(
        sites in prop::collection::vec(any_objects(), 0..8),
        fast in 0u64..40_000,
        by in prop::sample::select(vec![Place::Site, Place::Object, Place::Page]),
    ) {
        let planted: Vec<Planted<'_>> = sites.iter().map(|objects| ("f", objects.as_slice())).collect();
        let report = report(&planted);
        let options = options(by, fast);
        let (gathered, plan) = plan(&report, &options);
        prop_assert!(plan.choice.peak <= fast);
        prop_assert!(plan.choice.worth <= plan.all * (1.0 + 1e-9));
        // The oracle by itself, before the plan holds it to what was reached.
        let mut oracle = Gathered::new(Report { objects: Vec::new(), ..report.clone() }, &options);
        report.objects.iter().for_each(|object| oracle.add(object.clone(), by));
        let bound = oracle.oracle.worth(fast as f64 * gathered.elapsed as f64);
        prop_assert!(plan.choice.worth <= bound * (1.0 + 1e-9) + 1e-6, "{} {}", plan.choice.worth, bound);
        prop_assert!(plan.random <= bound * (1.0 + 1e-9) + 1e-6);
    }
}

/// Whether the file can be read, after having checked that advice on it does not panic, for budgets of all sizes.
pub fn survives(path: &std::path::Path, by: &str) -> bool {
    let by = match by {
        "site" => Place::Site,
        "object" => Place::Object,
        _ => Place::Page,
    };
    [0, 4096, u64::MAX].into_iter().all(|fast_bytes| {
        let options =
            AdviseOptions { path: path.to_owned(), slow_latency: Some(9.0), ..options(by, fast_bytes) };
        let Ok(mut gathered) = Gathered::read(&options) else { return false };
        let plan = Plan::new(&mut gathered, &options);
        let mut stacks = Stacks::new(&gathered.report);
        let text = text::text(&plan, &gathered, &mut stacks, &options, 80);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80 && !line.chars().any(char::is_control)),
            "{text}"
        );
        serde_json::from_str::<Value>(&hints::hints(&plan, &gathered, &mut stacks, &options)).is_ok()
    })
}
