//! What a reply must be. A hit must carry exactly the key's flags and value; a miss is allowed only while no
//! SET of the key had been acknowledged when the GET was sent.

use crate::content;
use crate::protocol::{Outcome, Reply};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which keys the server has acknowledged, for all connections together: one bit a key.
pub struct Ledger {
    first: u64,
    words: Vec<AtomicU64>,
}

impl Ledger {
    /// A ledger in which no key is stored.
    pub fn new(keys: &RangeInclusive<u64>) -> Self {
        let words = (keys.end() - keys.start()) / 64 + 1;
        Self { first: *keys.start(), words: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    fn place(&self, key: u64) -> (&AtomicU64, u64) {
        let bit = key - self.first;
        (&self.words[(bit / 64) as usize], 1 << (bit % 64))
    }

    /// Notes that the server has acknowledged a SET of `key`.
    pub fn acknowledge(&self, key: u64) {
        let (word, bit) = self.place(key);
        // Release pairs with the Acquire of `is_stored`.
        word.fetch_or(bit, Ordering::Release);
    }

    /// Whether a GET that is sent from now on must hit.
    pub fn is_stored(&self, key: u64) -> bool {
        let (word, bit) = self.place(key);
        // Acquire pairs with the Release of `acknowledge`.
        word.load(Ordering::Acquire) & bit != 0
    }
}

/// A request as the verifier sees it.
pub struct Asked<'a> {
    /// The key's bytes.
    pub key: &'a [u8],
    /// Size of the value that was stored, in bytes.
    pub size: usize,
    /// The key was known to be stored when the request was sent.
    pub must_hit: bool,
    /// Number of the request on its connection.
    pub opaque: u32,
}

/// Checks one reply; `scratch` is reused room for the expected value. The error says what deviates.
pub fn check(asked: &Asked, reply: &Reply, scratch: &mut Vec<u8>) -> Result<(), String> {
    if reply.opaque.is_some_and(|opaque| opaque != asked.opaque) {
        return Err(format!("reply to request {} instead of {}", reply.opaque.unwrap_or(0), asked.opaque));
    }
    if let Some(key) = reply.key.filter(|key| *key != asked.key) {
        return Err(format!("reply names key \"{}\"", key.escape_ascii()));
    }
    match &reply.outcome {
        Outcome::Stored => Ok(()),
        Outcome::Refused(words) => Err(format!("refused: {words}")),
        Outcome::Miss if asked.must_hit => Err("missed, though it was stored (evicted or lost)".into()),
        Outcome::Miss => Ok(()),
        Outcome::Hit { .. } if reply.key.is_none() => Err("hit without a key".into()),
        Outcome::Hit { flags, value } => {
            let expected = content::flags(asked.key);
            if *flags != expected {
                return Err(format!("flags {flags} instead of {expected}"));
            }
            scratch.clear();
            content::write_value(asked.key, asked.size, scratch);
            compare(value, scratch)
        }
    }
}

fn compare(value: &[u8], expected: &[u8]) -> Result<(), String> {
    if value.len() != expected.len() {
        return Err(format!("value of {} bytes instead of {}", value.len(), expected.len()));
    }
    match value.iter().zip(expected).position(|(a, b)| a != b) {
        Some(at) => {
            Err(format!("byte {at} of the value is {:#04x} instead of {:#04x}", value[at], expected[at]))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &[u8] = b"memtier-5";

    fn asked(must_hit: bool) -> Asked<'static> {
        Asked { key: KEY, size: 40, must_hit, opaque: 3 }
    }

    fn value() -> Vec<u8> {
        let mut value = Vec::new();
        content::write_value(KEY, 40, &mut value);
        value
    }

    fn hit(flags: u32, value: &[u8]) -> Reply<'_> {
        Reply { outcome: Outcome::Hit { flags, value }, key: Some(KEY), opaque: Some(3) }
    }

    #[test]
    fn the_expected_hit_passes_and_each_deviation_is_named() {
        let (flags, value) = (content::flags(KEY), value());
        let verdict = |reply: &Reply| check(&asked(true), reply, &mut Vec::new());
        assert_eq!(verdict(&hit(flags, &value)), Ok(()));
        assert!(verdict(&hit(flags ^ 1, &value)).unwrap_err().contains("flags"));
        assert!(verdict(&hit(flags, &value[1..])).unwrap_err().contains("39 bytes instead of 40"));
        let other_key = Reply { key: Some(b"memtier-6"), ..hit(flags, &value) };
        assert!(verdict(&other_key).unwrap_err().contains("memtier-6"));
        let other_number = Reply { opaque: Some(4), ..hit(flags, &value) };
        assert!(verdict(&other_number).unwrap_err().contains("request 4 instead of 3"));
        let nameless = Reply { key: None, ..hit(flags, &value) };
        assert!(verdict(&nameless).unwrap_err().contains("without a key"));
    }

    #[test]
    fn a_miss_is_allowed_only_before_the_key_is_stored() {
        let miss = Reply { outcome: Outcome::Miss, key: None, opaque: None };
        assert_eq!(check(&asked(false), &miss, &mut Vec::new()), Ok(()));
        assert!(check(&asked(true), &miss, &mut Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_found(at in 0usize..40, bit in 0u32..8) {
            let mut bad = value();
            bad[at] ^= 1 << bit;
            let verdict = check(&asked(true), &hit(content::flags(KEY), &bad), &mut Vec::new());
            let place = format!("byte {at} ");
            prop_assert!(verdict.unwrap_err().starts_with(&place));
        }

        #[test]
        fn the_ledger_is_a_set(first in 0u64..100, keys in proptest::collection::vec(0u64..300, 0..50)) {
            let ledger = Ledger::new(&(first..=first + 299));
            keys.iter().for_each(|key| ledger.acknowledge(first + key));
            for key in 0..300 {
                prop_assert_eq!(ledger.is_stored(first + key), keys.contains(&key));
            }
        }
    }
}
