//! The placement curve: which share of all accesses the hottest x bytes take, if memory is handed out by site, by object or
//! by page of 4 KiB. Sizes are added up as if everything lived at the same time.

use super::objects::{Objects, PAGE, accesses};
use serde::Serialize;
use std::collections::HashMap;
use thermalloc_format::{Report, Site};

/// Shares of the accesses that are marked, in percent.
const MARKS: [u32; 3] = [50, 90, 99];
/// A point is kept where the curve has risen by this share since the last, or gone right by this factor.
const RISE: f64 = 1.0 / 160.0;
const STEP: f64 = 1.25;

/// One way to hand out memory.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// `site`, `object` or `page`.
    pub by: &'static str,
    /// Bytes and the share of accesses (0 to 1) that they take; both grow.
    pub points: Vec<(u64, f64)>,
    /// Where the marked shares are reached.
    pub marks: Vec<Mark>,
    /// Bytes of everything.
    pub bytes: u64,
    /// How many sites, objects or pages.
    pub count: usize,
}

/// Where a share of the accesses is reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// In percent.
    pub share: u32,
    /// Bytes; null: not reached by what the report lists.
    pub bytes: Option<u64>,
    /// The share that they take: at least the marked one.
    pub taken: f64,
    /// How many sites, objects or pages these are.
    pub count: usize,
}

/// What can be placed: its accesses and its bytes.
type Item = (f64, u64);

/// All three curves. `total` accesses are 100 %.
pub fn curves<H>(report: &Report<H>, objects: &Objects) -> Vec<Curve> {
    let of_site = |site: &Site| (site.reads as f64 + site.writes as f64, site.peak_live_bytes.max(1));
    let sites: Vec<Item> = report.sites.iter().map(of_site).collect();
    let all = objects.all.iter().map(|object| (accesses(object) as f64, object.size.max(1)));
    let total = total(report, &sites);
    vec![
        curve("site", sites, total),
        curve("object", all.collect(), total),
        curve("page", pages(objects), total),
    ]
}

fn total<H>(report: &Report<H>, sites: &[Item]) -> f64 {
    let totals = &report.totals;
    let stated = totals.reads as f64 + totals.writes as f64 - totals.unattributed as f64;
    sites.iter().map(|(accesses, _)| accesses).sum::<f64>().max(stated)
}

fn pages(objects: &Objects) -> Vec<Item> {
    let mut single: HashMap<u64, f64> = HashMap::new();
    let mut runs = Vec::new();
    for part in &objects.parts {
        if part.pages == 1 || part.accesses == 0.0 {
            *single.entry(part.page).or_default() += part.accesses;
        } else {
            runs.push((part.accesses, part.pages.saturating_mul(PAGE)));
        }
    }
    runs.extend(single.into_values().map(|accesses| (accesses, PAGE)));
    runs
}

fn curve(by: &'static str, mut items: Vec<Item>, total: f64) -> Curve {
    let density = |&(accesses, bytes): &Item| accesses / bytes as f64;
    items.sort_by(|a, b| density(b).total_cmp(&density(a)).then(a.1.cmp(&b.1)));
    let (mut bytes, mut sum) = (0u64, 0.0);
    let mut points: Vec<(u64, f64)> = Vec::new();
    let mut marks: Vec<Mark> =
        MARKS.iter().map(|&share| Mark { share, bytes: None, taken: 0.0, count: 0 }).collect();
    for (at, &(accesses, size)) in items.iter().enumerate() {
        sum += accesses;
        bytes = bytes.saturating_add(size);
        let share = if total > 0.0 { (sum / total).min(1.0) } else { 0.0 };
        let mut marked = false;
        for mark in marks.iter_mut().filter(|mark| mark.bytes.is_none()) {
            if share > 0.0 && share + 1e-9 >= f64::from(mark.share) / 100.0 {
                (mark.bytes, mark.taken, mark.count) = (Some(bytes), share, at + 1);
                marked = true;
            }
        }
        let far = points.last().is_none_or(|&(last_bytes, last_share)| {
            share - last_share >= RISE || bytes as f64 >= last_bytes as f64 * STEP
        });
        if far || marked || at + 1 == items.len() {
            points.push((bytes, (share * 1e6).round() / 1e6));
        }
    }
    Curve { by, points, marks, bytes, count: items.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_are_where_the_share_is_reached() {
        let curve = curve("object", vec![(1.0, 1000), (90.0, 10), (9.0, 100)], 100.0);
        let reached: Vec<_> = curve.marks.iter().map(|mark| (mark.bytes, mark.count)).collect();
        assert_eq!(reached, [(Some(10), 1), (Some(10), 1), (Some(110), 2)]);
        assert_eq!(curve.points, [(10, 0.9), (110, 0.99), (1110, 1.0)]);
        assert_eq!(super::curve("object", vec![(40.0, 10)], 100.0).marks[0].bytes, None);
    }

    proptest! {
        #[test]
        fn curves_rise_and_are_short(
            items in prop::collection::vec((any::<u64>(), 1u64..), 0..400), more in 0.0f64..1e18,
        ) {
            let items: Vec<Item> = items.into_iter().map(|(accesses, bytes)| (accesses as f64, bytes)).collect();
            let total = items.iter().map(|(accesses, _)| accesses).sum::<f64>() + more;
            let curve = curve("page", items, total);
            prop_assert!(curve.points.len() < 600);
            prop_assert!(curve.points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
            prop_assert!(curve.points.iter().all(|&(_, share)| (0.0..=1.0).contains(&share)));
        }
    }
}
