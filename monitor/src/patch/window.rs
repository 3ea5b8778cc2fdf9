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
/// Its first byte.
pub const OPCODE: u8 = 0xe9;

/// Whether executing an instruction that begins with this byte traps in 64-bit user code, whatever follows: int3, and what
/// only the kernel may do (hlt, cli, sti, in, out, ins, outs). Those that 64-bit mode has taken out would do as well, but raise SIGILL,
/// which the program may block.
pub const fn traps(byte: u8) -> bool {
    matches!(byte, 0xcc | 0xf4 | 0xfa | 0xfb | 0x6c..=0x6f | 0xec..=0xef)
}

/// What a byte of the displacement may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    /// Anything: no instruction begins there.
    Any,
    /// What traps: an instruction began there.
    Traps,
    /// What is there already: the jump of another patch.
    Exactly(u8),
}

impl Allowed {
    fn allows(self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Traps => traps(byte),
            Self::Exactly(only) => byte == only,
        }
    }
}

/// The window at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    site: u64,
    /// Of the displacement, lowest byte first.
    bytes: [Allowed; 4],
}

impl Window {
    /// The window at `site`; `starts` are the addresses at which the instructions of the straight line begin.
    pub fn new(site: u64, starts: impl IntoIterator<Item = u64>) -> Self {
        let mut window = Self { site, bytes: [Allowed::Any; 4] };
        for offset in starts.into_iter().filter_map(|start| start.checked_sub(site + 1)) {
            if let Some(byte) = window.bytes.get_mut(offset as usize) {
                *byte = Allowed::Traps;
            }
        }
        window
    }

    /// The same with a byte of the displacement fixed.
    pub fn with(mut self, byte: usize, value: u8) -> Self {
        self.bytes[byte] = Allowed::Exactly(value);
        self
    }

    /// The jump to `target`, if it is in reach and each byte is what it must be.
    pub fn jump(&self, target: u64) -> Option<[u8; JUMP]> {
        let displacement = i32::try_from(target.wrapping_sub(self.end()) as i64).ok()?;
        let [a, b, c, d] = displacement.to_le_bytes();
        self.misfit(displacement as u32).is_none().then_some([OPCODE, a, b, c, d])
    }

    /// The targets in `range` that fit, lowest first, `room` bytes apart at least.
    pub fn targets(&self, range: core::ops::Range<u64>, room: u64) -> impl Iterator<Item = u64> {
        let window = *self;
        let mut next = range.start;
        core::iter::from_fn(move || {
            while next + room <= range.end {
                let target = next;
                match window.misfit(target.wrapping_sub(window.end()) as u32) {
                    None => {
                        next = target + room;
                        return Some(target);
                    }
                    // The highest byte that does not fit decides where the next candidate is.
                    Some(byte) => next = next_multiple(target, window.end(), 1 << (8 * byte)),
                }
            }
            None
        })
    }

    fn end(&self) -> u64 {
        self.site + JUMP as u64
    }

    /// The highest byte of a displacement that does not fit, 0 being the lowest.
    fn misfit(&self, displacement: u32) -> Option<usize> {
        let bytes = displacement.to_le_bytes();
        (0..4).rev().find(|&byte| !self.bytes[byte].allows(bytes[byte]))
    }
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
        fn targets_are_exactly_those_that_fit(
            site in 0x40_0000u64..0x50_0000,
            starts in proptest::collection::vec(1u64..5, 0..3),
            fixed in proptest::option::of((0usize..2, any::<u8>())),
            from in 0u64..1 << 24,
        ) {
            let mut window = Window::new(site, starts.iter().map(|start| site + start));
            if let Some((byte, value)) = fixed {
                window = window.with(byte, value);
            }
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
        assert_eq!(Window::new(0x1000, [0x1003, 0x1006]).jump(0x2000), None);
        assert!(Window::new(0x1000, [0x1003]).with(0, 0xfb).jump(0x1005 + 0xcc_00fb).is_some());
    }
}
