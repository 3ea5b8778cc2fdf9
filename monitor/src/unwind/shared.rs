//! The rules that any thread has computed, for the others: a table without locks.
//!
//! Each entry is two words, the rule and a check word made of the rule, its address and the generation of the modules
//! that it is true of. Words of different entries do not fit together, so a torn read is a miss (the lockless table
//! of Hyatt and Mann, "A lock-less transposition table implementation for parallel search chess engines", 2002). A
//! new entry overwrites the old one; nothing is ever cleared, for old generations no longer fit.
//!
//! # Signal context
//! Lock-free; allocates nothing.

use super::rule::Rule;
use std::sync::atomic::{AtomicU64, Ordering};

/// Half a MiB of address space, touched as far as used.
const ENTRIES: usize = 1 << 15;

/// 2^64 divided by the golden ratio (Knuth, volume 3, section 6.4), and another odd number without structure.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX: u64 = 0xd6e8_feb8_6659_fd93;

struct Entry {
    rule: AtomicU64,
    check: AtomicU64,
}

/// Rules by address and generation.
pub struct Rules([Entry; ENTRIES]);

/// Slot of `address` in a table of 2^`bits` slots.
#[inline]
pub fn slot(address: u64, bits: u32) -> usize {
    (address.wrapping_mul(SPREAD) >> (64 - bits)) as usize
}

impl Rules {
    pub const fn new() -> Self {
        Self([const { Entry { rule: AtomicU64::new(0), check: AtomicU64::new(0) } }; ENTRIES])
    }

    /// The rule for `address`, if it has been computed in this generation and not been overwritten.
    pub fn get(&self, address: u64, generation: u64) -> Option<Rule> {
        let entry = self.entry(address);
        // Relaxed: the check word tells whether the two belong together.
        let rule = entry.rule.load(Ordering::Relaxed);
        (entry.check.load(Ordering::Relaxed) == check(rule, address, generation))
            .then(|| Rule::from_bits(rule))?
    }

    /// Remembers a rule.
    pub fn put(&self, address: u64, generation: u64, rule: Rule) {
        let entry = self.entry(address);
        let rule = rule.to_bits();
        // Relaxed: as in `get`.
        entry.rule.store(rule, Ordering::Relaxed);
        entry.check.store(check(rule, address, generation), Ordering::Relaxed);
    }

    fn entry(&self, address: u64) -> &Entry {
        &self.0[slot(address, ENTRIES.trailing_zeros())]
    }
}

/// Never 0 for an untouched entry's rule 0 unless by an accident of one in 2^64.
fn check(rule: u64, address: u64, generation: u64) -> u64 {
    (address ^ rule.wrapping_mul(MIX)).wrapping_add(generation.wrapping_add(1).wrapping_mul(SPREAD))
}

#[cfg(test)]
mod tests {
    use super::super::rule::{Cfa, SavedBp};
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn rule_of(address: u64) -> Rule {
        Rule { cfa_offset: address as i32, bp_words: -2, cfa: Cfa::Bp, saved_bp: SavedBp::AtCfa }
    }

    #[test]
    fn a_rule_is_true_of_its_address_and_generation_alone() {
        static RULES: Rules = Rules::new();
        assert_eq!(RULES.get(0, 0), None);
        RULES.put(77, 3, rule_of(77));
        assert_eq!(RULES.get(77, 3), Some(rule_of(77)));
        assert_eq!(RULES.get(77, 4), None);
        assert_eq!(RULES.get(78, 3), None);
    }

    #[test]
    fn writers_of_one_entry_do_not_mix() {
        static RULES: Rules = Rules::new();
        static STOP: AtomicBool = AtomicBool::new(false);
        let same: Vec<u64> = (0..).filter(|a| slot(*a, 15) == slot(0, 15)).take(3).collect();
        let rivals = same.clone();
        let writer = std::thread::spawn(move || {
            while !STOP.load(Ordering::Relaxed) {
                rivals.iter().for_each(|address| RULES.put(*address, 1, rule_of(*address)));
            }
        });
        let mut hits = 0;
        while hits < 100_000 {
            for address in &same {
                if let Some(rule) = RULES.get(*address, 1) {
                    assert_eq!(rule, rule_of(*address));
                    hits += 1;
                }
            }
        }
        STOP.store(true, Ordering::Relaxed);
        writer.join().expect("the writer");
    }
}
