//! The whole of `report`, on mutilated reports.

use super::*;
use crate::hostile::{hostile, pointers};
use proptest::prelude::*;
use serde_json::{Value, json};
use thermalloc_format::Report;

fn sample() -> Value {
    let object = |addr: u64, site: u32| {
        json!({"addr": addr, "size": 4000, "class": 1, "site": site, "alloc_ns": 5, "free_ns": 900, "reads": 400, "writes": 3,
            "read_bytes": 3200, "write_bytes": 24, "threads": 2, "first_access_ns": 6, "last_access_ns": 700, "label": "x",
            "heat": {"granule": 16, "reads": [400, 0, 0, 1], "writes": [3, 0]}})
    };
    let distribution = json!({"count": 2, "min": 1, "mean": 2.5, "p50": 2, "p90": 3, "p99": 3, "max": 4});
    let site = |id: u32| {
        json!({"id": id, "frames": [0, 1], "allocs": 2, "frees": 1, "bytes": 4032, "live_bytes": 0, "peak_live_bytes": 4032,
            "reads": 400, "writes": 3, "read_bytes": 3200, "write_bytes": 24, "max_threads": 2,
            "accesses_per_object": distribution, "lifetime_ns": distribution})
    };
    json!({
        "format": "thermalloc-heat", "version": 1,
        "program": {"cmdline": ["prog", "-x"], "exe": "/bin/prog", "pid": 17, "ppid": 1, "start_unix_ns": 1, "elapsed_ns": 1000,
            "end": "exit", "status": 0},
        "config": {"mode": "patch", "access": "rw", "watch": "", "granule": 16, "depth": 8, "interval_ms": 0, "view": "alias"},
        "host": {"cpu": "x", "kernel": "6.1", "pku": true, "pkeys": 15, "sud": true},
        "totals": {"allocs": 3, "frees": 1, "bytes": 4096, "reads": 800, "writes": 6, "unattributed": 4, "faults": 500,
            "steps": 500, "patched_sites": 4, "syscalls": 9},
        "warnings": ["a warning"],
        "classes": [{"id": 1, "chunk_size": 4096, "per_slab": 256, "slabs": 1, "allocs": 3, "frees": 1, "reads": 500,
            "writes": 6, "accesses_per_object": distribution}],
        "sites": [site(1), site(2)],
        "objects": [object(0x1000, 1), object(0x20000, 2)],
        "objects_omitted": 1,
        "timeline": {"interval_ns": 500, "t_ns": [0, 500], "sites": [{"site": 1, "reads": [300, 100], "writes": [3, 0]}]},
        "frames": [{"ip": 0x5000, "module": 0, "offset": 0x500}, {"ip": 0x6000, "module": null, "offset": 0}],
        "modules": [{"path": "/nowhere/prog", "base": 0x4b00, "build_id": "ab"}],
        "unpatched": [{"module": 0, "offset": 7, "bytes": "90", "reason": "r", "faults": 3}],
    })
}

fn html(text: &[u8]) -> serde_json::Result<String> {
    let mut objects = Objects::default();
    let report: Report = input::parse(text, Histograms::Drop, |object| objects.push(object))?;
    let analysis = Analysis::new("heat.json".into(), report, objects, &[]);
    Ok(page::page(&data(vec![fitted(&analysis, page::LARGEST).unwrap()]).unwrap()))
}

/// The data of a page, as a browser reads them.
fn read_back(html: &str) -> Value {
    let (_, rest) = html.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn the_parts_agree_with_the_report() {
    let run = read_back(&html(sample().to_string().as_bytes()).unwrap())["runs"][0].clone();
    assert_eq!(run["sites"]["reads"], json!([400, 400]));
    assert_eq!(run["objects"]["addr"], json!(["0x1000", "0x20000"]));
    assert_eq!(run["names"][0]["name"], "prog+0x500");
    assert_eq!(run["map"]["views"][2]["rows"].as_array().unwrap().len(), 2);
    assert_eq!(run["flame"]["accesses"][0], 806);
    let warnings = run["notes"]["warnings"].to_string();
    assert!(
        ["a warning", "hit no live object", "could not be patched"]
            .iter()
            .all(|part| warnings.contains(part))
    );
}

#[test]
fn little_room_makes_a_small_page() {
    let mut report = sample();
    let site = report["sites"][0].clone();
    let sites: Vec<Value> = (0..3000)
        .map(|id| {
            let mut site = site.clone();
            site["id"] = id.into();
            site
        })
        .collect();
    report["sites"] = sites.into();
    let mut objects = Objects::default();
    let text = report.to_string();
    let report: Report =
        input::parse(text.as_bytes(), Histograms::Drop, |object| objects.push(object)).unwrap();
    let analysis = Analysis::new("x".into(), report, objects, &[]);
    assert!(fitted(&analysis, 40_000).unwrap().get().len() <= 40_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// No panic, and nothing in a report becomes a part of the page's own text.
    #[test]
    fn hostile_values(changes in prop::collection::vec((any::<prop::sample::Index>(), hostile()), 1..12)) {
        let mut report = sample();
        for (at, value) in changes {
            let mut found = Vec::new();
            pointers(&report, String::new(), &mut found);
            *report.pointer_mut(at.get::<String>(&found)).unwrap() = value;
        }
        if let Ok(html) = html(report.to_string().as_bytes()) {
            prop_assert_eq!(html.matches("<script").count(), 3);
            prop_assert_eq!(html.matches("<!--").count(), 0);
            let run = &read_back(&html)["runs"][0];
            prop_assert!(run["map"]["views"].as_array().unwrap().len() == 3);
        }
    }

    #[test]
    fn damaged_bytes(at: prop::sample::Index, byte: u8) {
        let mut bytes = sample().to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(html) = html(&bytes) {
            read_back(&html);
        }
    }

    /// A report cut anywhere is never taken for a whole one.
    #[test]
    fn cut_reports(at: prop::sample::Index) {
        let text = sample().to_string();
        prop_assert!(html(&text.as_bytes()[..at.index(text.len())]).is_err());
    }
}
