//! Sets of small numbers as words of bits: the free chunks of a slab page.
//!
//! # Signal context
//! Plain loads and stores.

use crate::cell::Word64;

/// Adds `index`. Returns the word it lies in, or `None` if it was there already.
#[inline]
pub(crate) fn insert(words: &[Word64], index: u32) -> Option<u32> {
    let word = &words[index as usize / 64];
    let mask = 1 << (index % 64);
    let before = word.get();
    word.set(before | mask);
    (before & mask == 0).then_some(index / 64)
}

/// Removes up to `most` members, smallest first, from word `from` on, and hands each to `take`. Returns the
/// word where a further search starts.
#[inline]
pub(crate) fn remove_first(words: &[Word64], from: u32, most: usize, mut take: impl FnMut(u32)) -> u32 {
    let mut left = most;
    let mut at = from as usize;
    while left > 0 && at < words.len() {
        let mut word = words[at].get();
        while word != 0 && left > 0 {
            take(at as u32 * 64 + word.trailing_zeros());
            word &= word - 1;
            left -= 1;
        }
        words[at].set(word);
        if word == 0 {
            at += 1;
        }
    }
    at as u32
}

/// Is `index` a member?
pub(crate) fn contains(words: &[Word64], index: u32) -> bool {
    words[index as usize / 64].get() >> (index % 64) & 1 == 1
}

/// Removes every member below `end`.
pub(crate) fn clear_below(words: &[Word64], end: u32) {
    for word in &words[..(end as usize).div_ceil(64)] {
        word.set(0);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn behaves_like_a_set(ops in proptest::collection::vec((any::<bool>(), 0u32..640), 0..200)) {
            let words: Vec<Word64> = (0..10).map(|_| Word64::new(0)).collect();
            let mut model = BTreeSet::new();
            for (add, n) in ops {
                if add {
                    prop_assert_eq!(insert(&words, n).is_some(), model.insert(n));
                } else {
                    let mut taken = Vec::new();
                    let most = n as usize % 9;
                    remove_first(&words, 0, most, |index| taken.push(index));
                    let expected: Vec<u32> = model.iter().copied().take(most).collect();
                    prop_assert_eq!(&taken, &expected);
                    model.retain(|index| !expected.contains(index));
                }
                prop_assert!((0..640).all(|index| contains(&words, index) == model.contains(&index)));
            }
        }
    }
}
