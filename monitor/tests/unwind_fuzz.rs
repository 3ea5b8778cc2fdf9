//! Whatever the registers and the stack hold, a capture returns.
#![allow(unsafe_code)]

mod unwind_support;

use thermalloc_monitor::unwind::{Caller, UnwindState, capture, modules};

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn pick(&mut self, choices: &[u64]) -> u64 {
        choices[(self.next() % choices.len() as u64) as usize]
    }
}

fn storm(seed: u64, rounds: u32) -> [u32; 3] {
    let mut random = Random(seed);
    let mut state = Box::new(UnwindState::new());
    modules::poll();
    let code: Vec<u64> =
        modules::all().iter().flat_map(|m| m.ranges.clone()).flat_map(|r| [r.start, r.end]).collect();
    let mut garbage = vec![0u64; 4096];
    let mut frames = [0u64; 64];
    let mut lengths = [0; 3];
    for _ in 0..rounds {
        let here = &raw const lengths as u64;
        let bases = [here, garbage.as_ptr() as u64, here & !0xfff, 0, u64::MAX, random.next(), 1 << 47];
        for _ in 0..8 {
            let at = random.next() as usize % garbage.len();
            garbage[at] = match random.next() % 3 {
                0 => random.pick(&code).wrapping_add(random.next() % 100_000),
                1 => random.pick(&bases).wrapping_add(random.next() % 4096),
                _ => random.next(),
            };
        }
        let mut register = || {
            let mask = if random.next().is_multiple_of(4) { !0 } else { !7 };
            random.pick(&bases).wrapping_add(random.next() % 8192).wrapping_sub(random.next() % 4096) & mask
        };
        let (sp, bp) = (register(), register());
        let ip = match random.next() % 4 {
            0 => random.next(),
            _ => random.pick(&code).wrapping_add(random.next() % 1_000_000),
        };
        let len = capture(&mut state, Caller { ip, sp, bp }, 64, &mut frames);
        assert!((1..=64).contains(&len));
        assert_eq!(frames[0], ip);
        lengths[len.min(3) - 1] += 1;
    }
    lengths
}

#[test]
fn random_registers_and_stacks_are_survived() {
    let rounds = if std::env::var_os("THERMALLOC_LONG_FUZZ").is_some() { 20_000_000 } else { 100_000 };
    let other = std::thread::spawn(move || storm(0x1234_5678, rounds));
    let mine = storm(0x9e37_79b9, rounds);
    let other = other.join().expect("no panic");
    for lengths in [mine, other] {
        assert!(lengths.iter().all(|count| *count > 0), "some stacks end at once, some go on: {lengths:?}");
    }
}
