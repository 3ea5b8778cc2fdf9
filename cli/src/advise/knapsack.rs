//! What fits into the fast memory at every time and is worth most. Choosing the best set is NP-hard already when nothing ends;
//! this takes the best of three greedy orders, which for one slice is at least half of the best.

use super::axis::Span;

/// How much memory a thing takes, slice by slice.
#[derive(Clone, Debug)]
pub enum Room {
    /// So many bytes in each slice of the span.
    Span(Span, u64),
    /// Bytes in each slice of the axis.
    Slices(Vec<u64>),
}

impl Room {
    /// Bytes in the fullest slice.
    pub fn peak(&self) -> u64 {
        match self {
            Self::Span(_, bytes) => *bytes,
            Self::Slices(slices) => slices.iter().copied().max().unwrap_or(0),
        }
    }

    /// Sum over slices.
    fn total(&self) -> f64 {
        match self {
            Self::Span(span, bytes) => *bytes as f64 * span.slices() as f64,
            Self::Slices(slices) => slices.iter().map(|&bytes| bytes as f64).sum(),
        }
    }

    fn fits(&self, used: &[u64], budget: u64) -> bool {
        let fits = |(used, bytes): (&u64, u64)| used.saturating_add(bytes) <= budget;
        match self {
            Self::Span(span, bytes) => used[span.first..=span.last].iter().all(|used| fits((used, *bytes))),
            Self::Slices(slices) => used.iter().zip(slices.iter().copied()).all(fits),
        }
    }

    fn take(&self, used: &mut [u64]) {
        match self {
            Self::Span(span, bytes) => {
                used[span.first..=span.last].iter_mut().for_each(|used| *used = used.saturating_add(*bytes))
            }
            Self::Slices(slices) => {
                used.iter_mut().zip(slices).for_each(|(used, bytes)| *used = used.saturating_add(*bytes))
            }
        }
    }
}

/// A thing to place.
#[derive(Clone, Debug)]
pub struct Thing {
    /// What it is worth in fast memory.
    pub worth: f64,
    /// What it takes.
    pub room: Room,
}

/// What was chosen.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Indices of things, in the order in which they were chosen.
    pub chosen: Vec<usize>,
    /// Sum of their worth.
    pub worth: f64,
    /// Bytes in the fullest slice.
    pub peak: u64,
}

/// Chooses. Things that are worth nothing stay out.
pub fn choose(things: &[Thing], budget: u64, slices: usize) -> Choice {
    let orders: [fn(&Thing) -> f64; 3] = [
        |thing| thing.worth / thing.room.total().max(1e-9),
        |thing| thing.worth / (thing.room.peak() as f64).max(1e-9),
        |thing| thing.worth,
    ];
    let choices = orders.into_iter().map(|key| {
        let keys: Vec<f64> = things.iter().map(key).collect();
        let mut order: Vec<usize> = (0..things.len()).filter(|&index| things[index].worth > 0.0).collect();
        order.sort_by(|&a, &b| keys[b].total_cmp(&keys[a]).then(a.cmp(&b)));
        fill(things, &order, budget, slices)
    });
    // Of equals the first, whose order people expect.
    choices.reduce(|best, next| if next.worth > best.worth { next } else { best }).unwrap_or_default()
}

/// What chance would choose, on average over `rounds`; the same every time.
pub fn random(things: &[Thing], budget: u64, slices: usize, rounds: u32) -> f64 {
    let mut order: Vec<usize> = (0..things.len()).collect();
    let mut state = 1;
    let mut sum = 0.0;
    for _ in 0..rounds {
        for last in (1..order.len()).rev() {
            order.swap(last, (next(&mut state) % (last as u64 + 1)) as usize);
        }
        sum += fill(things, &order, budget, slices).worth;
    }
    sum / f64::from(rounds.max(1))
}

/// Takes in this order whatever still fits.
fn fill(things: &[Thing], order: &[usize], budget: u64, slices: usize) -> Choice {
    let mut used = vec![0; slices];
    let mut choice = Choice::default();
    for &index in order {
        let thing = &things[index];
        if thing.room.fits(&used, budget) {
            thing.room.take(&mut used);
            choice.chosen.push(index);
            choice.worth += thing.worth;
        }
    }
    choice.peak = used.into_iter().max().unwrap_or(0);
    choice
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLICES: usize = 4;

    fn thing() -> impl Strategy<Value = Thing> {
        let room = prop_oneof![
            (0..SLICES, 0..SLICES, 0u64..60)
                .prop_map(|(a, b, bytes)| Room::Span(Span { first: a.min(b), last: a.max(b) }, bytes)),
            prop::collection::vec(0u64..60, SLICES).prop_map(Room::Slices),
        ];
        (0u32..100, room).prop_map(|(worth, room)| Thing { worth: worth.into(), room })
    }

    fn used(things: &[Thing], chosen: impl Iterator<Item = usize>) -> Vec<u64> {
        let mut used = vec![0; SLICES];
        chosen.for_each(|index| things[index].room.take(&mut used));
        used
    }

    /// Tries all sets.
    fn best(things: &[Thing], budget: u64) -> f64 {
        let sets =
            (0u32..1 << things.len()).map(|set| (0..things.len()).filter(move |at| set >> at & 1 == 1));
        let fitting = sets.filter(|set| used(things, set.clone()).iter().all(|&used| used <= budget));
        fitting.map(|set| set.map(|index| things[index].worth).sum()).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn fits_at_every_time_and_is_never_better_than_the_best(
            things in prop::collection::vec(thing(), 0..10), budget in 0u64..200,
        ) {
            let choice = choose(&things, budget, SLICES);
            let used = used(&things, choice.chosen.iter().copied());
            prop_assert!(used.iter().all(|&used| used <= budget));
            prop_assert_eq!(used.into_iter().max().unwrap(), choice.peak);
            prop_assert!(choice.worth <= best(&things, budget));
            prop_assert!(random(&things, budget, SLICES, 4) <= best(&things, budget) + 1e-9);
        }

        #[test]
        fn at_least_half_of_the_best_where_nothing_ends(
            sizes in prop::collection::vec((0u32..100, 1u64..60), 0..10), budget in 0u64..200,
        ) {
            let whole = Span { first: 0, last: SLICES - 1 };
            let thing = |(worth, bytes): (u32, u64)| Thing { worth: worth.into(), room: Room::Span(whole, bytes) };
            let things: Vec<Thing> = sizes.into_iter().map(thing).collect();
            prop_assert!(choose(&things, budget, SLICES).worth * 2.0 >= best(&things, budget));
        }
    }

    #[test]
    fn what_does_not_live_at_the_same_time_shares_memory() {
        let at = |slice| Room::Span(Span { first: slice, last: slice }, 100);
        let things = [
            Thing { worth: 5.0, room: at(0) },
            Thing { worth: 4.0, room: at(1) },
            Thing { worth: 3.0, room: at(1) },
        ];
        let choice = choose(&things, 100, SLICES);
        assert_eq!((choice.chosen, choice.worth, choice.peak), (vec![0, 1], 9.0, 100));
    }
}
