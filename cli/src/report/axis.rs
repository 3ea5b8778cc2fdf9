//! The time axis of the heat map: a report's intervals, several to a column where there are too many.

use thermalloc_format::Timeline;

/// Columns at most; reports of this version have at most 64 intervals.
const MOST_COLUMNS: usize = 128;

/// Columns of equal length from the start of the program.
pub struct Axis {
    starts: Vec<u64>,
    /// Intervals of a column.
    per_column: usize,
    /// End of the last column, in ns.
    pub end_ns: u64,
}

impl Axis {
    /// At least one column: the whole run, if the report has no intervals.
    pub fn new(timeline: &Timeline, elapsed_ns: u64) -> Self {
        let per_column = timeline.t_ns.len().div_ceil(MOST_COLUMNS).max(1);
        let mut starts: Vec<u64> = timeline.t_ns.iter().copied().step_by(per_column).collect();
        if starts.is_empty() {
            starts.push(0);
        }
        // A file may say anything; columns must not go back in time.
        for at in 1..starts.len() {
            starts[at] = starts[at].max(starts[at - 1]);
        }
        let last = starts[starts.len() - 1];
        let length = timeline.interval_ns.saturating_mul(per_column as u64);
        let full = last.saturating_add(length);
        let end_ns = if elapsed_ns > last { full.min(elapsed_ns).max(last) } else { full };
        let end_ns = if end_ns > last { end_ns } else { elapsed_ns.max(last.saturating_add(1)) };
        Self { starts, per_column, end_ns }
    }

    /// How many.
    pub fn columns(&self) -> usize {
        self.starts.len()
    }

    /// When each begins, in ns.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The column of an interval of the report.
    pub fn column_of(&self, interval: usize) -> usize {
        (interval / self.per_column).min(self.columns() - 1)
    }

    /// Length of a column in seconds; more than 0.
    pub fn seconds(&self, column: usize) -> f64 {
        (self.end_of(column) - self.starts[column]).max(1) as f64 / 1e9
    }

    /// The share of the column that lies between two times. A moment counts as a nanosecond.
    pub fn overlap(&self, column: usize, first_ns: u64, last_ns: u64) -> f64 {
        let (start, end) = (self.starts[column], self.end_of(column));
        let common = end.min(last_ns.saturating_add(1)).saturating_sub(start.max(first_ns));
        common as f64 / (end - start).max(1) as f64
    }

    fn end_of(&self, column: usize) -> u64 {
        self.starts.get(column + 1).copied().unwrap_or(self.end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_ends_with_the_program() {
        let timeline = Timeline { interval_ns: 1000, t_ns: vec![0, 1000, 2000], sites: vec![] };
        let axis = Axis::new(&timeline, 2500);
        assert_eq!((axis.columns(), axis.end_ns), (3, 2500));
        assert_eq!(axis.seconds(2), 500e-9);
        assert_eq!(axis.overlap(1, 1500, 5000), 0.5);
        assert_eq!(Axis::new(&Timeline::default(), 70).seconds(0), 70e-9);
    }

    #[test]
    fn too_many_intervals_share_columns() {
        let timeline = Timeline { interval_ns: 1, t_ns: (0..1000).collect(), sites: vec![] };
        let axis = Axis::new(&timeline, 1000);
        assert_eq!((axis.columns(), axis.column_of(999)), (125, 124));
    }
}
