//! What a single-stepper must know of an instruction beside its accesses.
//!
//! # Signal context
//! Table look-ups; may be used in a handler.

use super::string::RepString;
use iced_x86::{Instruction, Mnemonic, Register};

/// How an instruction goes together with the trap flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One step, one trap.
    Plain,
    /// Traps after each element.
    RepString(RepString),
    /// A gather or scatter. A page fault after some lanes turns into the trap of a completed step: RIP has not
    /// moved, the mask bits of the lanes that are done are clear, and the instruction must be stepped again.
    Scattered,
    /// `syscall` and `sysenter`: the kernel takes over.
    Syscall,
    /// `int n`, `int3`, `int1`: a software interrupt, `int 0x80` included.
    Interrupt,
    /// `pushf`: the stored image shows the trap flag.
    PushFlags,
    /// `popf` and `iret`: the loaded image decides over the trap flag; the trap of this step still comes.
    PopFlags,
    /// `mov ss` and `sti`: the trap comes only after the next instruction, which runs unseen.
    DelaysTrap,
    /// `wrpkru`, `rdpkru` and `xrstor`: reads or replaces the protection keys that a step holds open.
    ProtectionKeys,
    /// No instruction, or the code bytes end before it does.
    Invalid,
}

impl Class {
    pub(super) fn of(instruction: &Instruction) -> Self {
        if let Some(string) = RepString::of(instruction) {
            return Self::RepString(string);
        }
        match instruction.mnemonic() {
            Mnemonic::INVALID => Self::Invalid,
            Mnemonic::Syscall | Mnemonic::Sysenter => Self::Syscall,
            Mnemonic::Int | Mnemonic::Int1 | Mnemonic::Int3 => Self::Interrupt,
            Mnemonic::Pushf | Mnemonic::Pushfq => Self::PushFlags,
            Mnemonic::Popf | Mnemonic::Popfq | Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => {
                Self::PopFlags
            }
            Mnemonic::Mov if instruction.op0_register() == Register::SS => Self::DelaysTrap,
            Mnemonic::Sti => Self::DelaysTrap,
            Mnemonic::Wrpkru | Mnemonic::Rdpkru => Self::ProtectionKeys,
            Mnemonic::Xrstor | Mnemonic::Xrstor64 => Self::ProtectionKeys,
            _ if instruction.is_vsib() => Self::Scattered,
            _ => Self::Plain,
        }
    }
}
