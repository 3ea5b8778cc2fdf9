//! Keys and values: a map in shards, each behind a lock. Every key and every value is a heap object of exactly its
//! size; nothing is evicted.

use crate::command::Condition;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

const SHARDS: usize = 64;
/// Expiry times up to this many seconds are relative.
const RELATIVE: i64 = 30 * 24 * 60 * 60;
/// Longest value that can be incremented, in bytes.
const MAX_NUMBER: usize = 20;

type Shard = HashMap<Box<[u8]>, Item>;

/// What is stored under a key.
pub struct Item {
    pub flags: u32,
    pub cas: u64,
    pub value: Box<[u8]>,
    /// When it ends, in seconds since 1970.
    expires: Option<i64>,
}

/// Answer to a storage command.
#[derive(Debug, PartialEq, Eq)]
pub enum Stored {
    Yes,
    No,
    Changed,
    NotFound,
}

/// Answer to `incr` and `decr`.
#[derive(Debug, PartialEq, Eq)]
pub enum Sum {
    Is(u64),
    NotFound,
    NotANumber,
}

/// All items. Times are seconds since 1970.
pub struct Store {
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    last_cas: AtomicU64,
    flush_at: AtomicU64,
}

/// When an expiry argument given at `now` ends an item.
fn deadline(expiry: i64, now: i64) -> Option<i64> {
    match expiry {
        0 => None,
        ..0 => Some(now),
        1..=RELATIVE => Some(now + expiry),
        _ => Some(expiry),
    }
}

impl Item {
    fn is_over(&self, now: i64) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

impl Store {
    pub fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            last_cas: AtomicU64::new(0),
            flush_at: AtomicU64::new(0),
        }
    }

    /// The key's shard, without the key's item if that is over.
    fn shard(&self, key: &[u8], now: i64) -> MutexGuard<'_, Shard> {
        self.flush_if_due(now);
        let index = self.hasher.hash_one(key) as usize % self.shards.len();
        let mut shard = lock(&self.shards[index]);
        if shard.get(key).is_some_and(|item| item.is_over(now)) {
            shard.remove(key);
        }
        shard
    }

    fn next_cas(&self) -> u64 {
        // Relaxed: only uniqueness matters; items are ordered by their shard's lock.
        self.last_cas.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Calls `read` with the key's item, if there is one, while no one can change it.
    pub fn read<R>(&self, key: &[u8], now: i64, read: impl FnOnce(&Item) -> R) -> Option<R> {
        self.shard(key, now).get(key).map(read)
    }

    pub fn store(&self, key: &[u8], now: i64, condition: Condition, new: (u32, i64, Box<[u8]>)) -> Stored {
        let (flags, expiry, value) = new;
        let mut shard = self.shard(key, now);
        match (condition, shard.get(key)) {
            (Condition::Absent, Some(_)) | (Condition::Present, None) => return Stored::No,
            (Condition::Unchanged(_), None) => return Stored::NotFound,
            (Condition::Unchanged(known), Some(item)) if known != item.cas => return Stored::Changed,
            _ => {}
        }
        let item = Item { flags, cas: self.next_cas(), value, expires: deadline(expiry, now) };
        match shard.get_mut(key) {
            Some(old) => *old = item,
            None => drop(shard.insert(key.into(), item)),
        }
        Stored::Yes
    }

    /// Whether there was such a key.
    pub fn delete(&self, key: &[u8], now: i64) -> bool {
        self.shard(key, now).remove(key).is_some()
    }

    /// Adds to a number, modulo 2^64, or subtracts, not below 0. As in memcached, a number that fits the old value's
    /// length is written in place, padded with spaces.
    pub fn add(&self, key: &[u8], now: i64, delta: u64, negative: bool) -> Sum {
        let mut shard = self.shard(key, now);
        let Some(item) = shard.get_mut(key) else { return Sum::NotFound };
        let Some(old) = leading_number(&item.value) else { return Sum::NotANumber };
        let sum = if negative { old.saturating_sub(delta) } else { old.wrapping_add(delta) };
        let digits = sum.to_string().into_bytes();
        if digits.len() > item.value.len() {
            item.value = digits.into();
        } else {
            let (front, rest) = item.value.split_at_mut(digits.len());
            front.copy_from_slice(&digits);
            rest.fill(b' ');
        }
        item.cas = self.next_cas();
        Sum::Is(sum)
    }

    /// Whether there is such a key.
    pub fn touch(&self, key: &[u8], now: i64, expiry: i64) -> bool {
        let mut shard = self.shard(key, now);
        let Some(item) = shard.get_mut(key) else { return false };
        item.expires = deadline(expiry, now);
        true
    }

    /// Ends all items, now or at a later time.
    pub fn flush(&self, now: i64, delay: i64) {
        // memcached marks the moment by a number of its own, which clients of `gets` can see.
        self.next_cas();
        let at = deadline(delay, now).unwrap_or(now);
        // Relaxed here and below: the shards' locks order what follows.
        self.flush_at.store(at.max(1) as u64, Ordering::Relaxed);
        self.flush_if_due(now);
    }

    fn flush_if_due(&self, now: i64) {
        let at = self.flush_at.load(Ordering::Relaxed);
        if at == 0 || now < at as i64 {
            return;
        }
        if self.flush_at.compare_exchange(at, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.shards.iter().for_each(|shard| lock(shard).clear());
        }
    }

    /// Number of items and bytes of their values.
    pub fn size(&self) -> (usize, usize) {
        let shards = self.shards.iter().map(|shard| {
            let shard = lock(shard);
            (shard.len(), shard.values().map(|item| item.value.len()).sum::<usize>())
        });
        shards.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().expect("no command panics while it holds a shard")
}

/// The number at the start of a value, which must end there or go on with white space.
fn leading_number(value: &[u8]) -> Option<u64> {
    if value.len() > MAX_NUMBER {
        return None;
    }
    let text = std::str::from_utf8(value.trim_ascii_start()).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn set(store: &Store, key: &[u8], value: &[u8], expiry: i64) {
        assert_eq!(store.store(key, NOW, Condition::Always, (0, expiry, value.into())), Stored::Yes);
    }

    fn value(store: &Store, key: &[u8], now: i64) -> Option<Vec<u8>> {
        store.read(key, now, |item| item.value.to_vec())
    }

    #[test]
    fn items_end_when_they_should() {
        let store = Store::new();
        set(&store, b"k", b"v", -1);
        assert_eq!(value(&store, b"k", NOW), None);
        for (expiry, end) in [(10, NOW + 10), (RELATIVE, NOW + RELATIVE), (NOW + 5, NOW + 5)] {
            set(&store, b"k", b"v", expiry);
            assert!(value(&store, b"k", end - 1).is_some());
            assert_eq!(value(&store, b"k", end), None);
        }
        set(&store, b"k", b"v", 0);
        assert!(store.touch(b"k", NOW, 7) && !store.touch(b"other", NOW, 7));
        assert_eq!(value(&store, b"k", NOW + 7), None);
    }

    #[test]
    fn a_delayed_flush_takes_what_was_stored_before_it() {
        let store = Store::new();
        set(&store, b"a", b"1", 0);
        store.flush(NOW, 5);
        assert!(value(&store, b"a", NOW + 4).is_some());
        assert!(value(&store, b"a", NOW + 5).is_none());
        set(&store, b"a", b"2", 0);
        assert!(value(&store, b"a", NOW + 6).is_some());
    }

    #[test]
    fn sums_wrap_stop_at_zero_and_keep_their_length() {
        let store = Store::new();
        set(&store, b"n", b"18446744073709551615", 0);
        assert_eq!(store.add(b"n", NOW, 2, false), Sum::Is(1));
        assert_eq!(value(&store, b"n", NOW).unwrap(), b"1                   ");
        assert_eq!(store.add(b"n", NOW, 2, true), Sum::Is(0));
        set(&store, b"n", b"9", 0);
        assert_eq!(store.add(b"n", NOW, 1, false), Sum::Is(10));
        assert_eq!(value(&store, b"n", NOW).unwrap(), b"10");
        set(&store, b"n", b"x", 0);
        assert_eq!(
            (store.add(b"n", NOW, 1, false), store.add(b"m", NOW, 1, false)),
            (Sum::NotANumber, Sum::NotFound)
        );
    }
}
