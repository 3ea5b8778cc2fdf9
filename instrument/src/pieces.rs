//! Which machine accesses one access of the intermediate code becomes. The back end splits what no register holds;
//! a count is right only if it is of the parts.

/// One machine access: `size` bytes at `offset` from the address of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    /// Bytes from the pointer operand; negative for a partner that lies below the first of its group.
    pub offset: i64,
    /// Bytes accessed.
    pub size: u64,
}

/// A type, as far as its parts in memory matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// An integer or pointer of that many bytes.
    Integer(u64),
    /// A floating-point number of that many bytes, always one access.
    Float(u64),
    /// A vector of that many bytes.
    Vector(u64),
    /// Parts at their offsets.
    Aggregate(Vec<(u64, Data)>),
}

/// The parts of `data`, where vector registers hold `widest` bytes (16, 32 or 64).
pub fn pieces(data: &Data, widest: u64) -> Vec<Piece> {
    let mut parts = Vec::new();
    push(data, 0, widest, &mut parts);
    parts
}

fn push(data: &Data, offset: u64, widest: u64, parts: &mut Vec<Piece>) {
    match data {
        Data::Integer(bytes) => split(*bytes, offset, 8, parts),
        Data::Float(bytes) => parts.push(Piece { offset: offset as i64, size: *bytes }),
        Data::Vector(bytes) => split(*bytes, offset, widest, parts),
        Data::Aggregate(fields) => {
            for (at, field) in fields {
                push(field, offset + at, widest, parts);
            }
        }
    }
}

/// As many of the largest as fit, then ever smaller powers of two.
fn split(bytes: u64, offset: u64, largest: u64, parts: &mut Vec<Piece>) {
    let (mut done, mut size) = (0, largest);
    while done < bytes {
        while size > bytes - done {
            size /= 2;
        }
        parts.push(Piece { offset: (offset + done) as i64, size });
        done += size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(data: Data, widest: u64) -> Vec<u64> {
        pieces(&data, widest).iter().map(|piece| piece.size).collect()
    }

    #[test]
    fn registers_decide() {
        assert_eq!(sizes(Data::Integer(8), 16), [8]);
        assert_eq!(sizes(Data::Integer(16), 16), [8, 8]);
        assert_eq!(sizes(Data::Integer(3), 16), [2, 1]);
        assert_eq!(sizes(Data::Integer(7), 16), [4, 2, 1]);
        assert_eq!(sizes(Data::Float(10), 16), [10]);
        assert_eq!(sizes(Data::Vector(12), 16), [8, 4]);
        assert_eq!(sizes(Data::Vector(32), 16), [16, 16]);
        assert_eq!(sizes(Data::Vector(32), 32), [32]);
        let pair = Data::Aggregate(vec![(0, Data::Integer(4)), (8, Data::Float(8))]);
        assert_eq!(pieces(&pair, 16), [Piece { offset: 0, size: 4 }, Piece { offset: 8, size: 8 }]);
    }

    proptest! {
        #[test]
        fn parts_tile_the_whole(bytes in 1u64..300, at in 0u64..64, wide in 4u32..7) {
            let parts = pieces(&Data::Aggregate(vec![(at, Data::Vector(bytes))]), 1 << wide);
            let mut next = at as i64;
            for part in parts {
                prop_assert_eq!(part.offset, next);
                prop_assert!(part.size.is_power_of_two() && part.size <= 1 << wide);
                next += part.size as i64;
            }
            prop_assert_eq!(next, (at + bytes) as i64);
        }
    }
}
