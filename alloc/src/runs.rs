//! Finding room among slots: the outermost stretch of free slots that is long enough.

use core::ops::Range;

/// Which end of a region to fill first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outer {
    Low,
    High,
}

/// First slot of the outermost `count` consecutive free slots in `region`. `used(slot)` is the run of used
/// slots around `slot`, or `None` if it is free; whole runs are skipped, so the cost is in runs and free
/// slots.
pub(crate) fn find(
    region: Range<u32>,
    outer: Outer,
    count: u32,
    used: impl Fn(u32) -> Option<Range<u32>>,
) -> Option<u32> {
    match outer {
        Outer::Low => {
            let mut start = region.start;
            let mut at = start;
            while at < region.end {
                at = match used(at) {
                    Some(run) => {
                        start = run.end;
                        run.end
                    }
                    None => at + 1,
                };
                if at - start >= count {
                    return Some(start);
                }
            }
        }
        Outer::High => {
            let mut end = region.end;
            let mut at = end;
            while at > region.start {
                at = match used(at - 1) {
                    Some(run) => {
                        end = run.start;
                        run.start
                    }
                    None => at - 1,
                };
                if end - at >= count {
                    return Some(at);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_the_outermost_room(slots in proptest::collection::vec(any::<bool>(), 1..40), count in 1u32..6) {
            let len = slots.len() as u32;
            let used = |slot: u32| {
                let at = slot as usize;
                slots[at].then(|| {
                    let start = slots[..at].iter().rposition(|used| !used).map_or(0, |free| free + 1);
                    let end = slots[at..].iter().position(|used| !used).map_or(slots.len(), |free| at + free);
                    start as u32..end as u32
                })
            };
            let free = |start: u32| (start..start + count).all(|slot| !slots[slot as usize]);
            let mut fitting = (0..(len + 1).saturating_sub(count)).filter(|&start| free(start));
            prop_assert_eq!(find(0..len, Outer::High, count, used), fitting.clone().next_back());
            prop_assert_eq!(find(0..len, Outer::Low, count, used), fitting.next());
        }
    }
}
