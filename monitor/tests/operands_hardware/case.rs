//! One case: an instruction, the state it runs on, what the decoder predicts and what the processor does.

use crate::generate;
use crate::machine::{Machine, Outcome, PAGE, PAGES, Run, SCRATCH, SCRATCH_END, Simd};
use crate::random::Random;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::fmt::Write;
use std::ops::Range;
use thermalloc_monitor::operands::{Access, Class, Decoded, DecoderState, Kind, Registers};

pub struct Case {
    pub seed: u64,
    pub code: [u8; 15],
    pub instruction: Instruction,
    pub registers: Registers,
    pub simd: Simd,
    pub decoded: Decoded,
    memory: Vec<u8>,
}

/// What became of a case.
pub enum Verdict {
    /// The processor refused it (alignment, missing feature, reserved encoding): nothing to compare.
    Refused,
    /// Decoder and processor agree.
    Agreed,
}

impl Case {
    /// The case of a seed, its operand moved to a page boundary or an aligned address; `None` if it cannot run.
    pub fn new(seed: u64, machine: &mut Machine, state: &mut DecoderState) -> Option<Self> {
        let mut random = Random::new(seed);
        let mut code = generate::instruction(&mut random);
        // Most random bytes are no instruction; of those a few are enough.
        while disassemble(&code).is_invalid() && !random.chance(1) {
            code = generate::instruction(&mut random);
        }
        keep_frame_small(&mut code);
        let mut registers = generate::registers(&mut random, machine.fs_base);
        let simd = generate::simd(&mut random);
        let instruction = disassemble(&code);
        if !safe(&instruction) {
            return None;
        }
        let mut decoded = state.decode(&code, &registers, &simd);
        if matches!(decoded.class, Class::RepString(_)) && !random.chance(5) {
            registers.gpr[1] = random.below(3 * PAGE / 2);
            decoded = state.decode(&code, &registers, &simd);
        }
        if let Some(&access) = decoded.accesses.get(random.next() as usize % decoded.accesses.len().max(1)) {
            let target = target(&mut random, access.len);
            place(&mut code, &mut registers, &simd, state, access, target);
            decoded = state.decode(&code, &registers, &simd);
        }
        let mut memory = vec![0; PAGES * PAGE as usize];
        generate::memory(&mut random, &mut memory);
        let instruction = disassemble(&code);
        let inside = decoded.accesses.iter().all(|access| within_scratch(access));
        inside.then_some(Self { seed, code, instruction, registers, simd, decoded, memory })
    }

    /// Runs the case twice and compares. An error is a description of the disagreement.
    pub fn check(&self, machine: &mut Machine) -> Result<Verdict, String> {
        // Stepping would stop after an element or, at a page fault, after some lanes.
        let whole = matches!(self.decoded.class, Class::RepString(_) | Class::Scattered);
        machine.load(&self.code[..usize::from(self.decoded.len).max(1)]);
        machine.memory().copy_from_slice(&self.memory);
        let first = machine.run(&self.registers, &self.simd, whole);
        let accesses = match self.decoded.class {
            Class::RepString(string) => string.done_ranges(&self.registers, &first.after),
            _ => self.decoded.accesses,
        };
        let expected = Expected::new(&accesses, &self.instruction);
        if first.outcome != Outcome::Done {
            return self.refused(&first, &expected);
        }
        if self.decoded.class == Class::Invalid {
            return Err(self.describe("runs, but the decoder calls it invalid", &first, &accesses));
        }
        expected.pages(&first).map_err(|what| self.describe(what, &first, &accesses))?;
        let memory = machine.memory().to_vec();
        let complement = expected.complement_unread(&self.memory);
        machine.memory().copy_from_slice(&complement);
        let second = machine.run(&self.registers, &self.simd, whole);
        same_result(&first, &second).map_err(|what| self.describe(what, &second, &accesses))?;
        expected
            .bytes(&self.memory, &memory, &complement, machine.memory())
            .map_err(|what| self.describe(&what, &first, &accesses))?;
        Ok(Verdict::Agreed)
    }

    /// An exception is no disagreement unless the decoder missed where the instruction went.
    fn refused(&self, run: &Run, expected: &Expected) -> Result<Verdict, String> {
        let unexpected = (run.read | run.written) & !expected.touchable();
        if (run.astray && expected.checked == 0) || (unexpected != 0 && self.decoded.class != Class::Invalid)
        {
            return Err(self.describe("goes where the decoder does not say", run, &self.decoded.accesses));
        }
        Ok(Verdict::Refused)
    }

    fn describe(&self, what: &str, run: &Run, accesses: &[Access]) -> String {
        let mut text = format!("seed {:#x}: {} {:02x?}: {what}\n", self.seed, self.instruction, self.code);
        let _ = writeln!(text, "predicted:");
        for access in accesses {
            let _ = writeln!(
                text,
                "  {:?} page {} offset {:#x} ({:#x}), {} bytes",
                access.kind,
                (access.addr.wrapping_sub(SCRATCH)) / PAGE,
                access.addr % PAGE,
                access.addr,
                access.len
            );
        }
        let _ = writeln!(
            text,
            "processor: {:?}, page faults of reads {:#x}, of writes {:#x}",
            run.outcome, run.read, run.written
        );
        let mask = self.instruction.op_mask();
        if mask != Register::None {
            let _ = writeln!(text, "{mask:?} = {:#x}", self.simd.masks[mask.number()]);
        }
        let _ = writeln!(text, "{:x?}", self.registers);
        text
    }
}

/// What the pages and bytes must show for a list of accesses.
struct Expected<'a> {
    accesses: &'a [Access],
    read: u32,
    written: u32,
    /// Pages that the processor may check without transferring anything.
    checked: u32,
    sparse: bool,
}

impl<'a> Expected<'a> {
    fn new(accesses: &'a [Access], instruction: &Instruction) -> Self {
        let of =
            |kind| accesses.iter().filter(|a| a.kind == kind).fold(0, |set, access| set | pages_of(access));
        Self {
            accesses,
            read: of(Kind::Read),
            written: of(Kind::Write),
            checked: if checks_more(instruction) { u32::MAX } else { 0 },
            sparse: instruction.is_save_restore_instruction(),
        }
    }

    fn touchable(&self) -> u32 {
        self.read | self.written | self.checked
    }

    fn pages(&self, run: &Run) -> Result<(), &'static str> {
        let touched = run.read | run.written;
        match () {
            () if run.read & !(self.read | self.checked) != 0 => {
                Err("reads a page that no predicted read touches")
            }
            () if run.written & !(self.written | self.checked) != 0 => {
                Err("writes a page that no predicted write touches")
            }
            () if self.sparse => Ok(()),
            () if self.written & !run.written != 0 => Err("does not write a page of a predicted write"),
            // A page opened for writing shows no reads any more.
            () if self.read & !touched != 0 => Err("does not read a page of a predicted read"),
            () => Ok(()),
        }
    }

    /// The memory with every byte that is not predicted to be read turned into its complement, in touched pages.
    fn complement_unread(&self, memory: &[u8]) -> Vec<u8> {
        let mut changed = memory.to_vec();
        for page in self.touched_pages() {
            changed[page].iter_mut().for_each(|byte| *byte = !*byte);
        }
        for access in self.accesses.iter().filter(|access| access.kind == Kind::Read) {
            let range = range_of(access);
            changed[range.clone()].copy_from_slice(&memory[range]);
        }
        changed
    }

    fn touched_pages(&self) -> impl Iterator<Item = Range<usize>> {
        let pages = self.touchable();
        let range = |page: usize| page * PAGE as usize..(page + 1) * PAGE as usize;
        (0..PAGES).filter(move |page| pages & (1 << page) != 0).map(range)
    }

    /// Bytes outside predicted writes stay; bytes inside become the same from whatever was there before.
    fn bytes(&self, before: &[u8], after: &[u8], before2: &[u8], after2: &[u8]) -> Result<(), String> {
        let mut write = vec![false; before.len()];
        for access in self.accesses.iter().filter(|access| access.kind == Kind::Write) {
            write[range_of(access)].fill(true);
        }
        for at in self.touched_pages().flatten() {
            let addr = SCRATCH + at as u64;
            let kept = before[at] == after[at] && before2[at] == after2[at];
            if !write[at] && !kept {
                return Err(format!("writes {addr:#x}, which no predicted write covers"));
            }
            if write[at] && !self.sparse && after[at] != after2[at] {
                return Err(format!("does not write {addr:#x}, or reads more than predicted"));
            }
        }
        Ok(())
    }
}

fn same_result(first: &Run, second: &Run) -> Result<(), &'static str> {
    match () {
        () if first.outcome != second.outcome => {
            Err("ends otherwise when bytes change that it should not read")
        }
        () if (first.read, first.written) != (second.read, second.written) => {
            Err("touches other pages when bytes change that it should not read")
        }
        () if first.after != second.after
            || first.simd.vectors != second.simd.vectors
            || first.simd.masks != second.simd.masks
            || first.x87 != second.x87 =>
        {
            Err("has another result when bytes change that it should not read")
        }
        () => Ok(()),
    }
}

/// `enter` checks the end of the frame that it makes, which must not leave the scratch memory.
fn keep_frame_small(code: &mut [u8; 15]) {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if instruction.mnemonic() == Mnemonic::Enter {
        let offsets = decoder.get_constant_offsets(&instruction);
        code[offsets.immediate_offset() + 1] &= 0x1F;
    }
}

/// Where an access should go: to either side of a page boundary, or to an aligned address.
fn target(random: &mut Random, len: u64) -> u64 {
    let len = len.min(SCRATCH_END - SCRATCH);
    let boundary = SCRATCH + PAGE * (4 + random.below(8));
    match random.below(8) {
        0 => boundary - len,
        1 => (boundary - len).wrapping_add(1),
        2 => boundary,
        3 => boundary - 1,
        4 => boundary - random.below(len.min(PAGE) + 1),
        5 => boundary - len.next_multiple_of(64),
        6 => boundary + 64 * random.below(64),
        _ => boundary + random.below(PAGE),
    }
}

/// Moves the access to the target by the first register (or displacement) that moves it.
fn place(
    code: &mut [u8; 15],
    registers: &mut Registers,
    simd: &Simd,
    state: &mut DecoderState,
    access: Access,
    target: u64,
) {
    let delta = target.wrapping_sub(access.addr);
    let wanted = Access { addr: target, ..access };
    for register in 0..16 {
        let mut moved = *registers;
        moved.gpr[register] = moved.gpr[register].wrapping_add(delta);
        let decoded = state.decode(code, &moved, simd);
        if decoded.accesses.contains(&wanted) && decoded.accesses.iter().all(within_scratch) {
            *registers = moved;
            return;
        }
    }
    let mut decoder = Decoder::with_ip(64, code, registers.rip, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let offsets = decoder.get_constant_offsets(&instruction);
    let (at, size) = (offsets.displacement_offset(), offsets.displacement_size());
    if size >= 4 {
        let mut value = [0; 8];
        value[..size].copy_from_slice(&code[at..at + size]);
        let value = u64::from_le_bytes(value).wrapping_add(delta).to_le_bytes();
        code[at..at + size].copy_from_slice(&value[..size]);
    }
}

fn within_scratch(access: &Access) -> bool {
    access.addr >= SCRATCH && access.len <= SCRATCH_END - SCRATCH && access.addr <= SCRATCH_END - access.len
}

fn range_of(access: &Access) -> Range<usize> {
    let start = (access.addr - SCRATCH) as usize;
    start..start + access.len as usize
}

fn pages_of(access: &Access) -> u32 {
    let range = range_of(access);
    (range.start / PAGE as usize..=(range.end - 1) / PAGE as usize).fold(0, |set, page| set | 1 << page)
}

fn disassemble(code: &[u8]) -> Instruction {
    Decoder::with_ip(64, code, crate::machine::CODE, DecoderOptions::NONE).decode()
}

/// Instructions that may fault where they transfer nothing: `enter` checks the end of the new frame, and some
/// masked stores have no fault suppression. What they write is still compared byte by byte.
fn checks_more(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    match instruction.mnemonic() {
        M::Enter | M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu => true,
        M::Vextractf32x4 | M::Vextractf32x8 | M::Vextractf64x2 | M::Vextractf64x4 => true,
        M::Vextracti32x4 | M::Vextracti32x8 | M::Vextracti64x2 | M::Vextracti64x4 => true,
        _ => false,
    }
}

/// May the test process run it? Not what leaves the thread, loads segments, answers differently each time, takes
/// the trap flag away, or is emulated by the kernel. Cache-line flushes fault without transferring anything.
fn safe(instruction: &Instruction) -> bool {
    let loads_segment = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_segment_register()
        && instruction.mnemonic() != Mnemonic::Push;
    let far = matches!(
        instruction.code(),
        Code::Retfw | Code::Retfd | Code::Retfq | Code::Retfw_imm16 | Code::Retfd_imm16 | Code::Retfq_imm16
    ) || instruction.is_jmp_far_indirect()
        || instruction.is_call_far_indirect();
    let leaves = matches!(instruction.flow_control(), FlowControl::Interrupt | FlowControl::XbeginXabortXend);
    !(loads_segment || far || leaves || excluded(instruction.mnemonic()))
}

fn excluded(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    match mnemonic {
        M::Syscall | M::Sysenter | M::Sysret | M::Sysexit | M::Sysretq | M::Sysexitq => true,
        M::Popf | M::Popfq | M::Iret | M::Iretd | M::Iretq | M::Int1 => true,
        M::Lss | M::Lfs | M::Lgs | M::Wrfsbase | M::Wrgsbase | M::Swapgs => true,
        M::Sgdt | M::Sidt | M::Sldt | M::Str | M::Smsw => true,
        M::Rdtsc | M::Rdtscp | M::Rdrand | M::Rdseed | M::Cpuid | M::Rdpmc => true,
        M::Vmcall | M::Vmmcall | M::Vmfunc | M::Encls | M::Enclu | M::Enclv | M::Getsec => true,
        M::Clflush | M::Clflushopt | M::Clwb | M::Xrstor | M::Xrstor64 | M::Wrpkru | M::Rdpkru => true,
        _ => false,
    }
}
