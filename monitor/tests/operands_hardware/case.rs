//! One case: an instruction, the state it runs on, what the decoder predicts and what the processor does.

use crate::expected::{Expected, within_scratch};
use crate::generate;
use crate::machine::{Machine, Outcome, PAGE, PAGES, Run, SCRATCH, SCRATCH_END, Simd};
use crate::random::Random;
use crate::safety::safe;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use std::fmt::Write;
use thermalloc_monitor::operands::{Access, Class, Decoded, DecoderState, Registers, XsaveArea, XsaveLayout};

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
    pub fn new(seed: u64, machine: &Machine, layout: &XsaveLayout, state: &mut DecoderState) -> Option<Self> {
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
        let frame = simd.frame(layout);
        let from_frame = state.decode(&code, &registers, &XsaveArea::new(&frame, layout));
        assert_eq!(
            from_frame.accesses.as_slice(),
            decoded.accesses.as_slice(),
            "by the frame, seed {seed:#x}"
        );
        let inside = decoded.accesses.iter().all(within_scratch);
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

fn disassemble(code: &[u8]) -> Instruction {
    Decoder::with_ip(64, code, crate::machine::CODE, DecoderOptions::NONE).decode()
}
