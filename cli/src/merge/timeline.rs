//! Timelines on one axis of at most 64 intervals. An interval that falls into several of the axis's is shared out evenly, so
//! that sums stay.

use super::header::Shifts;
use super::sites::Ids;
use std::cmp::Reverse;
use std::collections::HashMap;
use thermalloc_format::{Report, SiteTimeline, Timeline};

/// As many as the runtime has.
const INTERVALS: u64 = 64;
/// As many rows as the runtime has.
const SITES: usize = 1000;

/// The axis, and the rows on it.
pub struct Axis {
    /// Length of an interval, in ns; 0: no report has a timeline.
    interval: u64,
    intervals: usize,
    rows: HashMap<u32, SiteTimeline>,
}

impl Axis {
    /// An axis for all of them, no finer than the coarsest.
    pub fn new<H>(reports: &[Report<H>], shifts: &Shifts) -> Self {
        let coarsest = reports.iter().map(|report| report.timeline.interval_ns).max().unwrap_or(0);
        let end = |(index, report): (usize, &Report<H>)| {
            let timeline = &report.timeline;
            let last = timeline.t_ns.iter().max()?;
            Some(last.saturating_add(timeline.interval_ns).saturating_add(shifts.of(index)))
        };
        let end = reports.iter().enumerate().filter_map(end).max().unwrap_or(0);
        let mut interval = coarsest;
        while interval != 0 && end.div_ceil(interval) > INTERVALS {
            interval = interval.saturating_mul(2);
        }
        let intervals = if interval == 0 { 0 } else { end.div_ceil(interval) as usize };
        Self { interval, intervals, rows: HashMap::new() }
    }

    /// Adds a report's rows.
    pub fn add<H>(&mut self, report: &Report<H>, ids: &Ids, shift: u64) {
        if self.intervals == 0 {
            return;
        }
        let timeline = &report.timeline;
        for site in &timeline.sites {
            let id = ids.site(site.site);
            let (interval, intervals) = (self.interval, self.intervals);
            let zeros = || vec![0; intervals];
            let empty = || SiteTimeline { site: id, reads: zeros(), writes: zeros() };
            let row = self.rows.entry(id).or_insert_with(empty);
            for (index, t) in timeline.t_ns.iter().enumerate() {
                let start = t.saturating_add(shift);
                let count = |counts: &[u64]| counts.get(index).copied().unwrap_or(0);
                let span = (start, start.saturating_add(timeline.interval_ns));
                spread(count(&site.reads), span, interval, &mut row.reads);
                spread(count(&site.writes), span, interval, &mut row.writes);
            }
        }
    }

    /// Hands over the hottest rows.
    pub fn fill(self, report: &mut Report) {
        let mut rows: Vec<SiteTimeline> = self.rows.into_values().collect();
        rows.sort_by_key(|row| (Reverse(accesses(row)), row.site));
        let omitted = rows.len().saturating_sub(SITES) as u64;
        rows.truncate(SITES);
        report.limits.timeline_sites_omitted = report.limits.timeline_sites_omitted.saturating_add(omitted);
        let t_ns = (0..self.intervals as u64).map(|index| index.saturating_mul(self.interval)).collect();
        report.timeline = Timeline { interval_ns: self.interval, t_ns, sites: rows };
    }
}

fn accesses(row: &SiteTimeline) -> u128 {
    row.reads.iter().chain(&row.writes).map(|&count| u128::from(count)).sum()
}

/// Adds `count` to the intervals that `span` lies in, to each its share; the sum stays.
fn spread(count: u64, (start, end): (u64, u64), interval: u64, row: &mut [u64]) {
    let (Some(last), true) = (row.len().checked_sub(1), count > 0) else { return };
    let index = |time: u64| ((time / interval) as usize).min(last);
    let (first, final_) = (index(start), index(end.saturating_sub(1).max(start)));
    let length = u128::from(end.saturating_sub(start).max(1));
    let mut given = 0;
    for (at, sum) in row.iter_mut().enumerate().take(final_ + 1).skip(first) {
        let until = if at == final_ {
            u128::from(count)
        } else {
            let passed = (u128::from(interval) * (at as u128 + 1)).saturating_sub(start.into()).min(length);
            u128::from(count) * passed / length
        };
        *sum = sum.saturating_add((until - given) as u64);
        given = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_by_length() {
        let mut row = [0; 4];
        spread(100, (5, 25), 10, &mut row);
        assert_eq!(row, [25, 50, 25, 0]);
        spread(7, (30, 40), 10, &mut row);
        spread(3, (1000, 1010), 10, &mut row);
        assert_eq!(row, [25, 50, 25, 10]);
    }

    proptest! {
        #[test]
        fn sums_stay(count: u64, start: u64, length: u64, interval in 1u64.., intervals in 1usize..65) {
            let mut row = vec![0; intervals];
            spread(count, (start, start.saturating_add(length)), interval, &mut row);
            prop_assert_eq!(row.iter().map(|&n| u128::from(n)).sum::<u128>(), u128::from(count));
        }
    }
}
