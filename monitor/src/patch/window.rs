//! The window of a patch: five bytes of the original code that become a jump, and what they may look like where other
//! instructions began.
//!
//! A jump replaces the instruction at the site and may reach into those behind it. No analysis can tell that nothing else jumps to one of
//! these, so each byte at which an instruction began must be one that traps when it is executed: then whoever comes there is
//! sent to the translation. The bytes are part of the jump's displacement, so the displacement is chosen to fit (instruction punning: Chamith
//! et al., PLDI 2017; E9Patch: Duck et al., PLDI 2020).
//!
//! # Signal context
//! Pure functions.

/// Bytes of a jump.
pub const JUMP: usize = 5;
const OPCODE: u8 = 0xe9;

/// Whether executing an instruction that begins with this byte traps in 64-bit user code, whatever follows: int3, and what
/// only the kernel may do (hlt, cli, sti, in, out, ins, outs). Those that 64-bit mode has taken out would do as well, but raise SIGILL,
/// which the program may block.
pub const fn traps(byte: u8) -> bool {
    matches!(byte, 0xcc | 0xf4 | 0xfa | 0xfb | 0x6c..=0x6f | 0xec..=0xef)
}

/// Where instructions begin in the window behind the first: a bit for each of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    site: u64,
    starts: u8,
}

impl Window {
    /// The window at `site`; `starts` are the addresses at which the instructions of the straight line begin.
    pub fn new(site: u64, starts: impl IntoIterator<Item = u64>) -> Self {
        let within = |start: u64| start.checked_sub(site).filter(|offset| (1..JUMP as u64).contains(offset));
        let starts = starts.into_iter().filter_map(within).fold(0, |bits, offset| bits | 1 << offset);
        Self { site, starts }
    }

    /// The jump to `target`, if it is in reach and traps where it must.
    pub fn jump(&self, target: u64) -> Option<[u8; JUMP]> {
        let displacement = i32::try_from(target.wrapping_sub(self.site + JUMP as u64) as i64).ok()?;
        let [a, b, c, d] = displacement.to_le_bytes();
        let jump = [OPCODE, a, b, c, d];
        let fits = (1..JUMP).all(|offset| self.starts >> offset & 1 == 0 || traps(jump[offset]));
        fits.then_some(jump)
    }

    /// The targets in `range` that fit, lowest first, `room` bytes apart at least.
    pub fn targets(&self, range: core::ops::Range<u64>, room: u64) -> impl Iterator<Item = u64> {
        let window = *self;
        let mut next = range.start;
        core::iter::from_fn(move || {
            while next + room <= range.end {
                let target = next;
                match window.skip(target) {
                    None => {
                        next = target + room;
                        return Some(target);
                    }
                    // The highest byte that does not fit decides where the next candidate is.
                    Some(byte) => next = next_multiple(target, self_end(window.site), 1 << (8 * byte)),
                }
            }
            None
        })
    }

    /// The highest byte of the displacement to `target` that does not fit, 0 being the lowest.
    fn skip(&self, target: u64) -> Option<usize> {
        let displacement = target.wrapping_sub(self_end(self.site)) as u32;
        (0..4).rev().find(|&byte| {
            let value = displacement.to_le_bytes()[byte];
            self.starts >> (byte + 1) & 1 != 0 && !traps(value)
        })
    }
}

fn self_end(site: u64) -> u64 {
    site + JUMP as u64
}

/// The least address above `at` whose distance from `from` is a multiple of `step`.
fn next_multiple(at: u64, from: u64, step: u64) -> u64 {
    let distance = at.wrapping_sub(from);
    from.wrapping_add((distance / step + 1).wrapping_mul(step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn targets_are_exactly_those_that_fit(site in 0x40_0000u64..0x50_0000, starts in 0u8..32, from in 0u64..1 << 24) {
            let window = Window { site, starts: starts & 0b11110 };
            let range = site + 0x600_0000 + from..site + 0x600_0000 + from + 0x2_0000;
            let found: Vec<u64> = window.targets(range.clone(), 1).take(600).collect();
            let expected: Vec<u64> = range.filter(|&target| window.jump(target).is_some()).take(600).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_long_instruction_goes_anywhere() {
        let window = Window::new(0x1000, [0x1000, 0x1007]);
        assert_eq!(window.jump(0x2000), Some([0xe9, 0xfb, 0x0f, 0, 0]));
        assert_eq!(window.jump(0x1_0000_0000), None);
        assert_eq!(Window::new(0x1000, [0x1003, 0x1006]).starts, 0b1000);
    }
}
