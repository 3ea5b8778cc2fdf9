//! The operand decoder against the processor: random instructions, single-stepped on guarded memory.
//!
//! Environment: `THERMALLOC_FUZZ_SECONDS` (default 3), `THERMALLOC_FUZZ_SEED` (first seed; a failure prints the seed
//! of its case, which then comes first).

mod case;
mod generate;
mod machine;
mod random;

use case::{Case, Verdict};
use machine::Machine;
use std::collections::HashSet;
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

fn setting(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    let digits = text.trim_start_matches("0x");
    let radix = if digits.len() == text.len() { 10 } else { 16 };
    u64::from_str_radix(digits, radix).unwrap_or_else(|_| panic!("{name}={text} is not a number"))
}

#[test]
fn decoder_agrees_with_the_processor() {
    let mut machine = Machine::new();
    let mut state = DecoderState::new(XsaveLayout::detect());
    let end = Instant::now() + Duration::from_secs(setting("THERMALLOC_FUZZ_SECONDS", 3));
    let mut seed = setting("THERMALLOC_FUZZ_SEED", 1);
    let mut tally = Tally::default();
    let keep_going = std::env::var_os("THERMALLOC_FUZZ_KEEP_GOING").is_some();
    let mut failed = HashSet::new();
    loop {
        match Case::new(seed, &mut machine, &mut state) {
            None => tally.skipped += 1,
            Some(case) => match case.check(&mut machine) {
                Ok(verdict) => tally.add(&case, &verdict),
                Err(what) if keep_going => {
                    if failed.insert(case.instruction.code()) {
                        println!("{what}");
                    }
                }
                Err(what) => panic!("{what}"),
            },
        }
        seed += 1;
        if seed.is_multiple_of(256) && Instant::now() > end {
            break;
        }
    }
    println!(
        "{} agreed ({} rep strings, {} masked, {} gathers and scatters) on {} encodings; {} refused, {} skipped",
        tally.agreed,
        tally.strings,
        tally.masked,
        tally.scattered,
        tally.codes.len(),
        tally.refused,
        tally.skipped,
    );
    if keep_going {
        println!("{} codes failed", failed.len());
    }
    assert!(
        tally.agreed > 1000 && tally.strings > 10 && tally.codes.len() > 300,
        "the cases prove too little"
    );
}
