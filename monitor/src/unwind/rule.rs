//! How to get from one frame to its caller.
//!
//! A rule is what is left of a row of DWARF call frame information when only RIP, RSP and RBP are of interest.
//! Eight bytes, so that a thread can keep many of them.
//!
//! # Signal context
//! Pure; reads the stack only through the reader that it is given.

/// How the canonical frame address (CFA: RSP of the caller once the call has returned) is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Cfa {
    /// There is no caller.
    #[default]
    End,
    /// RSP + offset.
    Sp,
    /// RBP + offset.
    Bp,
    /// The word at RSP + offset.
    AtSp,
    /// The word at RBP + offset: a function that has realigned its stack.
    AtBp,
    /// RSP points to the `ucontext_t` of a signal handler that is returning.
    Signal,
    /// Code that nobody describes: believe RBP, if it makes sense.
    FramePointer,
}

/// Where the caller's RBP is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SavedBp {
    /// Still in RBP.
    #[default]
    Same,
    /// At CFA + offset.
    AtCfa,
    /// At RBP + offset.
    AtBp,
    /// At RSP + offset.
    AtSp,
    /// In a register that is not followed.
    Lost,
}

/// A step from a frame to its caller. All bytes zero: no caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Rule {
    /// Offset that belongs to `cfa`, in bytes.
    pub cfa_offset: i32,
    /// Offset that belongs to `saved_bp`, in words of 8 bytes.
    pub bp_words: i16,
    /// How the CFA is found.
    pub cfa: Cfa,
    /// Where the caller's RBP is.
    pub saved_bp: SavedBp,
}

/// The registers that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// RBP, whatever the function uses it for.
    pub bp: u64,
}

/// All values of [`Cfa`] and [`SavedBp`], by number.
const CFAS: [Cfa; 7] = [Cfa::End, Cfa::Sp, Cfa::Bp, Cfa::AtSp, Cfa::AtBp, Cfa::Signal, Cfa::FramePointer];
const PLACES: [SavedBp; 5] = [SavedBp::Same, SavedBp::AtCfa, SavedBp::AtBp, SavedBp::AtSp, SavedBp::Lost];

/// Offsets in `ucontext_t` (x86-64 System V ABI, as the kernel writes it): `uc_mcontext.gregs[REG_RBP, REG_RSP, REG_RIP]`.
const UCONTEXT_BP: u64 = 120;
const UCONTEXT_SP: u64 = 160;
const UCONTEXT_IP: u64 = 168;

/// A caller's frame may be that far above the frame that RBP alone vouches for, in bytes.
const PLAUSIBLE_FRAME: u64 = 1 << 20;

impl Rule {
    /// No caller.
    pub const END: Self = Self { cfa_offset: 0, bp_words: 0, cfa: Cfa::End, saved_bp: SavedBp::Same };
    /// A signal handler's return address.
    pub const SIGNAL: Self = Self { cfa: Cfa::Signal, ..Self::END };
    /// Code without any description.
    pub const FRAME_POINTER: Self = Self { cfa: Cfa::FramePointer, ..Self::END };

    /// The rule as one word.
    pub fn to_bits(self) -> u64 {
        let [kind, saved] = [self.cfa as u64, self.saved_bp as u64];
        u64::from(self.cfa_offset as u32) | u64::from(self.bp_words as u16) << 32 | kind << 48 | saved << 56
    }

    /// The rule that [`to_bits`](Self::to_bits) has made this word from.
    pub fn from_bits(bits: u64) -> Option<Self> {
        let [kind, saved] = [(bits >> 48) as u8, (bits >> 56) as u8].map(usize::from);
        Some(Self {
            cfa_offset: bits as i32,
            bp_words: (bits >> 32) as i16,
            cfa: *CFAS.get(kind)?,
            saved_bp: *PLACES.get(saved)?,
        })
    }

    /// True if the caller's `ip` is where it was interrupted, not a return address.
    pub fn is_signal(self) -> bool {
        self.cfa == Cfa::Signal
    }

    /// The caller's registers, or `None` at the end of the stack or where it cannot be read.
    #[inline]
    pub fn step(self, at: Registers, read: &mut impl FnMut(u64) -> Option<u64>) -> Option<Registers> {
        let offset = i64::from(self.cfa_offset);
        let cfa = match self.cfa {
            Cfa::Sp => at.sp.checked_add_signed(offset)?,
            Cfa::Bp => at.bp.checked_add_signed(offset)?,
            Cfa::AtSp => read(at.sp.checked_add_signed(offset)?)?,
            Cfa::AtBp => read(at.bp.checked_add_signed(offset)?)?,
            Cfa::End => return None,
            Cfa::Signal => return interrupted(at.sp, read),
            Cfa::FramePointer => return by_frame_pointer(at, read),
        };
        let ip = read(cfa.checked_sub(8)?)?;
        let words = i64::from(self.bp_words) * 8;
        let bp = match self.saved_bp {
            SavedBp::Same => at.bp,
            SavedBp::AtCfa => read(cfa.checked_add_signed(words)?)?,
            SavedBp::AtBp => read(at.bp.checked_add_signed(words)?)?,
            SavedBp::AtSp => read(at.sp.checked_add_signed(words)?)?,
            SavedBp::Lost => 0,
        };
        let next = Registers { ip, sp: cfa, bp };
        (next != at).then_some(next)
    }
}

#[cold]
fn interrupted(ucontext: u64, read: &mut impl FnMut(u64) -> Option<u64>) -> Option<Registers> {
    Some(Registers {
        ip: read(ucontext.checked_add(UCONTEXT_IP)?)?,
        sp: read(ucontext.checked_add(UCONTEXT_SP)?)?,
        bp: read(ucontext.checked_add(UCONTEXT_BP)?)?,
    })
}

#[cold]
fn by_frame_pointer(at: Registers, read: &mut impl FnMut(u64) -> Option<u64>) -> Option<Registers> {
    if at.bp < at.sp || at.bp - at.sp > PLAUSIBLE_FRAME {
        return None;
    }
    Some(Registers { ip: read(at.bp.checked_add(8)?)?, sp: at.bp.checked_add(16)?, bp: read(at.bp)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: u64 = 0x7000;
    const AT: Registers = Registers { ip: 1, sp: BASE, bp: BASE + 0x20 };

    /// Every word of this stack holds its own address plus one.
    fn read(address: u64) -> Option<u64> {
        (BASE..BASE + 0x200).contains(&address).then_some(address + 1)
    }

    fn rule(cfa: Cfa, cfa_offset: i32, saved_bp: SavedBp, bp_words: i16) -> Rule {
        Rule { cfa_offset, bp_words, cfa, saved_bp }
    }

    #[test]
    fn a_rule_is_eight_bytes() {
        assert_eq!(size_of::<Rule>(), 8);
    }

    #[test]
    fn the_caller_is_found_from_rsp_and_from_rbp() {
        let from_sp = rule(Cfa::Sp, 0x30, SavedBp::AtCfa, -2).step(AT, &mut read);
        assert_eq!(from_sp, Some(Registers { ip: BASE + 0x29, sp: BASE + 0x30, bp: BASE + 0x21 }));
        let from_bp = rule(Cfa::Bp, 16, SavedBp::AtBp, 0).step(AT, &mut read);
        assert_eq!(from_bp, Some(Registers { ip: BASE + 0x29, sp: BASE + 0x30, bp: BASE + 0x21 }));
        let kept = rule(Cfa::Sp, 8, SavedBp::Same, 0).step(AT, &mut read);
        assert_eq!(kept, Some(Registers { ip: BASE + 1, sp: BASE + 8, bp: AT.bp }));
    }

    #[test]
    fn a_realigned_frame_keeps_its_cfa_in_memory() {
        let mut memory = |address| match address {
            a if a == AT.bp - 8 => Some(BASE + 0x100),
            a => read(a),
        };
        let next = rule(Cfa::AtBp, -8, SavedBp::AtBp, 0).step(AT, &mut memory);
        assert_eq!(next, Some(Registers { ip: BASE + 0xf9, sp: BASE + 0x100, bp: BASE + 0x21 }));
    }

    #[test]
    fn unreadable_memory_and_the_last_frame_end_the_stack() {
        assert_eq!(Rule::END.step(AT, &mut read), None);
        assert_eq!(rule(Cfa::Sp, 0x10000, SavedBp::Same, 0).step(AT, &mut read), None);
        let below = Registers { bp: BASE - 8, ..AT };
        assert_eq!(Rule::FRAME_POINTER.step(below, &mut read), None);
    }

    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), 0u64..64, u64::MAX - 64..=u64::MAX, BASE..BASE + 64]
    }

    proptest! {
        #[test]
        fn a_step_neither_panics_nor_stands_still(
            kind in 0usize..7, saved in 0usize..5, offset: i32, words: i16,
            ip in word(), sp in word(), bp in word(), memory in word(),
        ) {
            let at = Registers { ip, sp, bp };
            let rule = rule(CFAS[kind], offset, PLACES[saved], words);
            prop_assert_eq!(Rule::from_bits(rule.to_bits()), Some(rule));
            let next = rule.step(at, &mut |address| (address % 3 != 0).then_some(memory));
            prop_assert!(kind > 4 || next != Some(at));
        }
    }
}
