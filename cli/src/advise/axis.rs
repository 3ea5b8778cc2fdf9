//! The run in slices of time. What lives in a part of a slice is taken to live in all of it, so that what fits is sure to fit.

/// A run's time, in equal slices.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Length of a slice, in ns; at least 1.
    pub width: u64,
    /// Number of slices; at least 1.
    pub slices: usize,
}

/// Slices from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub first: usize,
    /// The last.
    pub last: usize,
}

impl Span {
    /// How many these are.
    pub fn slices(self) -> usize {
        self.last - self.first + 1
    }
}

impl Axis {
    /// Divides `elapsed` ns.
    pub fn new(elapsed: u64, slices: usize) -> Self {
        Self { width: elapsed.div_ceil(slices as u64).max(1), slices }
    }

    /// All of it.
    pub fn whole(self) -> Span {
        Span { first: 0, last: self.slices - 1 }
    }

    /// From `start` to `end`, in ns; `None`: to the end of the run. Later times are in the last slice.
    pub fn span(self, start: u64, end: Option<u64>) -> Span {
        let slice = |time: u64| usize::try_from(time / self.width).unwrap_or(usize::MAX).min(self.slices - 1);
        let first = slice(start);
        Span { first, last: end.map_or(self.slices - 1, slice).max(first) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_slice() {
        let axis = Axis::new(100, 10);
        assert_eq!(axis.span(0, Some(9)), Span { first: 0, last: 0 });
        assert_eq!(axis.span(5, Some(10)), Span { first: 0, last: 1 });
        assert_eq!(axis.span(95, None), Span { first: 9, last: 9 });
        assert_eq!(axis.span(50, Some(3)), Span { first: 5, last: 5 });
        assert_eq!(axis.span(u64::MAX, Some(u64::MAX)), Span { first: 9, last: 9 });
        assert_eq!(Axis::new(0, 10).span(7, None).slices(), 3);
    }
}
