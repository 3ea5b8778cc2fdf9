//! Which masked AVX-512 instructions touch lanes that their mask turns off.
//!
//! Instructions of exception classes E4NF, E5NF, E6NF and E9NF to E12NF ("no fault suppression") read their whole
//! memory operand whatever the mask says; all others leave inactive lanes alone.
//! Source: Intel SDM volume 2, section 2.8, checked against hardware by the tests.
//!
//! # Signal context
//! Table look-ups; may be used in a handler.

use iced_x86::{Instruction, MemorySize, Mnemonic};

/// What a mask register means for a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// The operand is read whole.
    Ignored,
    /// Bit n stands for the n-th `lane` bytes.
    Lanes { lane: u64 },
    /// As many times `lane` bytes as there are bits set, without gaps.
    Packed { lane: u64 },
    /// The whole operand is used by each of `lanes` lanes: read unless all are off.
    Repeated { lanes: u64 },
}

/// How the instruction's mask register applies to its memory operand of type `size`.
pub fn masking(instruction: &Instruction, size: MemorySize) -> Masking {
    let mnemonic = instruction.mnemonic();
    if reads_whole(mnemonic) {
        return Masking::Ignored;
    }
    let element = size.element_size() as u64;
    if instruction.is_broadcast() {
        return Masking::Repeated { lanes: broadcast_len(size) / size.size() as u64 };
    }
    match mnemonic {
        Mnemonic::Vpcompressb
        | Mnemonic::Vpcompressw
        | Mnemonic::Vpcompressd
        | Mnemonic::Vpcompressq
        | Mnemonic::Vcompressps
        | Mnemonic::Vcompresspd
        | Mnemonic::Vpexpandb
        | Mnemonic::Vpexpandw
        | Mnemonic::Vpexpandd
        | Mnemonic::Vpexpandq
        | Mnemonic::Vexpandps
        | Mnemonic::Vexpandpd => Masking::Packed { lane: element },
        Mnemonic::Vpbroadcastb
        | Mnemonic::Vpbroadcastw
        | Mnemonic::Vpbroadcastd
        | Mnemonic::Vpbroadcastq
        | Mnemonic::Vbroadcastss
        | Mnemonic::Vbroadcastsd => {
            Masking::Repeated { lanes: instruction.op0_register().size() as u64 / element }
        }
        // Bytes and words are multiplied, but the mask has a bit for each sum of four bytes or two words.
        Mnemonic::Vpdpbusd | Mnemonic::Vpdpbusds | Mnemonic::Vpdpwssd | Mnemonic::Vpdpwssds => {
            Masking::Lanes { lane: 4 }
        }
        _ => Masking::Lanes { lane: element.max(1) },
    }
}

/// Bytes of the vector that an embedded broadcast fills.
fn broadcast_len(size: MemorySize) -> u64 {
    const { assert!(MemorySize::Broadcast32_Float16 as u32 + 1 == MemorySize::Broadcast64_UInt32 as u32) };
    match size as u32 {
        n if n >= MemorySize::Broadcast512_Int16 as u32 => 64,
        n if n >= MemorySize::Broadcast256_Int16 as u32 => 32,
        n if n >= MemorySize::Broadcast128_Int16 as u32 => 16,
        n if n >= MemorySize::Broadcast64_UInt32 as u32 => 8,
        _ => 4,
    }
}

fn reads_whole(mnemonic: Mnemonic) -> bool {
    matches!(mnemonic, Mnemonic::Valignd | Mnemonic::Valignq)
}
