//! Translation: a region's code with its heap accesses counted and redirected.
//!
//! An access becomes
//! ```text
//!     lea r, [operand]          r: a register that is dead here, or spilled
//!     cmp r, fs:[end]; jae cold      (and fs:[start] where something lies below the heap)
//!     and r, -16; add r, fs:[sheet]
//!     inc dword [r + ...]; jz wrap   (and the bytes, where they are not 8)
//!     gs: the instruction
//! ```
//! and its cold side, the instruction as it was. Flags that are live are kept in rax meanwhile. At each original instruction's first
//! byte, and at its copy, all of the program's state is where the program has it; [`Piece`] tells how to get there from in
//! between, for signals that arrive there.
//!
//! # Signal context
//! Runs in handlers, and uses the private heap.

mod doors;

use super::assembler::{Assembler, Gpr, If, RAX, RSP};
use super::callout::{Site, may_be_heap};
use super::liveness::{self, Set};
use super::region::{Item, Source, What};
use super::slots::Slot;
use crate::access::Kind;
use crate::heat::{narrow_offset, wide_offset};
use crate::operands;
use crate::operands::decode::kinds;
use crate::redirect::redirect_decoded;
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpKind,
    Register,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// One counter that an access bumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bump {
    /// In the wide cell, not in the narrow one.
    pub wide: bool,
    /// Offset in the cell.
    pub offset: u8,
    /// By how much.
    pub by: i8,
}

/// Most bumps of an access: counts and bytes, read and written.
const BUMPS: usize = 4;

/// A stretch of translated code between two points at which the program's state is canonical.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// Offsets in the body.
    pub code: Range<u32>,
    /// Where the instruction itself is, the program's state being in place again.
    pub main: u32,
    /// Where the program is.
    pub ip: u64,
    /// The scratch register, and where its value is in its slot.
    pub scratch: Gpr,
    /// See `scratch`.
    pub spilled: Range<u32>,
    /// Where the value of rax is in its slot.
    pub rax: Range<u32>,
    /// Where the flags are in their slot.
    pub flags: Range<u32>,
    /// What has been counted from which offset on.
    pub bumps: [Option<(u32, Bump)>; BUMPS],
    /// The operand, to find the cell again.
    pub operand: Option<Instruction>,
    /// Where a return address has been pushed.
    pub pushed: Range<u32>,
    /// Where the side begins that counts nothing; 0: there is none.
    pub cold: u32,
    /// Whether its accesses have been charged at the door.
    pub charged: bool,
}

/// Where the code goes that has seen a counter wrap.
#[derive(Clone, Copy, Debug)]
pub struct Wrap {
    /// Offset of its trap.
    pub at: u32,
    /// Register that holds the cell's address.
    pub cell: Gpr,
    /// Offset of the counter in the cell.
    pub offset: u8,
    /// Where it goes on.
    pub resume: u32,
}

/// A translated region.
pub struct Body {
    /// Its code.
    pub code: Vec<u8>,
    /// Its pieces, by offset.
    pub pieces: Vec<Piece>,
    /// By offset.
    pub wraps: Vec<Wrap>,
    /// Original instructions and the offsets of their translations.
    pub entries: Vec<(u64, u32)>,
}

/// What translations depend on.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether loads are counted.
    pub loads: bool,
    /// Whether the program has memory below the heap.
    pub low: bool,
}

/// Translates a region that will lie at `base`. `known` gives the translation of an original address, if there is one. None if something
/// is out of reach.
pub fn emit(
    items: &[Item],
    base: u64,
    rules: Rules,
    source: &impl Source,
    factory: &mut InstructionInfoFactory,
    known: impl Fn(u64) -> Option<u64>,
) -> Option<Body> {
    let live = liveness::live(items, source, factory);
    let mut emitter = Emitter {
        asm: Assembler::new(base),
        rules,
        pieces: Vec::new(),
        wraps: Vec::new(),
        jumps: Vec::new(),
        colds: Vec::new(),
        sites: Vec::new(),
    };
    let mut entries = Vec::new();
    for (item, live) in items.iter().zip(live) {
        if !matches!(item.what, What::Goto) {
            entries.push((item.ip, emitter.asm.here()));
        }
        emitter.item(item, live, factory)?;
    }
    emitter.finish(&entries, known, entries.clone())
}

struct Emitter {
    asm: Assembler,
    rules: Rules,
    pieces: Vec<Piece>,
    wraps: Vec<Wrap>,
    /// Displacements of jumps to original addresses.
    jumps: Vec<(u32, u64)>,
    colds: Vec<Cold>,
    sites: Vec<doors::Pending>,
}

/// The cold side of an access, to be placed behind the region.
struct Cold {
    piece: usize,
    from: Vec<u32>,
    wraps: Vec<(u32, u8, u32)>,
    instruction: Instruction,
    original: [u8; 15],
    back: u32,
    calls: bool,
}

impl Emitter {
    fn item(&mut self, item: &Item, live: Set, factory: &mut InstructionInfoFactory) -> Option<()> {
        match &item.what {
            What::Joined => Some(()),
            What::Goto => self.plain(item.ip, |this| {
                let at = this.asm.jump();
                this.jumps.push((at, item.ip));
                Some(())
            }),
            What::Branch(instruction) => self.branch(instruction),
            What::Call(instruction, original) => self.call(instruction, original, live, factory),
            What::Run(instruction, original) => match Counted::of(instruction, self.rules, factory) {
                Some(counted) => self.access(instruction, original, &counted, live, factory),
                None => match Site::of(instruction, self.rules.loads, factory) {
                    Some(site) => self.door(site, instruction, original),
                    None => self.plain(item.ip, |this| this.asm.instruction(instruction, original)),
                },
            },
            What::SystemCall(instruction, original) => {
                self.door(Site::of_call(instruction), instruction, original)
            }
        }
    }

    /// A piece whose state is canonical from its first byte on.
    fn plain(&mut self, ip: u64, act: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let start = self.asm.here();
        act(self)?;
        self.pieces.push(Piece { code: start..self.asm.here(), main: start, ip, ..Piece::default() });
        Some(())
    }

    fn branch(&mut self, instruction: &Instruction) -> Option<()> {
        let target = instruction.near_branch_target();
        let ip = instruction.ip();
        if instruction.flow_control() == FlowControl::UnconditionalBranch {
            return self.plain(ip, |this| {
                let at = this.asm.jump();
                this.jumps.push((at, target));
                Some(())
            });
        }
        if instruction.is_jcc_short_or_near() {
            return self.plain(ip, |this| {
                this.asm.bytes(&[0x0f, 0x80 | (instruction.condition_code() as u8 - 1)]);
                let at = this.asm.displacement();
                this.jumps.push((at, target));
                Some(())
            });
        }
        // loop and jrcxz have no long form: taken to a jump, not taken over it.
        let mut short = [0u8; 4];
        let len = short_branch(instruction, &mut short)?;
        self.plain(ip, |this| {
            this.asm.bytes(&short[..len]);
            Some(())
        })?;
        self.plain(instruction.next_ip(), |this| {
            this.asm.bytes(&[0xeb, 5]);
            Some(())
        })?;
        self.plain(target, |this| {
            let at = this.asm.jump();
            this.jumps.push((at, target));
            Some(())
        })
    }

    /// A call whose return address is the program's.
    fn call(
        &mut self,
        instruction: &Instruction,
        original: &[u8; 15],
        live: Set,
        factory: &mut InstructionInfoFactory,
    ) -> Option<()> {
        if let Some(counted) = Counted::of(instruction, self.rules, factory) {
            return self.access(instruction, original, &counted, live, factory);
        }
        let start = self.asm.here();
        let pushed = self.push(instruction.next_ip());
        if instruction.flow_control() == FlowControl::Call {
            let at = self.asm.jump();
            self.jumps.push((at, instruction.near_branch_target()));
        } else if instruction.is_ip_rel_memory_operand() {
            let mut jump = *instruction;
            jump.set_code(Code::Jmp_rm64);
            self.asm.instruction(&jump, original)?;
        } else {
            self.asm.bytes(&jump_like(original, instruction.len())?[..instruction.len()]);
        }
        let end = self.asm.here();
        let (main, ip) = (start, instruction.ip());
        self.pieces.push(Piece { code: start..end, main, ip, pushed: pushed..end, ..Piece::default() });
        Some(())
    }

    /// Pushes a return address. The processor's own call comes first, so that its prediction of returns stays in step. Returns
    /// from where on it is there.
    fn push(&mut self, address: u64) -> u32 {
        let over = self.asm.call();
        self.asm.bytes(&[0xcc]);
        let pushed = self.asm.here();
        self.asm.bind(over, pushed);
        self.asm.set_top(address);
        pushed
    }

    fn access(
        &mut self,
        instruction: &Instruction,
        original: &[u8; 15],
        counted: &Counted,
        live: Set,
        factory: &mut InstructionInfoFactory,
    ) -> Option<()> {
        let redirected = redirect_decoded(instruction, &original[..instruction.len()])?;
        let keeps_flags = live.has_flags();
        let (scratch, is_dead) = pick(instruction, live, keeps_flags, factory);
        let mut piece =
            Piece { ip: instruction.ip(), scratch, operand: Some(*instruction), ..Piece::default() };
        let start = self.asm.here();
        if !is_dead {
            self.asm.store(Slot::Scratch, scratch);
            piece.spilled.start = self.asm.here();
        }
        self.asm.lea(scratch, instruction)?;
        let keeps_rax = keeps_flags && live.has(RAX);
        if keeps_flags {
            if keeps_rax {
                self.asm.store(Slot::Rax, RAX);
                piece.rax.start = self.asm.here();
            }
            self.asm.flags_to_rax();
            self.asm.store(Slot::Flags, RAX);
            piece.flags.start = self.asm.here();
        }
        let mut from = Vec::with_capacity(2);
        self.asm.compare(scratch, Slot::End);
        from.push(self.asm.jump_if(If::AboveOrEqual));
        if self.rules.low {
            self.asm.compare(scratch, Slot::Start);
            from.push(self.asm.jump_if(If::Below));
        }
        self.asm.align16(scratch);
        self.asm.add_slot(scratch, if counted.wide { Slot::Wide } else { Slot::Narrow });
        let wraps = self.bumps(&mut piece, counted);
        self.restore(&mut piece, keeps_flags, keeps_rax, is_dead);
        piece.main = self.asm.here();
        if redirected.calls {
            piece.pushed.start = self.push(instruction.next_ip());
            self.asm.bytes(redirected.as_jump()?.bytes());
            piece.pushed.end = self.asm.here();
        } else {
            self.asm.bytes(redirected.bytes());
        }
        piece.code = start..self.asm.here();
        self.colds.push(Cold {
            piece: self.pieces.len(),
            from,
            wraps,
            instruction: *instruction,
            original: *original,
            back: self.asm.here(),
            calls: redirected.calls,
        });
        self.pieces.push(piece);
        Some(())
    }

    fn bumps(&mut self, piece: &mut Piece, counted: &Counted) -> Vec<(u32, u8, u32)> {
        let mut wraps = Vec::with_capacity(BUMPS);
        for (done, bump) in piece.bumps.iter_mut().zip(counted.bumps()) {
            let condition = match bump.by {
                1 if bump.wide || bump.offset.is_multiple_of(8) => {
                    self.asm.increment(piece.scratch, bump.offset);
                    If::Zero
                }
                by => {
                    self.asm.add_to(piece.scratch, bump.offset, by);
                    If::Overflow
                }
            };
            *done = Some((self.asm.here(), bump));
            let at = self.asm.jump_if(condition);
            wraps.push((at, bump.offset, self.asm.here()));
        }
        wraps
    }

    /// Gives the program its flags and registers back.
    fn restore(&mut self, piece: &mut Piece, flags: bool, rax: bool, is_dead: bool) {
        if flags {
            self.asm.load(RAX, Slot::Flags);
            self.asm.flags_from_rax();
            piece.flags.end = self.asm.here();
            if rax {
                self.asm.load(RAX, Slot::Rax);
                piece.rax.end = self.asm.here();
            }
        }
        if !is_dead {
            self.asm.load(piece.scratch, Slot::Scratch);
            piece.spilled.end = self.asm.here();
        }
    }

    /// The cold sides, and all jumps.
    fn finish(
        mut self,
        entries: &[(u64, u32)],
        known: impl Fn(u64) -> Option<u64>,
        listed: Vec<(u64, u32)>,
    ) -> Option<Body> {
        for cold in std::mem::take(&mut self.colds) {
            self.cold(cold)?;
        }
        let inside: BTreeMap<u64, u32> = entries.iter().copied().collect();
        for (at, target) in std::mem::take(&mut self.jumps) {
            match inside.get(&target) {
                Some(&offset) => self.asm.bind(at, offset),
                None => self.asm.bind_address(at, known(target).unwrap_or(target))?,
            }
        }
        let base = self.asm.base();
        self.sites.into_iter().for_each(|site| site.place(base));
        Some(Body { code: self.asm.code().to_vec(), pieces: self.pieces, wraps: self.wraps, entries: listed })
    }

    fn cold(&mut self, cold: Cold) -> Option<()> {
        let hot = &self.pieces[cold.piece];
        let (flags, rax, is_dead) = (!hot.flags.is_empty(), !hot.rax.is_empty(), hot.spilled.is_empty());
        let start = self.asm.here();
        let mut piece = Piece { ip: hot.ip, scratch: hot.scratch, ..Piece::default() };
        (piece.flags.start, piece.rax.start, piece.spilled.start) = (start, start, start);
        cold.from.iter().for_each(|&at| self.asm.bind(at, start));
        self.pieces[cold.piece].cold = start;
        self.restore(&mut piece, flags, rax, is_dead);
        for range in [&mut piece.flags, &mut piece.rax, &mut piece.spilled] {
            range.end = range.end.max(range.start);
        }
        piece.main = self.asm.here();
        if cold.calls {
            piece.pushed.start = self.push(cold.instruction.next_ip());
            self.asm.bytes(&jump_like(&cold.original, cold.instruction.len())?[..cold.instruction.len()]);
            piece.pushed.end = self.asm.here();
        } else {
            self.asm.instruction(&cold.instruction, &cold.original)?;
        }
        piece.code = start..self.asm.here();
        self.pieces.push(piece);
        if !cold.calls {
            self.plain(cold.instruction.next_ip(), |this| {
                let at = this.asm.jump();
                this.asm.bind(at, cold.back);
                Some(())
            })?;
        }
        let scratch = self.pieces[cold.piece].scratch;
        for (at, offset, resume) in cold.wraps {
            let here = self.asm.here();
            self.asm.bind(at, here);
            self.asm.bytes(&[0xcc]);
            self.wraps.push(Wrap { at: here, cell: scratch, offset, resume });
        }
        Some(())
    }
}

/// A near call through a register or memory as the jump to the same place.
fn jump_like(call: &[u8; 15], len: usize) -> Option<[u8; 15]> {
    let mut jump = *call;
    // FF /2 is the call, FF /4 the jump.
    let opcode = jump[..len].iter().position(|&byte| byte == 0xff)?;
    let modrm = jump.get_mut(opcode + 1)?;
    *modrm = *modrm & !0x38 | 4 << 3;
    Some(jump)
}

/// A register for addresses, and whether it is dead.
fn pick(
    instruction: &Instruction,
    live: Set,
    keeps_flags: bool,
    factory: &mut InstructionInfoFactory,
) -> (Gpr, bool) {
    let taken = |register: Gpr| register == RSP || (keeps_flags && register == RAX);
    // First those that need no longer encodings.
    const ORDER: [Gpr; 16] = [1, 2, 6, 7, 0, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 4];
    if let Some(dead) = ORDER.into_iter().find(|&register| !taken(register) && !live.has(register)) {
        return (dead, true);
    }
    let uses = liveness::effect(instruction, factory).uses;
    let unused = ORDER.into_iter().find(|&register| !taken(register) && uses >> register & 1 == 0);
    (unused.unwrap_or(1), false)
}

/// What is counted of an instruction.
struct Counted {
    wide: bool,
    reads: bool,
    writes: bool,
    len: usize,
}

impl Counted {
    /// None if the instruction is to run as it is: it accesses no memory that can be the heap's, or in a way that has no counter.
    fn of(instruction: &Instruction, rules: Rules, factory: &mut InstructionInfoFactory) -> Option<Self> {
        let base = instruction.memory_base();
        if !may_be_heap(instruction)
            || instruction.has_op_mask()
            || instruction.is_vsib()
            || is_special(instruction.mnemonic())
            || selects_bit(instruction)
        {
            return None;
        }
        let info = factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
        let stack = instruction.is_stack_instruction();
        let mut operands = info
            .used_memory()
            .iter()
            .filter(|memory| !(stack && memory.base() == Register::RSP && base != Register::RSP));
        let memory = operands.next()?;
        if operands.next().is_some() || memory.vsib_size() != 0 {
            return None;
        }
        let (mut reads, mut writes) = (false, false);
        for kind in kinds(memory.access()) {
            match kind {
                operands::Kind::Read => reads = rules.loads,
                operands::Kind::Write => writes = true,
            }
        }
        let len = memory.memory_size().size();
        let wide = wide_offset(Kind::Read, len).is_some();
        ((reads || writes) && (wide || (1..=16).contains(&len))).then_some(Self { wide, reads, writes, len })
    }

    fn bumps(&self) -> impl Iterator<Item = Bump> {
        let (wide, len) = (self.wide, self.len);
        let kinds = [(self.reads, Kind::Read), (self.writes, Kind::Write)];
        kinds.into_iter().filter(|(counted, _)| *counted).flat_map(move |(_, kind)| {
            let count = match wide_offset(kind, len) {
                Some(offset) if wide => offset,
                _ => narrow_offset(kind),
            } as u8;
            let extra = (!wide && len != 8).then_some(Bump { wide, offset: count + 4, by: len as i8 - 8 });
            [Some(Bump { wide, offset: count, by: 1 }), extra].into_iter().flatten()
        })
    }
}

/// A bit test whose register operand moves the address.
fn selects_bit(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(instruction.mnemonic(), Bt | Bts | Btr | Btc) && instruction.op1_kind() == OpKind::Register
}

/// Masked by a vector register, or of an extent that depends on the processor's state.
fn is_special(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Vmaskmovps
            | Vmaskmovpd
            | Vpmaskmovd
            | Vpmaskmovq
            | Maskmovq
            | Maskmovdqu
            | Vmaskmovdqu
            | Xsave
            | Xsave64
            | Xsaveopt
            | Xsaveopt64
            | Xsavec
            | Xsavec64
            | Xrstor
            | Xrstor64
            | Lea
            | Nop
            | Enter
    )
}

/// A loop or jrcxz, taken over the two bytes behind it.
fn short_branch(instruction: &Instruction, into: &mut [u8; 4]) -> Option<usize> {
    use Mnemonic::*;
    let (opcode, addr32) = match instruction.mnemonic() {
        Loopne => (0xe0, instruction.code() == iced_x86::Code::Loopne_rel8_64_ECX),
        Loope => (0xe1, instruction.code() == iced_x86::Code::Loope_rel8_64_ECX),
        Loop => (0xe2, instruction.code() == iced_x86::Code::Loop_rel8_64_ECX),
        Jrcxz => (0xe3, false),
        Jecxz => (0xe3, true),
        _ => return None,
    };
    let code: &[u8] = if addr32 { &[0x67, opcode, 2] } else { &[opcode, 2] };
    into[..code.len()].copy_from_slice(code);
    Some(code.len())
}
