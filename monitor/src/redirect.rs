//! An instruction redirected: the same operation, with its memory operand in the alias view.
//!
//! The base of gs is the displacement of the alias view. So an operand moves by a prefix: no register changes, no displacement has to
//! fit, and every addressing mode works, vector indices included.
//!
//! # Signal context
//! Pure functions of the code bytes; the disassembler's tables have been warmed.

use crate::operands::decode::MAX_LEN;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// The prefix that selects gs.
const GS: u8 = 0x65;
/// Segment prefixes that mean nothing in 64-bit mode: es, cs, ss, ds.
const NULL_SEGMENTS: [u8; 4] = [0x26, 0x2e, 0x36, 0x3e];

/// A redirected instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirected {
    bytes: [u8; MAX_LEN],
    len: u8,
    /// Whether it accesses the stack besides, where nothing is redirected.
    pub stack: bool,
    /// A near call through memory: pushes where it stands, so it cannot run elsewhere.
    pub calls: bool,
}

impl Redirected {
    /// The jump to where a call goes.
    pub fn as_jump(&self) -> Option<Self> {
        let mut jump = *self;
        // FF /2 is the call, FF /4 the jump. No prefix is FF.
        let opcode = self.bytes().iter().position(|&byte| byte == 0xff)?;
        let modrm = jump.bytes.get_mut(opcode + 1)?;
        *modrm = *modrm & !0x38 | 4 << 3;
        Some(jump)
    }

    /// The code.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Redirects the first instruction of `code`, if it has exactly one memory operand that a segment prefix applies to.
pub fn redirect(code: &[u8]) -> Option<Redirected> {
    let mut instruction = Instruction::default();
    Decoder::new(64, code, DecoderOptions::NONE).decode_out(&mut instruction);
    redirect_decoded(&instruction, code.get(..instruction.len())?)
}

/// [`redirect`] of an instruction that has been decoded from `code`, all of it.
pub fn redirect_decoded(instruction: &Instruction, code: &[u8]) -> Option<Redirected> {
    let operand = operand(instruction)?;
    if !matches!(operand, Register::DS | Register::SS | Register::None) {
        return None;
    }
    let stack = instruction.is_stack_instruction();
    let calls = matches!(instruction.code(), Code::Call_rm64);
    let mut bytes = [0; MAX_LEN];
    let mut len = 1;
    bytes[0] = GS;
    // Legacy prefixes come first, in any order; a segment among them would take precedence over ours, or the other way round.
    let prefixes = code.iter().take_while(|byte| is_legacy_prefix(**byte)).count();
    for (at, &byte) in code.iter().enumerate() {
        if at < prefixes && NULL_SEGMENTS.contains(&byte) {
            continue;
        }
        *bytes.get_mut(len)? = byte;
        len += 1;
    }
    Some(Redirected { bytes, len: len as u8, stack, calls })
}

/// The segment of the one operand that a prefix applies to.
fn operand(instruction: &Instruction) -> Option<Register> {
    if instruction.is_invalid() || is_left_alone(instruction) {
        return None;
    }
    let mut found = false;
    for kind in instruction.op_kinds() {
        match kind {
            OpKind::Memory | OpKind::MemorySegDI | OpKind::MemorySegEDI | OpKind::MemorySegRDI => {
                if found {
                    return None;
                }
                found = true;
            }
            // String instructions: the destination has no prefix.
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI => return None,
            _ => {}
        }
    }
    (found && !instruction.is_ip_rel_memory_operand()).then(|| instruction.memory_segment())
}

/// Instructions with memory that their operand does not tell, or that mean something else elsewhere.
fn is_left_alone(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(instruction.mnemonic(), Movdir64b | Enqcmd | Enqcmds | Lea | Enter | Bndldx | Bndstx | Bndmk)
        || instruction.has_xacquire_prefix()
        || instruction.has_xrelease_prefix()
        // Far calls and jumps push and load segments.
        || matches!(instruction.code(), Code::Call_m1616 | Code::Call_m1632 | Code::Call_m1664)
        || matches!(instruction.code(), Code::Jmp_m1616 | Code::Jmp_m1632 | Code::Jmp_m1664)
}

fn is_legacy_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_moves_the_operand_and_nothing_else() {
        let cases: &[(&[u8], Option<&[u8]>)] = &[
            (&[0x48, 0x8b, 0x43, 0x08], Some(&[0x65, 0x48, 0x8b, 0x43, 0x08])), // mov rax, [rbx+8]
            (&[0x3e, 0x48, 0x8b, 0x03], Some(&[0x65, 0x48, 0x8b, 0x03])),       // ds: dropped
            (&[0xf0, 0x48, 0xff, 0x03], Some(&[0x65, 0xf0, 0x48, 0xff, 0x03])), // lock inc
            (&[0x64, 0x48, 0x8b, 0x03], None),                                  // fs:
            (&[0x48, 0x8b, 0x05, 0, 0, 0, 0], None),                            // rip-relative
            (&[0xa4], None),                                                    // movsb
            (&[0x48, 0x8d, 0x03], None),                                        // lea
            (&[0x48, 0x89, 0xd8], None),                                        // no memory
            (&[0xc5, 0xfe, 0x6f, 0x00], Some(&[0x65, 0xc5, 0xfe, 0x6f, 0x00])), // vmovdqu ymm0, [rax]
        ];
        for (code, expected) in cases {
            let found = redirect(code);
            assert_eq!(found.as_ref().map(Redirected::bytes), *expected, "{code:x?}");
        }
        let push = redirect(&[0xff, 0x33]).unwrap();
        assert!(push.stack && !push.calls);
        let call = redirect(&[0xff, 0x13]).unwrap();
        assert!(call.stack && call.calls);
        assert_eq!(redirect(&[0x48]), None);
    }

    #[test]
    fn what_gets_too_long_is_refused() {
        // Fifteen bytes: no room for another prefix.
        let mut code = vec![0x66; 8];
        code.extend([0xc7, 0x80, 0, 0, 0, 0, 0]);
        assert_eq!(code.len(), 15);
        assert_eq!(redirect(&code), None);
    }
}
