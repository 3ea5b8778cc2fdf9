//! The advice for programs: `format` "thermalloc-hints", `version` 1. docs/hints.md says what its keys mean. Sites are named by
//! their code's build ids and offsets, which hold in the same build, and by its functions, which hold in others.

use super::gather::Gathered;
use super::items::{Item, What};
use super::plan::Plan;
use crate::options::{AdviseOptions, Place};
use crate::symbols::Stacks;
use serde_json::{Value, json};
use std::collections::HashSet;
use thermalloc_format::Site;

/// One JSON object.
pub fn hints(plan: &Plan, gathered: &Gathered, stacks: &mut Stacks<'_>, options: &AdviseOptions) -> String {
    let program = &gathered.report.program;
    let mut whole = json!({
        "format": "thermalloc-hints",
        "version": 1,
        "made_from": {"exe": program.exe, "cmdline": program.cmdline, "start_unix_ns": program.start_unix_ns},
        "by": kind(options.by),
        "fast_bytes": options.fast_bytes,
        "write_cost": options.write_cost,
        "fast_peak_bytes": plan.choice.peak,
        "covered": plan.share(plan.choice.worth),
        "oracle": plan.share(plan.oracle),
        "random": plan.share(plan.random),
        "notes": plan.notes,
    });
    let chosen: HashSet<usize> = plan.choice.chosen.iter().copied().collect();
    // What is in fast memory first, in the order in which it was chosen; then the rest.
    let rest = (0..plan.items.len()).filter(|index| !chosen.contains(index));
    let order = plan.choice.chosen.iter().copied().chain(rest);
    let entries: Vec<Value> = order
        .map(|index| {
            let tier = if chosen.contains(&index) { "fast" } else { "slow" };
            entry(&plan.items[index], tier, gathered, stacks)
        })
        .collect();
    whole[list(options.by)] = entries.into();
    whole.to_string() + "\n"
}

fn kind(by: Place) -> &'static str {
    match by {
        Place::Site => "site",
        Place::Object => "object",
        Place::Page => "page",
    }
}

fn list(by: Place) -> &'static str {
    match by {
        Place::Site => "sites",
        Place::Object => "objects",
        Place::Page => "pages",
    }
}

fn entry(item: &Item, tier: &str, gathered: &Gathered, stacks: &mut Stacks<'_>) -> Value {
    let mut entry = match item.what {
        What::Site(index) => {
            let site = &gathered.report.sites[index];
            json!({
                "site": site.id, "allocs": site.allocs, "bytes": site.bytes, "reads": site.reads, "writes": site.writes,
                "frames": frames(site, gathered, stacks),
            })
        }
        What::Object(index) => {
            let object = &gathered.objects[index];
            json!({
                "addr": object.addr, "size": object.size, "site": object.site, "alloc_ns": object.alloc_ns,
                "free_ns": object.free_ns, "reads": object.traffic.reads as u64, "writes": object.traffic.writes as u64,
            })
        }
        What::Page(address, site) => json!({
            "addr": address, "site": site, "reads": item.traffic.reads, "writes": item.traffic.writes,
        }),
    };
    entry["tier"] = tier.into();
    entry["peak_bytes"] = item.thing.room.peak().into();
    entry
}

/// Innermost first.
fn frames(site: &Site, gathered: &Gathered, stacks: &mut Stacks<'_>) -> Vec<Value> {
    let report = &gathered.report;
    let frame = |&index: &u32| {
        let frame = report.frames.get(index as usize)?;
        let module = frame.module.and_then(|module| report.modules.get(module as usize));
        let functions =
            stacks.frame(index).iter().filter(|function| function.known).map(
                |function| json!({"function": function.name, "file": function.file, "line": function.line}),
            );
        Some(json!({
            "module": module.map(|module| &module.path),
            "build_id": module.map(|module| &module.build_id),
            "offset": module.map(|_| frame.offset),
            "functions": functions.collect::<Vec<Value>>(),
        }))
    };
    site.frames.iter().filter_map(frame).collect()
}
