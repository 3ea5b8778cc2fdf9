//! The advice for people.

use super::gather::Gathered;
use super::items::{Item, What};
use super::plan::Plan;
use super::tiers::Tiers;
use super::traffic::Traffic;
use crate::options::{AdviseOptions, Place};
use crate::symbols::{Stacks, printable};
use crate::table::{Column, Label, Row, render, shorten, wrap};
use crate::units::{bytes, bytes_with_unit, count, duration, heat};
use std::collections::HashMap;
use thermalloc_format::Site;

/// Lines of at most `width` characters.
pub fn text(
    plan: &Plan,
    gathered: &Gathered,
    stacks: &mut Stacks<'_>,
    options: &AdviseOptions,
    width: usize,
) -> String {
    let program = gathered.report.program.cmdline.join(" ");
    let table = table(plan, gathered, stacks, options, width);
    let mut text = shorten(&format!("program  {}", printable(&program)), width) + "\n";
    text += &wrap("fast     ", &summary(plan, options), width);
    text += &wrap("covered  ", &coverage(plan), width);
    if let Some(tiers) = &plan.tiers {
        text += &wrap("tiers    ", &simulation(plan, gathered, tiers), width);
    }
    for note in plan.notes.iter().chain(stacks.notes()) {
        text += &wrap("warning  ", &printable(note), width);
    }
    text + "\n" + &table
}

fn kind(by: Place) -> &'static str {
    match by {
        Place::Site => "sites",
        Place::Object => "objects",
        Place::Page => "pages or runs of pages",
    }
}

fn summary(plan: &Plan, options: &AdviseOptions) -> String {
    format!(
        "{} hold {} of {} {}, {} of them at the fullest time",
        bytes_with_unit(options.fast_bytes),
        count(plan.choice.chosen.len() as u64),
        count(plan.items.len() as u64),
        kind(options.by),
        bytes_with_unit(plan.choice.peak)
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn coverage(plan: &Plan) -> String {
    format!(
        "{} of all accesses go to fast memory; at most {} would with perfect knowledge (oracle), {} by chance",
        percent(plan.share(plan.choice.worth)),
        percent(plan.share(plan.oracle)),
        percent(plan.share(plan.random))
    )
}

fn simulation(plan: &Plan, gathered: &Gathered, tiers: &Tiers) -> String {
    let all = gathered.all;
    let slow = tiers.time(all, Traffic::default());
    let time = |name: &str, fast: Traffic| {
        let time = tiers.time(all, fast);
        let speedup = if time > 0.0 { slow / time } else { 1.0 };
        format!("{name} {} ({speedup:.2} times as fast)", duration(time as u64))
    };
    let part = |worth: f64| all.part(plan.share(worth).min(1.0));
    format!(
        "fast {} ns and {} GB/s, slow {} ns and {} GB/s, no caches: all slow {}; {}; {}; {}; {}",
        tiers.fast.latency,
        tiers.fast.bandwidth,
        tiers.slow.latency,
        tiers.slow.bandwidth,
        duration(slow as u64),
        time("by chance", part(plan.random)),
        time("as advised", plan.fast),
        time("oracle", part(plan.oracle)),
        time("all fast", all)
    )
}

fn table(
    plan: &Plan,
    gathered: &Gathered,
    stacks: &mut Stacks<'_>,
    options: &AdviseOptions,
    width: usize,
) -> String {
    let mut columns = vec![
        Column::new("share", 0),
        Column::new("so far", 1),
        Column::new("reads", 2),
        Column::new("writes", 2),
        Column::new("acc/B", 3),
        Column::new("room B", 0),
    ];
    if options.by != Place::Site {
        columns.push(Column::text("address", 0));
    }
    let sites: HashMap<u32, &Site> = gathered.report.sites.iter().map(|site| (site.id, site)).collect();
    let (mut rows, mut so_far) = (Vec::new(), 0.0);
    let mut order = plan.choice.chosen.clone();
    // People look for the largest share first.
    order.sort_by(|&a, &b| plan.items[b].thing.worth.total_cmp(&plan.items[a].thing.worth).then(a.cmp(&b)));
    for &index in order.iter().take(options.n) {
        let item = &plan.items[index];
        so_far += item.thing.worth;
        let room = item.thing.room.peak();
        let accesses = (item.traffic.reads + item.traffic.writes) as u64;
        let mut cells = vec![
            percent(plan.share(item.thing.worth)),
            percent(plan.share(so_far)),
            count(item.traffic.reads as u64),
            count(item.traffic.writes as u64),
            heat(accesses, room),
            bytes(room),
        ];
        cells.extend(address(item, gathered).map(|address| format!("{address:#x}")));
        let site = site(item, gathered, &sites);
        let label = Label::of(site.and_then(|site| stacks.telling(site)));
        rows.push(Row { cells, label, details: Vec::new() });
    }
    let rest = plan.choice.chosen.len() - rows.len();
    let mut table = render(columns, "site", &rows, width);
    if rest > 0 {
        table += &wrap(
            "",
            &format!("and {rest} more, {} together", percent(plan.share(plan.choice.worth - so_far))),
            width,
        );
    }
    table
}

fn address(item: &Item, gathered: &Gathered) -> Option<u64> {
    match item.what {
        What::Site(_) => None,
        What::Object(index) => Some(gathered.objects[index].addr),
        What::Page(address, _) => Some(address),
    }
}

fn site<'a>(item: &Item, gathered: &'a Gathered, sites: &HashMap<u32, &'a Site>) -> Option<&'a Site> {
    match item.what {
        What::Site(index) => gathered.report.sites.get(index),
        What::Object(index) => sites.get(&gathered.objects[index].site).copied(),
        What::Page(_, site) => sites.get(&site).copied(),
    }
}
