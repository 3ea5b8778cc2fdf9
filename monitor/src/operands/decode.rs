//! The decoder: instruction bytes and registers in, accesses and class out.
//!
//! # Signal context
//! [`DecoderState::new`] allocates and warms what the disassembler builds on first use; after that
//! [`DecoderState::decode`] may be called in a handler. A state belongs to one thread, and a handler that
//! interrupts a decode must not use the same state.

use super::access::{Accesses, Kind};
use super::address;
use super::class::Class;
use super::lanes::{self, Sink};
use super::layout::XsaveLayout;
use super::registers::{Registers, index};
use super::vectors::Vectors;
use core::arch::x86_64::__cpuid;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess,
};

/// The longest instruction, in bytes.
pub const MAX_LEN: usize = 15;

/// One decoded instruction.
#[derive(Clone, Copy, Debug)]
pub struct Decoded {
    /// Bytes of the instruction; of an invalid one, as many as were looked at.
    pub len: u8,
    /// Every access that it makes. For [`Class::RepString`] those of the whole instruction at most
    /// ([`super::RepString::max_ranges`]).
    pub accesses: Accesses,
    /// What to mind when stepping over it.
    pub class: Class,
    /// False if it touches memory that is not in `accesses` because its extent is not known: AMX tiles, and
    /// instructions of VIA processors.
    pub complete: bool,
}

/// What decoding needs besides its arguments: made once for each thread, outside handlers.
pub struct DecoderState {
    factory: InstructionInfoFactory,
    options: u32,
    layout: XsaveLayout,
}

impl DecoderState {
    /// Asks the processor for its vendor and makes room for every instruction. Allocates.
    pub fn new(layout: XsaveLayout) -> Self {
        let options = if is_amd() { DecoderOptions::AMD } else { DecoderOptions::NONE };
        let mut state = Self { factory: InstructionInfoFactory::new(), options, layout };
        state.warm();
        state
    }

    /// Decodes the instruction that `code` begins with and that lies at `registers.rip`. Hand in [`MAX_LEN`] bytes,
    /// or what there is before the end of the mapping.
    pub fn decode(&mut self, code: &[u8], registers: &Registers, vectors: &dyn Vectors) -> Decoded {
        let code = code.get(..MAX_LEN).unwrap_or(code);
        let mut instruction = Instruction::default();
        Decoder::with_ip(64, code, registers.rip, self.options).decode_out(&mut instruction);
        let class = Class::of(&instruction);
        let mut decoded =
            Decoded { len: instruction.len() as u8, accesses: Accesses::new(), class, complete: true };
        match class {
            Class::Invalid => {}
            Class::RepString(string) => decoded.accesses = string.max_ranges(registers),
            _ if touches_nothing(instruction.mnemonic()) => {}
            _ => self.operands(&instruction, registers, vectors, &mut decoded),
        }
        decoded
    }

    /// The accesses of an instruction that has been decoded before, and is no string instruction; none if they are not known.
    pub fn accesses(
        &mut self,
        instruction: &Instruction,
        registers: &Registers,
        vectors: &dyn Vectors,
    ) -> Option<Accesses> {
        let class = Class::Plain;
        let mut decoded =
            Decoded { len: instruction.len() as u8, accesses: Accesses::new(), class, complete: true };
        self.operands(instruction, registers, vectors, &mut decoded);
        decoded.complete.then_some(decoded.accesses)
    }

    fn operands(
        &mut self,
        instruction: &Instruction,
        registers: &Registers,
        vectors: &dyn Vectors,
        decoded: &mut Decoded,
    ) {
        let layout = self.layout;
        let info = self.factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
        for memory in info.used_memory() {
            let mut sink = Sink { accesses: &mut decoded.accesses, kinds: kinds(memory.access()) };
            if memory.vsib_size() != 0 {
                lanes::scattered(instruction, memory, registers, vectors, &mut sink);
                continue;
            }
            let addr = address::linear(instruction, memory, registers);
            if lanes::masked(instruction, memory, addr, vectors, &mut sink) {
                continue;
            }
            if save_area(instruction, addr, registers, &layout, sink.accesses) {
                continue;
            }
            match memory.memory_size().size() as u64 {
                0 => decoded.complete = false,
                len => sink.push(addr, len),
            }
        }
        if instruction.mnemonic() == Mnemonic::Clzero {
            let line = registers.get(instruction.op0_register()) & !63;
            decoded.accesses.push(line, 64, Kind::Write);
        }
    }

    /// Decodes once what makes the disassembler build its tables and grow its lists: they are shared by all
    /// instructions, and no instruction has more operands than a fully nested `enter`.
    fn warm(&mut self) {
        const ENTER_0_31: [u8; 4] = [0xC8, 0, 0, 31];
        let registers = Registers::default();
        self.decode(&ENTER_0_31, &registers, &super::NoVectors);
    }
}

/// The accesses of the xsave family; false if the instruction is not of it. An area is one access up to the end of
/// the last requested component. A save reads which components were saved before, to keep the others' bits.
fn save_area(
    instruction: &Instruction,
    addr: u64,
    registers: &Registers,
    layout: &XsaveLayout,
    accesses: &mut Accesses,
) -> bool {
    const XSTATE_BV: u64 = 512;
    let requested = registers.gpr[index::RDX] << 32 | registers.gpr[index::RAX] & 0xFFFF_FFFF;
    match instruction.mnemonic() {
        Mnemonic::Xsave | Mnemonic::Xsave64 | Mnemonic::Xsaveopt | Mnemonic::Xsaveopt64 => {
            accesses.push(addr.wrapping_add(XSTATE_BV), 8, Kind::Read);
            accesses.push(addr, layout.standard_len(requested), Kind::Write);
        }
        Mnemonic::Xsavec | Mnemonic::Xsavec64 => {
            accesses.push(addr, layout.compacted_len(requested), Kind::Write)
        }
        Mnemonic::Xrstor | Mnemonic::Xrstor64 => {
            accesses.push(addr, layout.standard_len(requested), Kind::Read)
        }
        _ => return false,
    }
    true
}

/// Directions of an operand. What the instruction set calls conditional is still transferred: a conditional
/// move loads, a failing `cmpxchg` stores the old value; lanes are treated elsewhere.
pub fn kinds(access: OpAccess) -> &'static [Kind] {
    match access {
        OpAccess::Read | OpAccess::CondRead => &[Kind::Read],
        OpAccess::Write | OpAccess::CondWrite => &[Kind::Write],
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => &[Kind::Read, Kind::Write],
        OpAccess::None | OpAccess::NoMemAccess => &[],
    }
}

/// Instructions that name memory without transferring any.
pub fn touches_nothing(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Clflush
            | Mnemonic::Clflushopt
            | Mnemonic::Clwb
            | Mnemonic::Umonitor
            | Mnemonic::Monitor
            | Mnemonic::Monitorx
            | Mnemonic::Invlpg
            | Mnemonic::Ud0
            | Mnemonic::Ud1
    )
}

fn is_amd() -> bool {
    let id = __cpuid(0);
    let amd = u32::from_le_bytes(*b"Auth");
    let hygon = u32::from_le_bytes(*b"Hygo");
    id.ebx == amd || id.ebx == hygon
}
