//! The few instructions that translated code is made of, beside the program's own.
//!
//! # Signal context
//! Runs in handlers, and uses the private heap.

use super::slots::{Slot, displacement};
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, OpKind, Register};

/// A general register by number.
pub type Gpr = u8;
/// rax.
pub const RAX: Gpr = 0;
/// rcx, which holds the door.
pub const RCX: Gpr = 1;
/// rsp, never scratch.
pub const RSP: Gpr = 4;

/// Condition codes of jumps.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum If {
    /// OF.
    Overflow = 0x80,
    /// CF: below.
    Below = 0x82,
    /// Not CF: above or equal.
    AboveOrEqual = 0x83,
    /// ZF.
    Zero = 0x84,
}

/// Code that will lie at `base`.
pub struct Assembler {
    base: u64,
    code: Vec<u8>,
    encoder: Encoder,
}

impl Assembler {
    /// Nothing yet.
    pub fn new(base: u64) -> Self {
        Self { base, code: Vec::with_capacity(4096), encoder: Encoder::new(64) }
    }

    /// Where the code will lie.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes so far.
    pub fn here(&self) -> u32 {
        self.code.len() as u32
    }

    /// The code.
    pub fn code(&self) -> &[u8] {
        &self.code
    }

    /// Appends bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.code.extend_from_slice(bytes);
    }

    /// An instruction of the program's, adjusted to its new place if it is relative to it.
    pub fn instruction(&mut self, instruction: &Instruction, original: &[u8]) -> Option<()> {
        if !instruction.is_ip_rel_memory_operand() {
            self.bytes(&original[..instruction.len()]);
            return Some(());
        }
        let ip = self.base + u64::from(self.here());
        self.encoder.encode(instruction, ip).ok()?;
        let bytes = self.encoder.take_buffer();
        self.bytes(&bytes);
        Some(())
    }

    /// `lea to, [the operand of an instruction]`
    pub fn lea(&mut self, to: Gpr, of: &Instruction) -> Option<()> {
        let mut lea = Instruction::default();
        lea.set_code(Code::Lea_r64_m);
        lea.set_op0_kind(OpKind::Register);
        lea.set_op0_register(register(to));
        lea.set_op1_kind(OpKind::Memory);
        lea.set_memory_base(of.memory_base());
        lea.set_memory_index(of.memory_index());
        lea.set_memory_index_scale(of.memory_index_scale());
        lea.set_memory_displacement64(of.memory_displacement64());
        lea.set_memory_displ_size(of.memory_displ_size());
        let ip = self.base + u64::from(self.here());
        self.encoder.encode(&lea, ip).ok()?;
        let bytes = self.encoder.take_buffer();
        self.bytes(&bytes);
        Some(())
    }

    fn with_slot(&mut self, opcode: u8, register: Gpr, slot: Slot) {
        let rex = 0x48 | (register >> 3) << 2;
        self.bytes(&[0x64, rex, opcode, (register & 7) << 3 | 4, 0x25]);
        self.bytes(&displacement(slot).to_le_bytes());
    }

    /// `mov fs:[slot], register`
    pub fn store(&mut self, slot: Slot, register: Gpr) {
        self.with_slot(0x89, register, slot);
    }

    /// `mov register, fs:[slot]`
    pub fn load(&mut self, register: Gpr, slot: Slot) {
        self.with_slot(0x8b, register, slot);
    }

    /// `cmp register, fs:[slot]`
    pub fn compare(&mut self, register: Gpr, slot: Slot) {
        self.with_slot(0x3b, register, slot);
    }

    /// `add register, fs:[slot]`
    pub fn add_slot(&mut self, register: Gpr, slot: Slot) {
        self.with_slot(0x03, register, slot);
    }

    /// `and register, -16`
    pub fn align16(&mut self, register: Gpr) {
        self.bytes(&[0x48 | register >> 3, 0x83, 0xe0 | register & 7, 0xf0]);
    }

    fn at(&mut self, opcode: u8, base: Gpr, offset: u8) {
        if base >= 8 {
            self.bytes(&[0x41]);
        }
        self.bytes(&[opcode, 0x40 | base & 7]);
        if base & 7 == 4 {
            self.bytes(&[0x24]);
        }
        self.bytes(&[offset]);
    }

    /// `inc dword [base + offset]`
    pub fn increment(&mut self, base: Gpr, offset: u8) {
        self.at(0xff, base, offset);
    }

    /// `add dword [base + offset], value`
    pub fn add_to(&mut self, base: Gpr, offset: u8, value: i8) {
        self.at(0x83, base, offset);
        self.bytes(&[value as u8]);
    }

    /// `mov dword [rcx + offset], value`
    pub fn store_at_rcx(&mut self, offset: i32, value: u32) {
        self.bytes(&[0xc7, 0x81]);
        self.bytes(&offset.to_le_bytes());
        self.bytes(&value.to_le_bytes());
    }

    /// `jmp [rcx + offset]`
    pub fn jump_through_rcx(&mut self, offset: i32) {
        self.bytes(&[0xff, 0xa1]);
        self.bytes(&offset.to_le_bytes());
    }

    /// `kmovw [rcx + offset], mask`, or kmovq
    pub fn store_mask(&mut self, offset: i32, mask: u8, is_long: bool) -> Option<()> {
        let code = if is_long { Code::VEX_Kmovq_m64_kr } else { Code::VEX_Kmovw_m16_kr };
        let to = MemoryOperand::with_base_displ(Register::RCX, offset.into());
        let store = Instruction::with2(code, to, Register::K0 + u32::from(mask)).ok()?;
        self.encoder.encode(&store, 0).ok()?;
        let bytes = self.encoder.take_buffer();
        self.bytes(&bytes);
        Some(())
    }

    /// `jrcxz`; returns where its displacement is, for [`Assembler::bind_short`].
    pub fn jump_if_rcx_zero(&mut self) -> u32 {
        self.bytes(&[0xe3, 0]);
        self.here() - 1
    }

    /// Makes the short jump whose displacement is at `at` go to an offset in this code; none if it is out of reach.
    pub fn bind_short(&mut self, at: u32, to: u32) -> Option<()> {
        self.code[at as usize] = i8::try_from(to as i64 - i64::from(at) - 1).ok()? as u8;
        Some(())
    }

    /// rax = the arithmetic flags.
    pub fn flags_to_rax(&mut self) {
        self.bytes(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    }

    /// The arithmetic flags = rax, as [`Assembler::flags_to_rax`] left it.
    pub fn flags_from_rax(&mut self) {
        self.bytes(&[0x04, 0x7f, 0x9e]); // add al, 127 (sets OF from al = 1); sahf
    }

    /// A conditional jump; returns where its displacement is, for [`Assembler::bind`].
    pub fn jump_if(&mut self, condition: If) -> u32 {
        self.bytes(&[0x0f, condition as u8]);
        self.displacement()
    }

    /// A jump; returns where its displacement is.
    pub fn jump(&mut self) -> u32 {
        self.bytes(&[0xe9]);
        self.displacement()
    }

    /// A call; returns where its displacement is.
    pub fn call(&mut self) -> u32 {
        self.bytes(&[0xe8]);
        self.displacement()
    }

    /// Room for a displacement; returns where it is.
    pub fn displacement(&mut self) -> u32 {
        self.bytes(&[0; 4]);
        self.here() - 4
    }

    /// Makes the jump whose displacement is at `at` go to an offset in this code.
    pub fn bind(&mut self, at: u32, to: u32) {
        self.patch(at, to.wrapping_sub(at + 4));
    }

    /// Makes the jump whose displacement is at `at` go to an address; none if it is out of reach.
    pub fn bind_address(&mut self, at: u32, to: u64) -> Option<()> {
        let from = self.base + u64::from(at) + 4;
        let displacement = i32::try_from(to.wrapping_sub(from) as i64).ok()?;
        self.patch(at, displacement as u32);
        Some(())
    }

    fn patch(&mut self, at: u32, value: u32) {
        self.code[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// The word on top of the stack = `value`.
    pub fn set_top(&mut self, value: u64) {
        self.bytes(&[0xc7, 0x04, 0x24]);
        self.bytes(&(value as u32).to_le_bytes());
        self.bytes(&[0xc7, 0x44, 0x24, 4]);
        self.bytes(&((value >> 32) as u32).to_le_bytes());
    }
}

/// A 64-bit general register.
pub fn register(number: Gpr) -> Register {
    Register::RAX + u32::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    fn text(code: &[u8]) -> Vec<String> {
        let mut formatter = IntelFormatter::new();
        let instructions = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).into_iter();
        instructions
            .map(|instruction| {
                let mut text = String::new();
                formatter.format(&instruction, &mut text);
                text
            })
            .collect()
    }

    #[test]
    fn encodings() {
        for number in (0..16).filter(|&number| number != RSP) {
            let mut assembler = Assembler::new(0);
            assembler.align16(number);
            assembler.increment(number, 8);
            assembler.add_to(number, 4, -4);
            let name = format!("{:?}", register(number)).to_lowercase();
            let expected = [
                format!("and {name},0FFFFFFFFFFFFFFF0h"),
                format!("inc dword ptr [{name}+8]"),
                format!("add dword ptr [{name}+4],0FFFFFFFCh"),
            ];
            assert_eq!(text(assembler.code()), expected);
            let mut assembler = Assembler::new(0);
            assembler.compare(number, Slot::End);
            let found = &text(assembler.code())[0];
            assert!(found.starts_with(&format!("cmp {name},fs:[")), "{found}");
        }
    }
}
