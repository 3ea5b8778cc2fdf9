//! Copies of the `rep` string instructions, each followed by a trap, so that one runs whole with one stop.
//!
//! # Safety
//! Only addresses are taken here; handlers send a thread to a stub with the program's registers.
//!
//! # Signal context
//! Constants.
#![allow(unsafe_code)]

use crate::operands::{RepString, StringOp};
use core::arch::global_asm;
use iced_x86::Register;

/// Bytes from one stub to the next.
const STRIDE: usize = 8;
/// Bytes of the longest string instruction here: operand-size, rep, REX.W or none, opcode.
const LONGEST: usize = 3;

global_asm!(
    ".pushsection .text.thermalloc_rep,\"ax\",@progbits",
    ".p2align 6",
    ".globl thermalloc_rep_stubs",
    ".hidden thermalloc_rep_stubs",
    "thermalloc_rep_stubs:",
    // Each instruction is padded in front with nothing and behind with traps, so a stub's own length does not
    // matter: the first trap behind it is the one that is hit.
    ".macro thermalloc_rep_stub instruction:vararg",
    ".p2align 3, 0xcc",
    "\\instruction",
    "int3",
    ".endm",
    "thermalloc_rep_stub rep movsb",
    "thermalloc_rep_stub rep movsw",
    "thermalloc_rep_stub rep movsd",
    "thermalloc_rep_stub rep movsq",
    "thermalloc_rep_stub rep stosb",
    "thermalloc_rep_stub rep stosw",
    "thermalloc_rep_stub rep stosd",
    "thermalloc_rep_stub rep stosq",
    "thermalloc_rep_stub rep lodsb",
    "thermalloc_rep_stub rep lodsw",
    "thermalloc_rep_stub rep lodsd",
    "thermalloc_rep_stub rep lodsq",
    "thermalloc_rep_stub repe cmpsb",
    "thermalloc_rep_stub repe cmpsw",
    "thermalloc_rep_stub repe cmpsd",
    "thermalloc_rep_stub repe cmpsq",
    "thermalloc_rep_stub repe scasb",
    "thermalloc_rep_stub repe scasw",
    "thermalloc_rep_stub repe scasd",
    "thermalloc_rep_stub repe scasq",
    "thermalloc_rep_stub repne cmpsb",
    "thermalloc_rep_stub repne cmpsw",
    "thermalloc_rep_stub repne cmpsd",
    "thermalloc_rep_stub repne cmpsq",
    "thermalloc_rep_stub repne scasb",
    "thermalloc_rep_stub repne scasw",
    "thermalloc_rep_stub repne scasd",
    "thermalloc_rep_stub repne scasq",
    ".p2align 3, 0xcc",
    ".purgem thermalloc_rep_stub",
    ".popsection",
);

unsafe extern "C" {
    static thermalloc_rep_stubs: u8;
}

/// Where an instruction's copy starts, and RIP after its trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stub {
    /// Address of the copy.
    pub start: u64,
    /// RIP that SIGTRAP shows when the copy is done.
    pub trapped: u64,
}

/// The stub for an instruction; `None` for forms with a segment or 32-bit addresses, which are stepped instead.
pub fn stub(string: &RepString) -> Option<Stub> {
    if string.addr32 || !matches!(string.source_segment, Register::DS | Register::None) {
        return None;
    }
    let size = string.element.trailing_zeros() as usize;
    let group = match (string.op, string.repne) {
        (StringOp::Movs, _) => 0,
        (StringOp::Stos, _) => 1,
        (StringOp::Lods, _) => 2,
        (StringOp::Cmps, false) => 3,
        (StringOp::Scas, false) => 4,
        (StringOp::Cmps, true) => 5,
        (StringOp::Scas, true) => 6,
    };
    let start = (&raw const thermalloc_rep_stubs as usize + (4 * group + size) * STRIDE) as u64;
    // Bytes and doublewords take two bytes; words a prefix 66, quadwords a REX.W besides.
    let len = if size % 2 == 1 { LONGEST } else { LONGEST - 1 };
    Some(Stub { start, trapped: start + len as u64 + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn every_stub_is_its_instruction_and_a_trap() {
        for op in [StringOp::Movs, StringOp::Stos, StringOp::Lods, StringOp::Cmps, StringOp::Scas] {
            for element in [1u8, 2, 4, 8] {
                for repne in [false, true] {
                    let string =
                        RepString { op, element, repne, addr32: false, source_segment: Register::DS };
                    let stub = stub(&string).unwrap();
                    // SAFETY: the stubs are code of this program.
                    let code = unsafe { core::slice::from_raw_parts(stub.start as *const u8, STRIDE) };
                    let mut decoder = Decoder::with_ip(64, code, stub.start, DecoderOptions::NONE);
                    let instruction = decoder.decode();
                    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
                    assert!(name.starts_with(&format!("{op:?}").to_lowercase()), "{name} for {string:?}");
                    assert_eq!(instruction.memory_size().size(), usize::from(element), "{string:?}");
                    if matches!(op, StringOp::Cmps | StringOp::Scas) {
                        assert_eq!(instruction.has_repne_prefix(), repne, "{string:?}");
                    }
                    let trap = decoder.decode();
                    assert_eq!(trap.mnemonic(), Mnemonic::Int3);
                    assert_eq!(trap.next_ip(), stub.trapped, "{string:?}");
                }
            }
        }
    }

    #[test]
    fn odd_forms_have_none() {
        let plain = RepString {
            op: StringOp::Movs,
            element: 1,
            repne: false,
            addr32: false,
            source_segment: Register::DS,
        };
        assert_eq!(stub(&RepString { addr32: true, ..plain }), None);
        assert_eq!(stub(&RepString { source_segment: Register::FS, ..plain }), None);
    }
}
