//! Which masked AVX-512 instructions touch lanes that their mask turns off.
//!
//! Instructions of exception classes E4NF, E5NF, E6NF and E9NF to E12NF ("no fault suppression") read their whole
//! memory operand whatever the mask says; all others leave inactive lanes alone.
//! Source: Intel SDM volume 2, section 2.8, checked against hardware by the tests.
//!
//! # Signal context
//! Table look-ups; may be used in a handler.

use iced_x86::{Instruction, MemorySize, Mnemonic, OpKind};

/// What a mask register means for a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// The operand is read whole.
    Ignored,
    /// Bit n stands for the n-th `lane` bytes.
    Lanes { lane: u64 },
    /// As many times `lane` bytes as there are bits set, without gaps.
    Packed { lane: u64 },
    /// The operand is `tuple` lanes of `lane` bytes, repeated to fill a vector of `lanes` lanes: a lane is read
    /// if any of its copies is wanted.
    Repeated { lane: u64, tuple: u64, lanes: u64 },
}

/// How the instruction's mask register applies to its memory operand of type `size`.
pub fn masking(instruction: &Instruction, size: MemorySize) -> Masking {
    let mnemonic = instruction.mnemonic();
    if reads_whole(mnemonic) || shifts_by_memory(instruction) {
        return Masking::Ignored;
    }
    let lane = mask_granularity(mnemonic, size);
    if instruction.is_broadcast() {
        return Masking::Repeated { lane, tuple: 1, lanes: broadcast_len(size) / lane };
    }
    if packs(mnemonic) {
        return Masking::Packed { lane };
    }
    if fills(mnemonic) {
        let tuple = size.size() as u64 / lane;
        return Masking::Repeated { lane, tuple, lanes: instruction.op0_register().size() as u64 / lane };
    }
    Masking::Lanes { lane }
}

/// Bytes of memory for which one mask bit stands.
fn mask_granularity(mnemonic: Mnemonic, size: MemorySize) -> u64 {
    match mnemonic {
        // Bytes and words are multiplied, but a bit stands for a sum of four bytes or two words.
        Mnemonic::Vpdpbusd | Mnemonic::Vpdpbusds | Mnemonic::Vpdpwssd | Mnemonic::Vpdpwssds => 4,
        // Only the low half of each lane is a factor.
        Mnemonic::Vpmuldq | Mnemonic::Vpmuludq => 8,
        // A complex number of two halves.
        Mnemonic::Vfmulcsh | Mnemonic::Vfcmulcsh | Mnemonic::Vfmaddcsh | Mnemonic::Vfcmaddcsh => 4,
        _ if size.is_broadcast() => size.size() as u64,
        _ => size.element_size().max(1) as u64,
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

/// Compression and expansion: the lanes lie together in memory.
fn packs(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Vpcompressb
            | M::Vpcompressw
            | M::Vpcompressd
            | M::Vpcompressq
            | M::Vcompressps
            | M::Vcompresspd
            | M::Vpexpandb
            | M::Vpexpandw
            | M::Vpexpandd
            | M::Vpexpandq
            | M::Vexpandps
            | M::Vexpandpd
    )
}

/// Vector broadcasts.
fn fills(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Vpbroadcastb
            | M::Vpbroadcastw
            | M::Vpbroadcastd
            | M::Vpbroadcastq
            | M::Vbroadcastss
            | M::Vbroadcastsd
            | M::Vbroadcastf32x2
            | M::Vbroadcastf32x4
            | M::Vbroadcastf32x8
            | M::Vbroadcastf64x2
            | M::Vbroadcastf64x4
            | M::Vbroadcasti32x2
            | M::Vbroadcasti32x4
            | M::Vbroadcasti32x8
            | M::Vbroadcasti64x2
            | M::Vbroadcasti64x4
    )
}

/// Shifts whose count, one for all lanes, is a memory operand.
fn shifts_by_memory(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    instruction.op2_kind() == OpKind::Memory
        && matches!(
            instruction.mnemonic(),
            M::Vpsllw
                | M::Vpslld
                | M::Vpsllq
                | M::Vpsraw
                | M::Vpsrad
                | M::Vpsraq
                | M::Vpsrlw
                | M::Vpsrld
                | M::Vpsrlq
        )
}

/// Shuffles, packs, and multiplications across lanes: no fault suppression.
fn reads_whole(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Valignd
            | M::Valignq
            | M::Vcvtne2ps2bf16
            | M::Vdbpsadbw
            | M::Vgf2p8affineinvqb
            | M::Vgf2p8affineqb
            | M::Vinsertf32x4
            | M::Vinsertf32x8
            | M::Vinsertf64x2
            | M::Vinsertf64x4
            | M::Vinserti32x4
            | M::Vinserti32x8
            | M::Vinserti64x2
            | M::Vinserti64x4
            | M::Vmovddup
            | M::Vmovshdup
            | M::Vmovsldup
            | M::Vpackssdw
            | M::Vpacksswb
            | M::Vpackusdw
            | M::Vpackuswb
            | M::Vpalignr
            | M::Vpconflictd
            | M::Vpconflictq
            | M::Vpermb
            | M::Vpermd
            | M::Vpermi2b
            | M::Vpermi2d
            | M::Vpermi2pd
            | M::Vpermi2ps
            | M::Vpermi2q
            | M::Vpermi2w
            | M::Vpermilpd
            | M::Vpermilps
            | M::Vpermpd
            | M::Vpermps
            | M::Vpermq
            | M::Vpermt2b
            | M::Vpermt2d
            | M::Vpermt2pd
            | M::Vpermt2ps
            | M::Vpermt2q
            | M::Vpermt2w
            | M::Vpermw
            | M::Vpmaddubsw
            | M::Vpmaddwd
            | M::Vpmultishiftqb
            | M::Vpshufb
            | M::Vpshufd
            | M::Vpshufhw
            | M::Vpshuflw
            | M::Vpunpckhbw
            | M::Vpunpckhdq
            | M::Vpunpckhqdq
            | M::Vpunpckhwd
            | M::Vpunpcklbw
            | M::Vpunpckldq
            | M::Vpunpcklqdq
            | M::Vpunpcklwd
            | M::Vshuff32x4
            | M::Vshuff64x2
            | M::Vshufi32x4
            | M::Vshufi64x2
            | M::Vshufpd
            | M::Vshufps
            | M::Vunpckhpd
            | M::Vunpckhps
            | M::Vunpcklpd
            | M::Vunpcklps
    )
}
