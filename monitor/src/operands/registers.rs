//! The general registers of a stopped thread.
//!
//! # Signal context
//! Plain values; may be used in a handler.

use iced_x86::Register;

/// Bit 10 of RFLAGS: string instructions go down.
pub const DIRECTION_FLAG: u64 = 1 << 10;

/// What effective addresses are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// In the order of their encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub gpr: [u64; 16],
    /// Address of the instruction.
    pub rip: u64,
    /// Flags.
    pub rflags: u64,
    /// Base of the fs segment.
    pub fs_base: u64,
    /// Base of the gs segment.
    pub gs_base: u64,
}

/// Indices into [`Registers::gpr`].
pub mod index {
    /// Accumulator.
    pub const RAX: usize = 0;
    /// Count of string instructions.
    pub const RCX: usize = 1;
    /// Upper half of the accumulator.
    pub const RDX: usize = 2;
    /// Stack pointer.
    pub const RSP: usize = 4;
    /// Source of string instructions.
    pub const RSI: usize = 6;
    /// Destination of string instructions.
    pub const RDI: usize = 7;
}

/// Where a signal frame (`uc_mcontext.gregs`) keeps the registers, in the order of [`Registers::gpr`].
pub const FRAME_ORDER: [i32; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

impl Registers {
    /// From `uc_mcontext.gregs` of a signal frame. The segment bases are not in the frame: read them with
    /// `rdfsbase`/`rdgsbase` or `arch_prctl`.
    pub fn from_frame(gregs: &[i64; 23], fs_base: u64, gs_base: u64) -> Self {
        let at = |register: i32| gregs[register as usize] as u64;
        Self { gpr: FRAME_ORDER.map(at), rip: at(libc::REG_RIP), rflags: at(libc::REG_EFL), fs_base, gs_base }
    }

    /// Value of a general register or a part of one, zero-extended; 0 for anything else. The high-byte registers
    /// never take part in an address and are not told from their low bytes.
    pub fn get(&self, register: Register) -> u64 {
        let size = register.size();
        match self.gpr.get(register.full_register().number()) {
            Some(&value) if register.is_gpr() => value & (u64::MAX >> (64 - 8 * size)),
            _ => 0,
        }
    }

    /// Base that a segment register adds to an effective address: only fs and gs have one in 64-bit mode.
    pub fn segment_base(&self, register: Register) -> u64 {
        match register {
            Register::FS => self.fs_base,
            Register::GS => self.gs_base,
            _ => 0,
        }
    }
}
