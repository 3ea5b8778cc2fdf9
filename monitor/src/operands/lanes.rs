//! Operands of which only some lanes are touched: gathers, scatters, masked loads and stores.
//!
//! # Signal context
//! Arithmetic on registers; may be used in a handler.

use super::access::{Accesses, Kind};
use super::address;
use super::registers::Registers;
use super::suppression::{self, Masking};
use super::vectors::Vectors;
use iced_x86::{Instruction, Mnemonic, Register, UsedMemory};

/// Where an operand's accesses go: one call for each direction of a read-modify-write.
pub struct Sink<'a> {
    /// The list.
    pub accesses: &'a mut Accesses,
    /// Directions.
    pub kinds: &'a [Kind],
}

impl Sink<'_> {
    /// One access in each direction.
    pub fn push(&mut self, addr: u64, len: u64) {
        for &kind in self.kinds {
            self.accesses.push(addr, len, kind);
        }
    }

    /// One access for each run of contiguous active lanes.
    fn push_runs(&mut self, addr: u64, lane: u64, mask: u64) {
        runs(addr, lane, mask).for_each(|(addr, len)| self.push(addr, len));
    }
}

/// The runs of contiguous lanes, of `lane` bytes each from `addr` on, whose bits are set: address and bytes of each.
pub fn runs(addr: u64, lane: u64, mask: u64) -> impl Iterator<Item = (u64, u64)> + Clone {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let first = u64::from(rest.trailing_zeros());
        let count = u64::from((rest >> first).trailing_ones());
        rest &= !(low_bits(count) << first);
        Some((addr.wrapping_add(first * lane), count * lane))
    })
}

/// One access for each active lane of a gather or scatter.
pub fn scattered(
    instruction: &Instruction,
    memory: &UsedMemory,
    registers: &Registers,
    vectors: &dyn Vectors,
    sink: &mut Sink<'_>,
) {
    let lane = memory.memory_size().size();
    let index_size = memory.vsib_size() as usize;
    let indices = vectors.vector(memory.index().number());
    // Data and index registers differ in length when their lanes do; the one with fewer lanes decides.
    let data = if instruction.op0_register() == Register::None {
        instruction.op1_register()
    } else {
        instruction.op0_register()
    };
    let count = (data.size() / lane).min(memory.index().size() / index_size);
    let active = match instruction.op_mask() {
        Register::None => sign_bits(&vectors.vector(instruction.op2_register().number()), lane),
        mask => vectors.mask(mask.number()),
    };
    for (number, index) in indices.chunks_exact(index_size).enumerate().take(count) {
        if active & (1 << number) != 0 {
            let index = match *index {
                [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])) as u64,
                [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                _ => 0,
            };
            sink.push(address::with_index(memory, index, 0, registers), lane as u64);
        }
    }
}

/// The touched parts of a contiguous operand at `addr`, if lanes can be turned off; false if they cannot.
pub fn masked(
    instruction: &Instruction,
    memory: &UsedMemory,
    addr: u64,
    vectors: &dyn Vectors,
    sink: &mut Sink<'_>,
) -> bool {
    match vector_mask(instruction, memory, vectors) {
        Some((lane, active)) => sink.push_runs(addr, lane, active),
        None if instruction.op_mask() != Register::None => {
            let active = vectors.mask(instruction.op_mask().number());
            opmask(instruction, memory, addr, active, sink);
        }
        None => return false,
    }
    true
}

/// Lane size and active lanes of the instructions whose mask is a vector register.
fn vector_mask(instruction: &Instruction, memory: &UsedMemory, vectors: &dyn Vectors) -> Option<(u64, u64)> {
    let (mask, lane, len) = match instruction.mnemonic() {
        Mnemonic::Vmaskmovps | Mnemonic::Vpmaskmovd => {
            (instruction.op1_register(), 4, memory.memory_size().size())
        }
        Mnemonic::Vmaskmovpd | Mnemonic::Vpmaskmovq => {
            (instruction.op1_register(), 8, memory.memory_size().size())
        }
        Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => (instruction.op2_register(), 1, 16),
        Mnemonic::Maskmovq => {
            let mask = vectors.mmx(instruction.op2_register().number());
            return Some((1, sign_bits(&mask, 1)));
        }
        _ => return None,
    };
    let value = vectors.vector(mask.number());
    Some((lane as u64, sign_bits(value.get(..len).unwrap_or(&[]), lane)))
}

/// The touched parts of an operand under an AVX-512 mask register.
fn opmask(instruction: &Instruction, memory: &UsedMemory, addr: u64, active: u64, sink: &mut Sink<'_>) {
    let size = memory.memory_size();
    let len = size.size() as u64;
    match suppression::masking(instruction, size) {
        Masking::Ignored => sink.push(addr, len),
        Masking::Lanes { lane } => sink.push_runs(addr, lane, active & low_bits(len / lane)),
        Masking::Packed { lane } => {
            let count = (active & low_bits(len / lane)).count_ones();
            sink.push(addr, u64::from(count) * lane);
        }
        Masking::Repeated { lane, tuple, lanes } => {
            let wanted = active & low_bits(lanes);
            let folded = (0..lanes / tuple).fold(0, |bits, copy| bits | wanted >> (copy * tuple));
            sink.push_runs(addr, lane, folded & low_bits(tuple));
        }
    }
}

/// Bit n is the sign of lane n.
fn sign_bits(vector: &[u8], lane: usize) -> u64 {
    let lanes = vector.chunks_exact(lane).enumerate();
    lanes.fold(0, |bits, (number, lane)| {
        bits | u64::from(lane.last().is_some_and(|top| top & 0x80 != 0)) << number
    })
}

/// So many ones.
pub fn low_bits(count: u64) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
