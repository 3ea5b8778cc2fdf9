//! General registers and what a generated program uses each for.

use super::random::Random;

/// A general register, by its number in encodings: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub u8);

const NAMES: [[&str; 4]; 8] = [
    ["al", "ax", "eax", "rax"],
    ["cl", "cx", "ecx", "rcx"],
    ["dl", "dx", "edx", "rdx"],
    ["bl", "bx", "ebx", "rbx"],
    ["spl", "sp", "esp", "rsp"],
    ["bpl", "bp", "ebp", "rbp"],
    ["sil", "si", "esi", "rsi"],
    ["dil", "di", "edi", "rdi"],
];
const HIGH: [&str; 4] = ["ah", "ch", "dh", "bh"];

impl Register {
    /// The accumulator.
    pub const RAX: Register = Register(0);
    /// The stack pointer, whose number as a base means something else.
    pub const RSP: Register = Register(4);

    /// Its name at a width of 8, 16, 32 or 64 bits.
    pub fn name(self, width: u32) -> String {
        let column = width.trailing_zeros() as usize - 3;
        match NAMES.get(usize::from(self.0)) {
            Some(names) => names[column].to_owned(),
            None => format!("r{}{}", self.0, ["b", "w", "d", ""][column]),
        }
    }

    /// The register of a 64-bit name.
    pub fn named(name: &str) -> Option<Register> {
        (0..16).map(Register).find(|register| register.name(64) == name)
    }

    /// The second byte of rax, rcx, rdx and rbx.
    pub fn high(self) -> Option<&'static str> {
        HIGH.get(usize::from(self.0)).copied()
    }

    /// Whether it can be encoded without a REX prefix, at 16 bits and more.
    pub fn is_old(self) -> bool {
        self.0 < 8
    }
}

/// A register that points into memory: `low..high` around it may be accessed.
#[derive(Clone, Debug)]
pub struct Base {
    /// The register.
    pub register: Register,
    /// Least valid displacement.
    pub low: i64,
    /// End of the valid displacements.
    pub high: i64,
    /// The pointer modulo 64, as far as it is known.
    pub offset: i64,
    /// The power of two up to which `offset` is known.
    pub alignment: i64,
}

/// Which register is for what, in one program. Pointers, counters and the index are never written by random
/// instructions, so that each operand stays valid whatever instructions are left out.
#[derive(Clone, Debug)]
pub struct Roles {
    /// Pointers.
    pub bases: Vec<Base>,
    /// Counts the rounds of the program.
    pub rounds: Register,
    /// Counts the rounds of inner loops.
    pub turns: Register,
    /// From -4 to 4, for indexed operands and bit offsets.
    pub index: Register,
    /// All others, of arbitrary contents.
    pub data: Vec<Register>,
}

impl Roles {
    /// A random distribution with as many pointers as `ranges` (low, high, offset, alignment).
    pub fn new(random: &mut Random, ranges: &[(i64, i64, i64, i64)]) -> Roles {
        let mut all: Vec<Register> =
            (0..16).map(Register).filter(|&register| register != Register::RSP).collect();
        random.shuffle(&mut all);
        let mut take = || all.pop().expect("there are more registers than roles");
        let base = |register, &(low, high, offset, alignment): &(i64, i64, i64, i64)| Base {
            register,
            low,
            high,
            offset,
            alignment,
        };
        let bases = ranges.iter().map(|range| base(take(), range)).collect();
        Roles { bases, rounds: take(), turns: take(), index: take(), data: all }
    }
}
