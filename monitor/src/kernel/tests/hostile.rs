//! Whatever the arguments and the memory, an answer comes soon, and its ranges keep their promises.

use super::*;
use proptest::prelude::*;

/// Every read succeeds with bytes from a repeated pattern, so that strings never end and arrays never stop.
struct Endless {
    pattern: [u8; 8],
    reads: RefCell<u32>,
}

impl Memory for Endless {
    fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        *self.reads.borrow_mut() += 1;
        for (at, byte) in (addr..).zip(into) {
            *byte = self.pattern[(at % 8) as usize];
        }
        true
    }
}

/// Numbers near the edges that matter, and any other.
fn argument() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        any::<u32>().prop_map(u64::from),
        0..2048u64,
        0x1000..0x7fff_ffff_f000u64,
        (0u32..4096).prop_map(|below| u64::MAX - u64::from(below)),
        (0u32..4096).prop_map(|around| 0x7fff_ffff_e000 + u64::from(around)),
    ]
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Before),
        any::<i64>().prop_map(|result| Phase::After { result }),
        (-200..200i64).prop_map(|result| Phase::After { result }),
    ]
}

fn check(nr: i64, args: &[u64; 6], phase: Phase, memory: &dyn Memory, reads: &RefCell<u32>) {
    let mut visits = 0u32;
    ranges(nr, args, phase, memory, &mut |range| {
        visits += 1;
        assert!(range.addr != 0 && range.len != 0);
        assert!(range.addr.checked_add(range.len).is_some_and(|end| end <= 0x7fff_ffff_f000));
    });
    assert!(*reads.borrow() <= 1 << 17, "{} reads of memory", reads.borrow());
    assert!(visits <= 1 << 21, "{visits} ranges");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn arbitrary_calls_end(
        nr in -2..480i64,
        args in prop::array::uniform6(argument()),
        phase in phase(),
        pattern in prop_oneof![any::<[u8; 8]>(), argument().prop_map(u64::to_ne_bytes)],
    ) {
        let endless = Endless { pattern, reads: RefCell::new(0) };
        check(nr, &args, phase, &endless, &endless.reads);
        let nothing = Fake::default();
        check(nr, &args, phase, &nothing, &nothing.reads);
    }
}

#[test]
fn worst_argument_lists_end() {
    for pattern in [[1, 0, 0, 0, 0, 0, 1, 0], [0x40; 8], [0, 0, 0x10, 0, 0, 0x10, 0, 0]] {
        let endless = Endless { pattern, reads: RefCell::new(0) };
        check(libc::SYS_execve, &[8, 8, 8, 0, 0, 0], Phase::Before, &endless, &endless.reads);
        let endless = Endless { pattern, reads: RefCell::new(0) };
        check(libc::SYS_recvmmsg, &[0, 8, 1024, 0, 0, 0], Phase::Before, &endless, &endless.reads);
    }
}
