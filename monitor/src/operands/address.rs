//! Effective addresses.
//!
//! # Signal context
//! Arithmetic on registers; may be used in a handler.

use super::registers::Registers;
use iced_x86::{CodeSize, Instruction, Mnemonic, OpKind, Register, UsedMemory};

/// Linear address of an operand whose index, if any, is a general register.
pub fn linear(instruction: &Instruction, memory: &UsedMemory, registers: &Registers) -> u64 {
    let index = registers.get(memory.index());
    with_index(memory, index, bit_string_offset(instruction, registers), registers)
}

/// Linear address of an instruction's one memory operand: of general registers, which `value` gives by number, in the flat segment.
pub fn of_operand(instruction: &Instruction, value: impl Fn(usize) -> u64) -> u64 {
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    let value = |register: Register| if register.is_gpr() { value(register.number()) } else { 0 };
    let effective = instruction
        .memory_displacement64()
        .wrapping_add(value(base))
        .wrapping_add(value(index).wrapping_mul(u64::from(instruction.memory_index_scale())));
    if base.is_gpr32() || index.is_gpr32() { effective & 0xFFFF_FFFF } else { effective }
}

/// Linear address of an operand for one value of its index, moved by `offset` bytes.
pub fn with_index(memory: &UsedMemory, index: u64, offset: u64, registers: &Registers) -> u64 {
    let effective = memory
        .displacement()
        .wrapping_add(registers.get(memory.base()))
        .wrapping_add(index.wrapping_mul(u64::from(memory.scale())))
        .wrapping_add(offset);
    let effective = match memory.address_size() {
        CodeSize::Code16 => effective & 0xFFFF,
        CodeSize::Code32 => effective & 0xFFFF_FFFF,
        _ => effective,
    };
    effective.wrapping_add(registers.segment_base(memory.segment()))
}

/// `bt`, `bts`, `btr` and `btc` with a register operand address a bit string: the signed bit offset in the
/// register selects a word of the operand's size at any distance from the memory operand.
fn bit_string_offset(instruction: &Instruction, registers: &Registers) -> u64 {
    let bit_test =
        matches!(instruction.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc);
    if !bit_test || instruction.op0_kind() != OpKind::Memory || instruction.op1_kind() != OpKind::Register {
        return 0;
    }
    let register = instruction.op1_register();
    let size = register.size() as i64;
    let bits = sign_extend(registers.get(register), register);
    ((bits >> (size * 8).ilog2()) * size) as u64
}

fn sign_extend(value: u64, register: Register) -> i64 {
    let shift = 64 - 8 * register.size() as u32;
    ((value << shift) as i64) >> shift
}
