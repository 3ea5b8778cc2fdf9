//! The operand decoder against accesses written down by hand from the instruction set reference.

use iced_x86::code_asm::*;
use thermalloc_monitor::operands::{
    Class, Decoded, DecoderState, Kind, Registers, RepString, StringOp, Vectors, XsaveLayout,
};

const RIP: u64 = 0x40_0000;
const FS: u64 = 0x7000_0000_0000;
const GS: u64 = 0x7100_0000_0000;
const RAX: u64 = 0x10_0000;
const RCX: u64 = 0x11_0000;
const RDX: u64 = 0x12_0000;
const RBX: u64 = 0x13_0000;
const RSP: u64 = 0x14_0000;
const RBP: u64 = 0x15_0000;
const RSI: u64 = 0x16_0000;
const RDI: u64 = 0x17_0000;

/// r8 and up hold their own numbers, with the sign bit of r15 set.
fn registers() -> Registers {
    let mut registers = Registers { rip: RIP, rflags: 2, fs_base: FS, gs_base: GS, ..Registers::default() };
    for (register, value) in registers.gpr.iter_mut().zip([RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI]) {
        *register = value;
    }
    for number in 8..16 {
        registers.gpr[number] = number as u64;
    }
    registers.gpr[15] = (-15i64) as u64;
    registers
}

/// Lane n of vector v holds 16 n + v as a dword, except vector 9 (all ones) and vector 8 (signs alternate);
/// masks hold the same pattern of bits.
struct Simd;

impl Vectors for Simd {
    fn vector(&self, number: usize) -> [u8; 64] {
        let mut value = [0; 64];
        for (lane, bytes) in value.chunks_exact_mut(4).enumerate() {
            let dword = match number {
                9 => u32::MAX,
                8 => (lane as u32 & 1) << 31,
                _ => 16 * lane as u32 + number as u32,
            };
            bytes.copy_from_slice(&dword.to_le_bytes());
        }
        value
    }
    fn mask(&self, number: usize) -> u64 {
        [0, 0, 1, 0b1111_0110, u64::MAX, 1 << 63, 0b1000, 0xAAAA_AAAA_AAAA_AAAA][number]
    }
    fn mmx(&self, number: usize) -> [u8; 8] {
        [[0x80, 0x7F, 0x80, 0x80, 0, 0, 0, 0xFF], [0; 8]][number & 1]
    }
}

fn assemble(build: impl Fn(&mut CodeAssembler) -> Result<(), iced_x86::IcedError>) -> Vec<u8> {
    let mut assembler = CodeAssembler::new(64).expect("64 bits are supported");
    build(&mut assembler).expect("the instruction exists");
    assembler.assemble(RIP).expect("the instruction can be encoded")
}

fn decode(code: &[u8]) -> Decoded {
    DecoderState::new(XsaveLayout::detect()).decode(code, &registers(), &Simd)
}

type Row = (Kind, u64, u64);
const R: Kind = Kind::Read;
const W: Kind = Kind::Write;

#[track_caller]
fn expect(code: &[u8], rows: &[Row]) -> Decoded {
    let decoded = decode(code);
    let mut found: Vec<Row> =
        decoded.accesses.iter().map(|access| (access.kind, access.addr, access.len)).collect();
    let mut wanted = rows.to_vec();
    let order = |row: &Row| (row.1, row.2, row.0 == W);
    found.sort_by_key(order);
    wanted.sort_by_key(order);
    assert_eq!(usize::from(decoded.len), code.len(), "length of {code:02x?}");
    assert!(decoded.complete);
    assert_eq!(found, wanted, "accesses of {code:02x?}");
    decoded
}

macro_rules! rows {
    ($($name:ident($($operand:expr),*) => [$($row:expr),*];)*) => {
        $(expect(&assemble(|a| a.$name($($operand),*)), &[$($row),*]);)*
    };
}

#[test]
fn loads_stores_and_read_modify_writes() {
    rows! {
        mov(rax, qword_ptr(rcx)) => [(R, RCX, 8)];
        mov(al, byte_ptr(rcx + 4 * r10)) => [(R, RCX + 40, 1)];
        mov(word_ptr(rcx + r15), dx) => [(W, RCX - 15, 2)];
        mov(dword_ptr(rcx), 7) => [(W, RCX, 4)];
        add(qword_ptr(rbx), rax) => [(R, RBX, 8), (W, RBX, 8)];
        add(rax, qword_ptr(rbx)) => [(R, RBX, 8)];
        cmp(dword_ptr(rbx - 4), eax) => [(R, RBX - 4, 4)];
        test(byte_ptr(rbx), 1) => [(R, RBX, 1)];
        not(word_ptr(rbx)) => [(R, RBX, 2), (W, RBX, 2)];
        xchg(qword_ptr(rbx), rax) => [(R, RBX, 8), (W, RBX, 8)];
        xadd(dword_ptr(rbx), eax) => [(R, RBX, 4), (W, RBX, 4)];
        cmpxchg(qword_ptr(rbx), rdx) => [(R, RBX, 8), (W, RBX, 8)];
        cmpxchg8b(qword_ptr(rbx)) => [(R, RBX, 8), (W, RBX, 8)];
        cmpxchg16b(xmmword_ptr(rbx)) => [(R, RBX, 16), (W, RBX, 16)];
        cmove(rax, qword_ptr(rbx)) => [(R, RBX, 8)];
        sete(byte_ptr(rbx)) => [(W, RBX, 1)];
        movzx(eax, word_ptr(rbx)) => [(R, RBX, 2)];
        movbe(eax, dword_ptr(rbx)) => [(R, RBX, 4)];
        movbe(qword_ptr(rbx), rax) => [(W, RBX, 8)];
        crc32(eax, byte_ptr(rbx)) => [(R, RBX, 1)];
        adcx(rax, qword_ptr(rbx)) => [(R, RBX, 8)];
        shl(dword_ptr(rbx), cl) => [(R, RBX, 4), (W, RBX, 4)];
        xlatb() => [(R, RBX, 1)];
        movnti(qword_ptr(rbx), rax) => [(W, RBX, 8)];
        div(qword_ptr(rbx)) => [(R, RBX, 8)];
        movdir64b(rax, zmmword_ptr(rbx)) => [(R, RBX, 64), (W, RAX, 64)];
    }
}

#[test]
fn address_forms() {
    // mov al, [rip + 0x10]; with prefix 67 the sum wraps at 4 GiB.
    expect(&[0x8A, 0x05, 0x10, 0, 0, 0], &[(R, RIP + 6 + 0x10, 1)]);
    expect(&[0x67, 0x8A, 0x05, 0xF0, 0xFF, 0xFF, 0xFF], &[(R, RIP + 7 - 0x10, 1)]);
    // mov rax, moffs64; mov eax, fs:[0]; mov eax, gs:[rcx]; ds, es, cs and ss have no base.
    expect(&[0x48, 0xA1, 8, 7, 6, 5, 4, 3, 2, 1], &[(R, 0x0102_0304_0506_0708, 8)]);
    expect(&[0x64, 0x8B, 0x04, 0x25, 0, 0, 0, 0], &[(R, FS, 4)]);
    expect(&[0x65, 0x8B, 0x01], &[(R, GS + RCX, 4)]);
    for prefix in [0x26, 0x2E, 0x36, 0x3E] {
        expect(&[prefix, 0x8B, 0x01], &[(R, RCX, 4)]);
    }
    // mov eax, [r15d]: the upper half of the register does not count; fs: is added after truncation.
    expect(&[0x67, 0x41, 0x8B, 0x07], &[(R, 0xFFFF_FFF1, 4)]);
    expect(&[0x64, 0x67, 0x41, 0x8B, 0x07], &[(R, FS + 0xFFFF_FFF1, 4)]);
    // mov eax, [r15d + r15d]: wraps at 4 GiB.
    expect(&[0x67, 0x43, 0x8B, 0x04, 0x3F], &[(R, 0xFFFF_FFE2, 4)]);
}

#[test]
fn bit_strings() {
    rows! {
        bt(qword_ptr(rbx), rcx) => [(R, RBX + RCX / 64 * 8, 8)];
        bts(dword_ptr(rbx), r10d) => [(R, RBX, 4), (W, RBX, 4)];
        btr(dword_ptr(rbx), ecx) => [(R, RBX + RCX / 32 * 4, 4), (W, RBX + RCX / 32 * 4, 4)];
        btc(word_ptr(rbx), r15w) => [(R, RBX - 2, 2), (W, RBX - 2, 2)];
        bt(qword_ptr(rbx), r15) => [(R, RBX - 8, 8)];
        bt(dword_ptr(rbx), 77) => [(R, RBX, 4)];
    }
}

#[test]
fn stack_operands() {
    rows! {
        push(rax) => [(W, RSP - 8, 8)];
        push(ax) => [(W, RSP - 2, 2)];
        push(5) => [(W, RSP - 8, 8)];
        push(qword_ptr(rbx)) => [(R, RBX, 8), (W, RSP - 8, 8)];
        push(qword_ptr(rsp)) => [(R, RSP, 8), (W, RSP - 8, 8)];
        pop(rax) => [(R, RSP, 8)];
        pop(qword_ptr(rbx)) => [(R, RSP, 8), (W, RBX, 8)];
        pop(qword_ptr(rsp + 16)) => [(R, RSP, 8), (W, RSP + 24, 8)];
        pop(word_ptr(rsp + 16)) => [(R, RSP, 2), (W, RSP + 18, 2)];
        call(RIP + 0x100) => [(W, RSP - 8, 8)];
        call(qword_ptr(rbx)) => [(R, RBX, 8), (W, RSP - 8, 8)];
        call(rax) => [(W, RSP - 8, 8)];
        jmp(qword_ptr(rbx)) => [(R, RBX, 8)];
        ret() => [(R, RSP, 8)];
        ret_1(16) => [(R, RSP, 8)];
        leave() => [(R, RBP, 8)];
        enter(32, 0) => [(W, RSP - 8, 8)];
        enter(32, 1) => [(W, RSP - 8, 8), (W, RSP - 16, 8)];
        enter(32, 3) => [
            (W, RSP - 8, 8), (R, RBP - 8, 8), (W, RSP - 16, 8), (R, RBP - 16, 8), (W, RSP - 24, 8), (W, RSP - 32, 8)
        ];
    }
    assert_eq!(decode(&[0xC8, 0, 0, 31]).accesses.len(), 62, "the deepest enter fits");
}

#[test]
fn string_operands_without_prefix() {
    rows! {
        movsb() => [(R, RSI, 1), (W, RDI, 1)];
        movsq() => [(R, RSI, 8), (W, RDI, 8)];
        stosd() => [(W, RDI, 4)];
        lodsw() => [(R, RSI, 2)];
        cmpsb() => [(R, RSI, 1), (R, RDI, 1)];
        scasq() => [(R, RDI, 8)];
    }
    // fs: applies to the source alone.
    expect(&[0x64, 0xA4], &[(R, FS + RSI, 1), (W, RDI, 1)]);
}

#[test]
fn x87_and_state() {
    rows! {
        fld(dword_ptr(rbx)) => [(R, RBX, 4)];
        fld(tbyte_ptr(rbx)) => [(R, RBX, 10)];
        fstp(tbyte_ptr(rbx)) => [(W, RBX, 10)];
        fbstp(tbyte_ptr(rbx)) => [(W, RBX, 10)];
        fild(word_ptr(rbx)) => [(R, RBX, 2)];
        fisttp(qword_ptr(rbx)) => [(W, RBX, 8)];
        fldcw(word_ptr(rbx)) => [(R, RBX, 2)];
        fnstcw(word_ptr(rbx)) => [(W, RBX, 2)];
        fnstsw(word_ptr(rbx)) => [(W, RBX, 2)];
        fnstenv(ptr(rbx)) => [(W, RBX, 28)];
        fldenv(ptr(rbx)) => [(R, RBX, 28)];
        fnsave(ptr(rbx)) => [(W, RBX, 108)];
        frstor(ptr(rbx)) => [(R, RBX, 108)];
        fxsave(ptr(rbx)) => [(W, RBX, 512)];
        fxrstor64(ptr(rbx)) => [(R, RBX, 512)];
        ldmxcsr(dword_ptr(rbx)) => [(R, RBX, 4)];
        stmxcsr(dword_ptr(rbx)) => [(W, RBX, 4)];
        verw(word_ptr(rbx)) => [(R, RBX, 2)];
    }
    // fnstenv with prefix 66 stores 14 bytes, fnsave 94; wait is an instruction of its own.
    expect(&[0x66, 0xD9, 0x33], &[(W, RBX, 14)]);
    expect(&[0x66, 0xDD, 0x33], &[(W, RBX, 94)]);
    assert_eq!(decode(&[0x9B, 0xDD, 0x33]).len, 1);
}

#[test]
fn names_memory_without_touching_it() {
    rows! {
        lea(rax, qword_ptr(rbx)) => [];
        nop_1(dword_ptr(rbx)) => [];
        prefetcht0(byte_ptr(rbx)) => [];
        prefetchw(byte_ptr(rbx)) => [];
        clflush(byte_ptr(rbx)) => [];
        clflushopt(byte_ptr(rbx)) => [];
        clwb(byte_ptr(rbx)) => [];
        cldemote(byte_ptr(rbx)) => [];
        vzeroupper() => [];
    }
}

#[test]
fn vectors() {
    rows! {
        movss(xmm0, dword_ptr(rbx)) => [(R, RBX, 4)];
        movsd_2(qword_ptr(rbx), xmm0) => [(W, RBX, 8)];
        movlps(xmm0, qword_ptr(rbx)) => [(R, RBX, 8)];
        movhps(qword_ptr(rbx), xmm0) => [(W, RBX, 8)];
        movups(xmm0, xmmword_ptr(rbx)) => [(R, RBX, 16)];
        movntdq(xmmword_ptr(rbx), xmm0) => [(W, RBX, 16)];
        pinsrw(xmm0, word_ptr(rbx), 1) => [(R, RBX, 2)];
        pextrb(byte_ptr(rbx), xmm0, 1) => [(W, RBX, 1)];
        pextrq(qword_ptr(rbx), xmm0, 1) => [(W, RBX, 8)];
        insertps(xmm0, dword_ptr(rbx), 0) => [(R, RBX, 4)];
        cvtps2pd(xmm0, qword_ptr(rbx)) => [(R, RBX, 8)];
        cvtsi2sd(xmm0, qword_ptr(rbx)) => [(R, RBX, 8)];
        cvtpi2ps(xmm0, qword_ptr(rbx)) => [(R, RBX, 8)];
        pmovzxbq(xmm0, word_ptr(rbx)) => [(R, RBX, 2)];
        psllw(xmm0, xmmword_ptr(rbx)) => [(R, RBX, 16)];
        vcvtph2ps(ymm0, xmmword_ptr(rbx)) => [(R, RBX, 16)];
        vmovups(ymm0, ymmword_ptr(rbx)) => [(R, RBX, 32)];
        vbroadcastss(ymm0, dword_ptr(rbx)) => [(R, RBX, 4)];
        vbroadcastf128(ymm0, xmmword_ptr(rbx)) => [(R, RBX, 16)];
        vinsertf128(ymm0, ymm1, xmmword_ptr(rbx), 1) => [(R, RBX, 16)];
        vextracti128(xmmword_ptr(rbx), ymm1, 1) => [(W, RBX, 16)];
        vfmadd213sd(xmm0, xmm1, qword_ptr(rbx)) => [(R, RBX, 8)];
        vaddps(zmm0, zmm1, zmmword_ptr(rbx)) => [(R, RBX, 64)];
        vaddps(zmm0, zmm1, dword_bcst(rbx)) => [(R, RBX, 4)];
        vaddpd(zmm0, zmm1, qword_bcst(rbx)) => [(R, RBX, 8)];
        kmovq(k1, qword_ptr(rbx)) => [(R, RBX, 8)];
        kmovb(byte_ptr(rbx), k1) => [(W, RBX, 1)];
    }
}

#[test]
fn masked_operands() {
    rows! {
        vmaskmovps(ymm0, ymm9, ymmword_ptr(rbx)) => [(R, RBX, 32)];
        vmaskmovps(ymm0, ymm0, ymmword_ptr(rbx)) => [];
        vpmaskmovd(xmmword_ptr(rbx), xmm8, xmm0) => [(W, RBX + 4, 4), (W, RBX + 12, 4)];
        vmaskmovpd(xmm0, xmm8, xmmword_ptr(rbx)) => [(R, RBX, 16)];
        maskmovq(mm0, mm0) => [(W, RDI, 1), (W, RDI + 2, 2), (W, RDI + 7, 1)];
        maskmovdqu(xmm0, xmm8) => [(W, RDI + 7, 1), (W, RDI + 15, 1)];
        vmovdqu32(zmm0.k3(), zmmword_ptr(rbx)) => [(R, RBX + 4, 8), (R, RBX + 16, 16)];
        vmovdqu64(xmmword_ptr(rbx).k1(), xmm0) => [];
        vmovdqu8(zmmword_ptr(rbx).k4(), zmm0) => [(W, RBX, 64)];
        vmovdqu8(zmmword_ptr(rbx).k5(), zmm0) => [(W, RBX + 63, 1)];
        vaddps(xmm0.k6().z(), xmm1, dword_bcst(rbx)) => [(R, RBX, 4)];
        vaddps(xmm0.k1(), xmm1, dword_bcst(rbx)) => [];
        vpexpandd(zmm0.k3().z(), zmmword_ptr(rbx)) => [(R, RBX, 24)];
        vpcompressb(xmmword_ptr(rbx).k3(), xmm0) => [(W, RBX, 6)];
        vpmovqb(qword_ptr(rbx).k6(), zmm0) => [(W, RBX + 3, 1)];
        vbroadcastf32x4(zmm0.k3(), xmmword_ptr(rbx)) => [(R, RBX, 16)];
        vbroadcasti32x4(zmm0.k6(), xmmword_ptr(rbx)) => [(R, RBX + 12, 4)];
        vinserti32x4(zmm0.k1(), zmm1, xmmword_ptr(rbx), 2) => [(R, RBX, 16)];
    }
    // vmovss xmm0{k2}, [rbx] and the same with k1, which is zero.
    expect(&[0x62, 0xF1, 0x7E, 0x0A, 0x10, 0x03], &[(R, RBX, 4)]);
    expect(&[0x62, 0xF1, 0x7E, 0x09, 0x10, 0x03], &[]);
    // vpmovzxbd xmm0{k6}, [rbx] and vpshufb xmm0{k1}, xmm1, [rbx], which has no fault suppression.
    expect(&[0x62, 0xF2, 0x7D, 0x0E, 0x31, 0x03], &[(R, RBX + 3, 1)]);
    expect(&[0x62, 0xF2, 0x75, 0x09, 0x00, 0x03], &[(R, RBX, 16)]);
    let alternating = decode(&assemble(|a| a.vmovdqu8(zmmword_ptr(rbx).k7(), zmm0))).accesses;
    assert_eq!(alternating.len(), 32);
    assert!(alternating.iter().enumerate().all(|(n, a)| (a.addr, a.len) == (RBX + 2 * n as u64 + 1, 1)));
}

#[test]
fn gathers_and_scatters() {
    let lane = |vector: u64, n: u64| 16 * n + vector;
    rows! {
        vpgatherdd_3(xmm0, dword_ptr(rbx + 4 * xmm1), xmm8) =>
            [(R, RBX + 4 * lane(1, 1), 4), (R, RBX + 4 * lane(1, 3), 4)];
        vpgatherdq_3(xmm0, qword_ptr(rbx + xmm1), xmm9) => [(R, RBX + lane(1, 0), 8), (R, RBX + lane(1, 1), 8)];
        vgatherqps_3(xmm0, dword_ptr(rbx + xmm9), xmm8) => [(R, RBX - 1, 4)];
        vpscatterdd(dword_ptr(rbx + 2 * zmm2).k6(), zmm0) => [(W, RBX + 2 * lane(2, 3), 4)];
        vscatterqpd(qword_ptr(rbx + xmm9 + 8).k4(), xmm0) => [(W, RBX + 7, 8), (W, RBX + 7, 8)];
        vgatherdps(zmm0.k1(), dword_ptr(rbx + zmm2)) => [];
    }
    let gather = assemble(|a| a.vpgatherdd_3(xmm0, dword_ptr(rbx + xmm1), xmm8));
    assert_eq!(decode(&gather).class, Class::Scattered);
}

#[test]
fn xsave_areas() {
    let layout = XsaveLayout::detect();
    let (all, legacy) = (RDX << 32 | RAX | 0xE7, RDX << 32 | RAX);
    assert_eq!((layout.standard_len(legacy), layout.compacted_len(legacy)), (576, 576));
    if let Some(ymm) = layout.offset(2) {
        assert!(layout.standard_len(all) >= ymm as u64 + 256);
        assert_eq!(layout.compacted_len(legacy | 4), 576 + 256);
    }
    let area = |code: &[u8]| {
        let mut registers = registers();
        registers.gpr[0] |= 0xE7;
        let decoded = DecoderState::new(layout).decode(code, &registers, &Simd);
        (decoded.accesses.iter().map(|a| (a.kind, a.addr, a.len)).collect::<Vec<_>>(), decoded.class)
    };
    let (standard, compacted) = (layout.standard_len(all), layout.compacted_len(all));
    let save = vec![(R, RBX + 512, 8), (W, RBX, standard)];
    assert_eq!(area(&assemble(|a| a.xsave(ptr(rbx)))).0, save);
    assert_eq!(area(&assemble(|a| a.xsaveopt64(ptr(rbx)))).0, save);
    assert_eq!(area(&assemble(|a| a.xsavec(ptr(rbx)))).0, [(W, RBX, compacted)]);
    let (read, class) = area(&assemble(|a| a.xrstor(ptr(rbx))));
    assert_eq!((read, class), (vec![(R, RBX, standard)], Class::ProtectionKeys));
}

#[test]
fn classes() {
    let class = |code: &[u8]| decode(code).class;
    assert_eq!(class(&[0x0F, 0x05]), Class::Syscall);
    assert_eq!(class(&[0x0F, 0x34]), Class::Syscall);
    assert_eq!(class(&[0x9C]), Class::PushFlags);
    assert_eq!(class(&[0x66, 0x9C]), Class::PushFlags);
    assert_eq!(class(&[0x9D]), Class::PopFlags);
    assert_eq!(class(&[0x48, 0xCF]), Class::PopFlags);
    assert_eq!(class(&[0x8E, 0xD0]), Class::DelaysTrap);
    assert_eq!(class(&[0x8E, 0xD8]), Class::Plain);
    assert_eq!(class(&[0xFB]), Class::DelaysTrap);
    assert_eq!(class(&[0xCC]), Class::Interrupt);
    assert_eq!(class(&[0xF1]), Class::Interrupt);
    assert_eq!(class(&[0xCD, 0x80]), Class::Interrupt);
    assert_eq!(class(&[0x0F, 0x01, 0xEF]), Class::ProtectionKeys);
    assert_eq!(class(&[0x0F, 0x0B]), Class::Plain);
    assert_eq!(class(&[0x06]), Class::Invalid);
    assert_eq!(class(&[0x48]), Class::Invalid);
    assert_eq!(class(&[]), Class::Invalid);
    expect(&[0x9C], &[(W, RSP - 8, 8)]);
    expect(&[0x9D], &[(R, RSP, 8)]);
    let scan = RepString {
        op: StringOp::Scas,
        element: 1,
        repne: true,
        addr32: false,
        source_segment: iced_x86::Register::None,
    };
    assert!(matches!(class(&[0xF2, 0xAE]), Class::RepString(string) if string.op == scan.op && string.repne));
    let copy = class(&[0x67, 0x64, 0xF3, 0x48, 0xA5]);
    let Class::RepString(copy) = copy else { panic!("{copy:?} is not a rep string instruction") };
    assert_eq!((copy.op, copy.element, copy.addr32), (StringOp::Movs, 8, true));
    assert_eq!(copy.source_segment, iced_x86::Register::FS);
    // F3 before an SSE instruction of the same mnemonic is no rep.
    assert_eq!(class(&[0xF3, 0x0F, 0x10, 0x03]), Class::Plain);
}

#[test]
fn the_extent_of_a_tile_is_not_known() {
    let tile = decode(&assemble(|a| a.tileloadd(tmm1, ptr(rax + rbx))));
    assert!(!tile.complete && tile.accesses.is_empty());
}
