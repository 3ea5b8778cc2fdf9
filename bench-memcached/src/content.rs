//! What a key's item holds: flags and value are a pure function of the key (and the value's size), so every
//! reply can be checked without remembering what was stored.
//!
//! Values are arbitrary bytes, line ends included: a server that searches for line ends inside data is caught.

/// Flags of the item stored under `key`.
pub fn flags(key: &[u8]) -> u32 {
    (hash(key) >> 32) as u32
}

/// Appends the `size` bytes stored under `key` to `out`.
pub fn write_value(key: &[u8], size: usize, out: &mut Vec<u8>) {
    let end = out.len() + size;
    let mut state = hash(key) ^ size as u64;
    while out.len() < end {
        let word = split_mix(&mut state).to_le_bytes();
        let rest = end - out.len();
        out.extend_from_slice(&word[..rest.min(word.len())]);
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn value(key: &[u8], size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        write_value(key, size, &mut out);
        out
    }

    #[test]
    fn hash_is_fnv_1a() {
        // Reference values from the FNV authors' test suite.
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn keys_have_different_values_and_flags() {
        let keys: Vec<String> = (0..1000).map(|i| format!("memtier-{i}")).collect();
        let values: HashSet<Vec<u8>> = keys.iter().map(|k| value(k.as_bytes(), 32)).collect();
        let flags: HashSet<u32> = keys.iter().map(|k| flags(k.as_bytes())).collect();
        assert_eq!((values.len(), flags.len()), (1000, 1000));
    }

    proptest! {
        #[test]
        fn a_value_has_its_size_and_is_reproducible(key in "[!-~]{1,250}", size in 0usize..5000) {
            let first = value(key.as_bytes(), size);
            prop_assert_eq!(first.len(), size);
            let mut appended = b"before".to_vec();
            write_value(key.as_bytes(), size, &mut appended);
            prop_assert_eq!(&appended[6..], &first[..]);
        }
    }
}
