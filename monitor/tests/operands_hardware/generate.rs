//! Random instructions and machine states that mostly address the scratch memory.

use crate::machine::{CODE, PAGE, PAGES, SCRATCH, Simd};
use crate::random::Random;
use thermalloc_monitor::operands::Registers;

/// Random bytes in the shape of an instruction: prefixes, opcode of any map, addressing form, small displacement.
pub fn instruction(random: &mut Random) -> [u8; 15] {
    let mut code = Vec::with_capacity(32);
    if random.chance(5) {
        code.push(0x67);
    }
    if random.chance(10) {
        code.push(random.pick(&[0x64, 0x65, 0x65, 0x2E, 0x36, 0x3E]));
    }
    match random.below(100) {
        0..35 => legacy(random, &mut code),
        35..40 => string(random, &mut code),
        40..44 => return indexed_by_vector(random, code),
        44..60 => vex(random, &mut code),
        _ => evex(random, &mut code),
    }
    operands(random, &mut code);
    finish(random, code)
}

fn finish(random: &mut Random, mut code: Vec<u8>) -> [u8; 15] {
    (0..14).for_each(|_| code.push(random.byte()));
    code[..15].try_into().expect("at least fifteen bytes")
}

/// A gather or scatter: random bytes seldom are one.
fn indexed_by_vector(random: &mut Random, mut code: Vec<u8>) -> [u8; 15] {
    let opcode = random.pick(&[0x90, 0x91, 0x92, 0x93, 0xA0, 0xA1, 0xA2, 0xA3]);
    if random.chance(40) {
        code.extend([0xC4, random.byte() & 0xE0 | 2, random.byte() & !3 | 1, opcode & !0x30 | 0x10]);
    } else {
        let mask = 1 + random.byte() % 7;
        let len = random.pick(&[0x00, 0x20, 0x40]);
        code.extend([0x62, random.byte() & 0xF0 | 2, random.byte() & 0x80 | 0x7D, len | 8 | mask, opcode]);
    }
    code.extend([0x44 | random.byte() & 0x38, random.byte(), random.byte()]);
    finish(random, code)
}

fn legacy(random: &mut Random, code: &mut Vec<u8>) {
    if random.chance(20) {
        code.push(0x66);
    }
    if random.chance(15) {
        code.push(random.pick(&[0xF2, 0xF3]));
    }
    if random.chance(5) {
        code.push(0xF0);
    }
    if random.chance(50) {
        code.push(0x40 | random.byte() & 0xF);
    }
    match random.below(10) {
        0..4 => {}
        4 => {
            code.push(0xD8 | random.byte() & 7);
            return;
        }
        5..8 => code.push(0x0F),
        8 => code.extend([0x0F, 0x38]),
        _ => code.extend([0x0F, 0x3A]),
    }
    code.push(random.byte());
}

fn string(random: &mut Random, code: &mut Vec<u8>) {
    if random.chance(80) {
        code.push(random.pick(&[0xF2, 0xF3]));
    }
    if random.chance(20) {
        code.push(0x66);
    }
    if random.chance(30) {
        code.push(0x48);
    }
    code.push(random.pick(&[0xA4, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF]));
}

fn vex(random: &mut Random, code: &mut Vec<u8>) {
    let map = random.pick(&[1, 2, 2, 3]);
    code.extend([0xC4, random.byte() & 0xE0 | map, random.byte(), random.byte()]);
}

fn evex(random: &mut Random, code: &mut Vec<u8>) {
    let map = random.pick(&[1, 1, 2, 2, 2, 3, 5, 6]);
    let (mut first, mut third) = (random.byte() & 0xF0 | map, random.byte());
    if random.chance(60) {
        // No broadcast, and no length but the three there are: those halve the valid encodings.
        third = third & !0x70 | random.pick(&[0x00, 0x20, 0x40]);
    }
    if random.chance(50) {
        first |= 0x60;
    }
    let mut second = random.byte() | 4;
    if random.chance(50) {
        second |= 0x78;
        third |= 8;
    }
    code.extend([0x62, first, second, third, random.byte()]);
}

/// ModRM, perhaps SIB, and a displacement of at most some hundred bytes.
fn operands(random: &mut Random, code: &mut Vec<u8>) {
    let form = if random.chance(95) { random.pick(&[0u8, 0, 1, 2]) } else { 3 };
    let rm = if random.chance(30) { 4 } else { random.byte() & 7 };
    code.push(form << 6 | random.byte() & 0x38 | rm);
    if form != 3 && rm == 4 {
        code.push(random.byte());
    }
    match form {
        1 => code.push(random.byte()),
        0 | 2 => code.extend((random.around(300) as u32).to_le_bytes()),
        _ => {}
    }
}

/// Registers that point into the middle of the scratch memory, or hold small numbers, or anything.
pub fn registers(random: &mut Random, fs_base: u64) -> Registers {
    let mut registers = Registers { rip: CODE, rflags: 0x202, fs_base, ..Registers::default() };
    for register in &mut registers.gpr {
        *register = match random.below(10) {
            0..5 => pointer(random),
            5..9 => random.around(40),
            _ => random.next(),
        };
    }
    registers.gpr[4] = pointer(random) & !7;
    for name in [5, 6, 7] {
        if random.chance(80) {
            registers.gpr[name] = pointer(random);
        }
    }
    if random.chance(50) {
        registers.rflags |= random.next() & 0x8D5;
    }
    if random.chance(30) {
        registers.rflags |= 1 << 10;
    }
    registers.gs_base = if random.chance(50) { random.below(SCRATCH) } else { 0x1000 };
    registers
}

fn pointer(random: &mut Random) -> u64 {
    (SCRATCH + PAGES as u64 / 2 * PAGE).wrapping_add(random.around(2 * PAGE))
}

/// Vectors of random bytes, of small offsets for gathers, or of one byte; masks dense, sparse, full and empty.
pub fn simd(random: &mut Random) -> Simd {
    let mut simd = Simd::new();
    for vector in &mut simd.vectors {
        match random.below(6) {
            0 => vector.fill(random.pick(&[0, 0xFF, 0x80])),
            1..3 => vector.chunks_exact_mut(4).for_each(|lane| {
                lane.copy_from_slice(&(random.around(600) as u32).to_le_bytes());
            }),
            3..5 => vector.chunks_exact_mut(8).for_each(|lane| {
                lane.copy_from_slice(&random.around(600).to_le_bytes());
            }),
            _ => vector.fill_with(|| random.byte()),
        }
    }
    for mask in &mut simd.masks {
        *mask = match random.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << random.below(64),
            3 => random.next() & random.next() & random.next(),
            4 => u64::MAX >> random.below(64) << random.below(16),
            _ => random.next(),
        };
    }
    simd.mmx.iter_mut().for_each(|value| *value = random.next().to_le_bytes());
    simd.top = if random.chance(20) { random.byte() & 7 } else { 0 };
    simd
}

/// Contents of the scratch memory: random, or of few values so that string comparisons go on for a while. All
/// pages alike, to be quick.
pub fn memory(random: &mut Random, memory: &mut [u8]) {
    if random.chance(25) {
        return memory.fill(random.byte());
    }
    let mut page = [0; PAGE as usize];
    page.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()));
    memory.chunks_exact_mut(page.len()).for_each(|each| each.copy_from_slice(&page));
}
