//! What no placement can exceed: the fast memory always holds the hottest bytes that are alive, whatever object they belong to
//! and in whatever fractions. Computed as a fractional knapsack over bytes times time.

use thermalloc_format::{Heat, Object};

/// Bytes that are equally hot.
#[derive(Clone, Copy, Debug)]
struct Piece {
    worth: f64,
    /// Bytes times ns.
    room: f64,
}

/// Collects pieces.
#[derive(Debug, Default)]
pub struct Oracle {
    pieces: Vec<Piece>,
}

impl Oracle {
    /// Adds an object that is worth `worth` and lives so many ns, by the heat of its parts.
    pub fn add(&mut self, object: &Object, worth: f64, lifetime: u64) {
        let counts = accesses(&object.heat);
        let sum: f64 = counts.clone().sum();
        if sum == 0.0 {
            self.add_piece(worth, object.size as f64 * lifetime as f64);
            return;
        }
        let granule = (object.heat.granule as f64).min(object.size as f64);
        for count in counts.filter(|&count| count > 0.0) {
            self.add_piece(worth * count / sum, granule * lifetime as f64);
        }
    }

    /// Adds bytes times ns.
    pub fn add_piece(&mut self, worth: f64, room: f64) {
        if worth > 0.0 {
            self.pieces.push(Piece { worth, room });
        }
    }

    /// Worth of what fits into so many bytes times ns.
    pub fn worth(mut self, mut capacity: f64) -> f64 {
        // worth / room, largest first; what takes no room comes first.
        self.pieces.sort_by(|a, b| (b.worth * a.room).total_cmp(&(a.worth * b.room)));
        let mut worth = 0.0;
        for piece in self.pieces {
            if piece.room > capacity {
                return worth + piece.worth * (capacity / piece.room).max(0.0);
            }
            worth += piece.worth;
            capacity -= piece.room;
        }
        worth
    }
}

/// Reads and writes of each entry.
fn accesses(heat: &Heat) -> impl Iterator<Item = f64> + Clone + '_ {
    let count = |counts: &[u64], index: usize| counts.get(index).map_or(0.0, |&count| count as f64);
    (0..heat.reads.len().max(heat.writes.len()))
        .map(move |index| count(&heat.reads, index) + count(&heat.writes, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hottest_bytes_first_and_a_fraction_of_the_last() {
        let fill = |capacity| {
            let mut oracle = Oracle::default();
            let heat = Heat { granule: 16, reads: vec![90, 0], writes: vec![0, 10] };
            oracle.add(&Object { size: 32, heat, ..Object::default() }, 100.0, 10);
            oracle.add(&Object { size: 16, ..Object::default() }, 30.0, 10);
            oracle.worth(capacity)
        };
        assert_eq!([0.0, 160.0, 320.0, 400.0, 480.0, 1e9].map(fill), [0.0, 90.0, 120.0, 125.0, 130.0, 130.0]);
    }
}
