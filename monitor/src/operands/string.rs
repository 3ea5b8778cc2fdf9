//! `rep` string instructions as whole ranges, not one access an element.
//!
//! # Signal context
//! Arithmetic on registers; may be used in a handler.

use super::access::{Accesses, Kind};
use super::registers::{DIRECTION_FLAG, Registers, index};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Which string instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringOp {
    /// Copies from rsi to rdi.
    Movs,
    /// Fills from rdi on.
    Stos,
    /// Loads from rsi on.
    Lods,
    /// Compares rsi with rdi.
    Cmps,
    /// Searches from rdi on.
    Scas,
}

/// A string instruction with a `rep` prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepString {
    /// Which one.
    pub op: StringOp,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub element: u8,
    /// Prefix F2: `cmps` and `scas` stop at the first equal element, not at the first different one.
    pub repne: bool,
    /// Prefix 67: ecx, esi and edi count.
    pub addr32: bool,
    /// Segment of the source (rsi); the destination has none.
    pub source_segment: Register,
}

impl RepString {
    /// What the instruction is, if it is a string instruction with a `rep` prefix.
    pub(super) fn of(instruction: &Instruction) -> Option<Self> {
        if !instruction.has_rep_prefix() && !instruction.has_repne_prefix() {
            return None;
        }
        let (op, element) = string_op(instruction.mnemonic())?;
        // `movsd` and `cmpsd` are SSE instructions too; only string instructions have such operands.
        let mut kinds = instruction.op_kinds();
        let addr32 = kinds.any(|kind| matches!(kind, OpKind::MemorySegESI | OpKind::MemoryESEDI));
        let addr64 =
            instruction.op_kinds().any(|kind| matches!(kind, OpKind::MemorySegRSI | OpKind::MemoryESRDI));
        (addr32 || addr64).then(|| Self {
            op,
            element,
            repne: instruction.has_repne_prefix(),
            addr32,
            source_segment: instruction.memory_segment(),
        })
    }

    /// What the instruction touches at most: rcx elements of each operand. `cmps` and `scas` may stop earlier.
    /// A range that would leave the address space is cut at its end.
    pub fn max_ranges(&self, registers: &Registers) -> Accesses {
        self.ranges(registers, registers.gpr[index::RCX] & self.address_mask())
    }

    /// What the instruction did touch between two states: all of it, or the part before a fault or trap.
    pub fn done_ranges(&self, before: &Registers, after: &Registers) -> Accesses {
        let done = before.gpr[index::RCX].wrapping_sub(after.gpr[index::RCX]);
        self.ranges(before, done & self.address_mask())
    }

    fn ranges(&self, registers: &Registers, count: u64) -> Accesses {
        let mut accesses = Accesses::new();
        if matches!(self.op, StringOp::Movs | StringOp::Lods | StringOp::Cmps) {
            let base = registers.segment_base(self.source_segment);
            self.push(&mut accesses, registers, index::RSI, base, count, Kind::Read);
        }
        match self.op {
            StringOp::Movs | StringOp::Stos => {
                self.push(&mut accesses, registers, index::RDI, 0, count, Kind::Write);
            }
            StringOp::Cmps | StringOp::Scas => {
                self.push(&mut accesses, registers, index::RDI, 0, count, Kind::Read);
            }
            StringOp::Lods => {}
        }
        accesses
    }

    fn push(
        &self,
        accesses: &mut Accesses,
        registers: &Registers,
        pointer: usize,
        base: u64,
        count: u64,
        kind: Kind,
    ) {
        if count == 0 {
            return;
        }
        let element = u64::from(self.element);
        let first = registers.gpr[pointer] & self.address_mask();
        let before_last = (count - 1).saturating_mul(element);
        let (low, len) = if registers.rflags & DIRECTION_FLAG == 0 {
            let room = (self.address_mask() - first).saturating_add(1);
            (first, before_last.saturating_add(element).min(room))
        } else {
            let below = before_last.min(first);
            (first - below, below.saturating_add(element))
        };
        accesses.push(base.wrapping_add(low), len, kind);
    }

    fn address_mask(&self) -> u64 {
        if self.addr32 { u32::MAX.into() } else { u64::MAX }
    }
}

/// Which string instruction, and the bytes of an element; also for the SSE instructions of the same names.
pub fn string_op(mnemonic: Mnemonic) -> Option<(StringOp, u8)> {
    Some(match mnemonic {
        Mnemonic::Movsb => (StringOp::Movs, 1),
        Mnemonic::Movsw => (StringOp::Movs, 2),
        Mnemonic::Movsd => (StringOp::Movs, 4),
        Mnemonic::Movsq => (StringOp::Movs, 8),
        Mnemonic::Stosb => (StringOp::Stos, 1),
        Mnemonic::Stosw => (StringOp::Stos, 2),
        Mnemonic::Stosd => (StringOp::Stos, 4),
        Mnemonic::Stosq => (StringOp::Stos, 8),
        Mnemonic::Lodsb => (StringOp::Lods, 1),
        Mnemonic::Lodsw => (StringOp::Lods, 2),
        Mnemonic::Lodsd => (StringOp::Lods, 4),
        Mnemonic::Lodsq => (StringOp::Lods, 8),
        Mnemonic::Cmpsb => (StringOp::Cmps, 1),
        Mnemonic::Cmpsw => (StringOp::Cmps, 2),
        Mnemonic::Cmpsd => (StringOp::Cmps, 4),
        Mnemonic::Cmpsq => (StringOp::Cmps, 8),
        Mnemonic::Scasb => (StringOp::Scas, 1),
        Mnemonic::Scasw => (StringOp::Scas, 2),
        Mnemonic::Scasd => (StringOp::Scas, 4),
        Mnemonic::Scasq => (StringOp::Scas, 8),
        _ => return None,
    })
}
