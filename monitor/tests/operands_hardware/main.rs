//! The operand decoder against the processor: random instructions, single-stepped on guarded memory.
//!
//! Environment: `THERMALLOC_FUZZ_SECONDS` (default 3), `THERMALLOC_FUZZ_SEED` (seed of the first case; a failure
//! prints its own), `THERMALLOC_FUZZ_ALL` (set: go on after a failure, and print the first of each encoding).

mod case;
mod expected;
mod generate;
mod machine;
mod random;
mod safety;

use case::{Case, Verdict};
use machine::Machine;
use random::Random;
use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};
use thermalloc_monitor::operands::{Class, DecoderState, XsaveLayout};

#[derive(Default)]
struct Tally {
    agreed: u64,
    refused: u64,
    skipped: u64,
    strings: u64,
    masked: u64,
    scattered: u64,
    codes: HashSet<iced_x86::Code>,
}

impl Tally {
    fn add(&mut self, case: &Case, verdict: &Verdict) {
        match verdict {
            Verdict::Refused => self.refused += 1,
            Verdict::Agreed => {
                self.agreed += 1;
                self.codes.insert(case.instruction.code());
                self.strings += u64::from(matches!(case.decoded.class, Class::RepString(_)));
                self.masked += u64::from(case.instruction.op_mask() != iced_x86::Register::None);
                self.scattered += u64::from(case.instruction.is_vsib());
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agreed, refused, skipped, strings, masked, scattered, codes } = self;
        write!(
            f,
            "{agreed} agreed ({strings} rep strings, {masked} masked, {scattered} gathers and scatters) "
        )?;
        write!(f, "on {} encodings; {refused} refused, {skipped} skipped", codes.len())
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    let digits = text.trim_start_matches("0x");
    let radix = if digits.len() == text.len() { 10 } else { 16 };
    u64::from_str_radix(digits, radix).unwrap_or_else(|_| panic!("{name}={text} is not a number"))
}

/// At least so many cases, however slow the machine.
const CASES: u64 = 4000;

#[test]
fn decoder_agrees_with_the_processor() {
    let mut machine = Machine::new();
    let layout = XsaveLayout::detect();
    let mut state = DecoderState::new(layout);
    let end = Instant::now() + Duration::from_secs(setting("THERMALLOC_FUZZ_SECONDS", 3));
    let first = setting("THERMALLOC_FUZZ_SEED", 1);
    let go_on = std::env::var_os("THERMALLOC_FUZZ_ALL").is_some();
    let (mut tally, mut failed) = (Tally::default(), HashSet::new());
    for seed in first.. {
        if seed >= first + CASES && Instant::now() > end {
            break;
        }
        let Some(case) = Case::new(seed, &machine, &layout, &mut state) else {
            tally.skipped += 1;
            continue;
        };
        match case.check(&mut machine) {
            Ok(verdict) => tally.add(&case, &verdict),
            Err(what) if go_on => {
                if failed.insert(case.instruction.code()) {
                    println!("{what}");
                }
            }
            Err(what) => panic!("{what}"),
        }
    }
    println!("{tally}");
    assert!(failed.is_empty(), "{} encodings fail", failed.len());
    assert!(
        tally.agreed > CASES / 4 && tally.strings > 100 && tally.codes.len() > 300,
        "proves too little: {tally}"
    );
}

/// The frame that the tests above write is the frame that the processor loads: each register, stored by an
/// instruction, comes out as it was put in.
#[test]
fn frames_hold_the_registers() {
    let mut machine = Machine::new();
    let mut random = Random::new(1);
    let mut registers = generate::registers(&mut random, machine.fs_base);
    registers.gpr[0] = machine::SCRATCH;
    for top in 0..8 {
        let mut simd = generate::simd(&mut random);
        simd.mmx.iter_mut().for_each(|value| *value = random.next().to_le_bytes());
        simd.top = top;
        let mut store = |code: &[u8]| {
            machine.load(code);
            let run = machine.run(&registers, &simd, false);
            assert_eq!(run.outcome, machine::Outcome::Done, "{code:02x?}");
            machine.memory()[..64].to_vec()
        };
        for n in 0..8u8 {
            let number = usize::from(n);
            // movq [rax], mm; movups [rax], xmm
            assert_eq!(store(&[0x0F, 0x7F, n << 3])[..8], simd.mmx[number], "mm{n} with stack top {top}");
            assert_eq!(store(&[0x0F, 0x11, n << 3])[..16], simd.vectors[number][..16], "xmm{n}");
            if is_x86_feature_detected!("avx512bw") {
                // kmovq [rax], k; vmovdqu64 [rax], zmm and zmm + 16
                let mask = store(&[0xC4, 0xE1, 0xF8, 0x91, n << 3])[..8].to_vec();
                assert_eq!(mask, simd.masks[number].to_le_bytes(), "k{n}");
                assert_eq!(store(&[0x62, 0xF1, 0xFE, 0x48, 0x7F, n << 3]), simd.vectors[number], "zmm{n}");
                let high = store(&[0x62, 0xE1, 0xFE, 0x48, 0x7F, n << 3]);
                assert_eq!(high, simd.vectors[number + 16], "zmm{}", n + 16);
            }
        }
    }
}
