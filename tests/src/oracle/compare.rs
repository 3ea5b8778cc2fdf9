//! What differs between two runs: registers, flags, vectors, memory and faults; and counts of accesses.

use super::run::{Left, Run};
use crate::report::ObjectHeat;
use std::fmt::Write;

/// At most so many differences are told of one thing.
const MOST: usize = 8;

const REGISTERS: [&str; 17] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15", "flags",
];
const FAULT_FIELDS: [&str; 4] = ["signal", "code", "address", "rip"];
/// Words of a fault's record.
const FAULT_WORDS: usize = 23;

/// In an XSAVE area: opcode and addresses of the last x87 instruction, and which components are in their initial
/// state. The monitor does not keep these.
const NOT_KEPT: [std::ops::Range<usize>; 2] = [6..24, 512..576];

/// What differs in what a program left, if anything.
pub fn states(expected: &Left, found: &Left) -> Option<String> {
    let mut text = String::new();
    for (tag, expected) in &expected.records {
        match found.records.iter().find(|(other, _)| other == tag) {
            Some((_, found)) => record(*tag, expected, found, &mut text),
            None => text.push_str(&format!("  no record `{}`\n", char::from(*tag))),
        }
    }
    (!text.is_empty()).then_some(text)
}

fn record(tag: u8, expected: &[u8], found: &[u8], text: &mut String) {
    let differing: Vec<usize> = (0..expected.len().max(found.len()))
        .filter(|&at| expected.get(at) != found.get(at))
        .filter(|at| tag != b'V' || !NOT_KEPT.iter().any(|range| range.contains(at)))
        .collect();
    let mut words: Vec<usize> = differing.iter().map(|at| at / 8).collect();
    words.dedup();
    for &at in words.iter().take(MOST) {
        let _ =
            writeln!(text, "  {}: {} instead of {}", name(tag, at), shown(found, at), shown(expected, at));
    }
    if words.len() > MOST {
        let _ = writeln!(text, "  and {} more words of `{}`", words.len() - MOST, char::from(tag));
    }
}

fn shown(bytes: &[u8], at: usize) -> String {
    match bytes.get(at * 8..(at * 8 + 8).min(bytes.len())) {
        Some(word) if !word.is_empty() => {
            let digits: Vec<String> = word.iter().rev().map(|byte| format!("{byte:02x}")).collect();
            digits.concat()
        }
        _ => "nothing".to_owned(),
    }
}

fn name(tag: u8, at: usize) -> String {
    match tag {
        b'R' => REGISTERS[at].to_owned(),
        b'V' if (20..52).contains(&at) => format!("xmm{} word {}", (at - 20) / 2, at % 2),
        b'V' => format!("XSAVE area byte {}", at * 8),
        b'F' => "number of faults".to_owned(),
        b'f' => {
            let field = at % FAULT_WORDS;
            let name = match field {
                0..4 => FAULT_FIELDS[field],
                4..21 => REGISTERS[field - 4],
                _ => "xmm0",
            };
            format!("fault {}: {name}", at / FAULT_WORDS)
        }
        b'G' => format!("globals + {}", at * 8),
        b'S' => format!("stack + {}", at * 8),
        b'g' => format!("guarded + {}", at * 8),
        b'T' => format!("thread-local + {}", at * 8),
        _ => format!("object {} + {}", char::from(tag), at * 8),
    }
}

/// What differs in the counts of a program's objects, but for one.
pub fn counts(program: &Left, expected: &Run, found: &Run, except: Option<usize>) -> Option<String> {
    let mut text = String::new();
    for (number, (address, _)) in
        program.objects.iter().enumerate().filter(|(number, _)| Some(*number) != except)
    {
        let name = format!("object {number} at {address:#x}");
        objects(&name, expected.heat.get(address), found.heat.get(address), &mut text);
    }
    (!text.is_empty()).then_some(text)
}

/// What differs in the counts of all objects, those of the C library included.
pub fn all_counts(expected: &Run, found: &Run) -> Option<String> {
    let mut addresses: Vec<u64> = expected.heat.keys().chain(found.heat.keys()).copied().collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut text = String::new();
    for address in addresses {
        let name = format!("object at {address:#x}");
        objects(&name, expected.heat.get(&address), found.heat.get(&address), &mut text);
    }
    (!text.is_empty()).then_some(text)
}

/// Adds what differs in the counts of one object.
pub fn objects(name: &str, expected: Option<&ObjectHeat>, found: Option<&ObjectHeat>, text: &mut String) {
    let (Some(expected), Some(found)) = (expected, found) else {
        if expected.is_some() != found.is_some() {
            let _ = writeln!(
                text,
                "  {name}: {} in the report",
                if found.is_some() { "only now" } else { "not" }
            );
        }
        return;
    };
    if expected.size != found.size {
        let _ = writeln!(text, "  {name}: size {} instead of {}", found.size, expected.size);
    }
    if expected.counts != found.counts {
        let _ = writeln!(text, "  {name}: {:?} instead of {:?}", found.counts, expected.counts);
    }
    granules(name, "reads", &expected.granule_reads, &found.granule_reads, text);
    granules(name, "writes", &expected.granule_writes, &found.granule_writes, text);
}

fn granules(name: &str, what: &str, expected: &[u64], found: &[u64], text: &mut String) {
    let length = expected.len().max(found.len());
    let of = |counters: &[u64], at: usize| counters.get(at).copied().unwrap_or(0);
    let differing: Vec<usize> = (0..length).filter(|&at| of(expected, at) != of(found, at)).collect();
    for &at in differing.iter().take(MOST) {
        let (found, expected) = (of(found, at), of(expected, at));
        let _ = writeln!(text, "  {name}: granule {at}: {found} {what} instead of {expected}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Counts;

    fn left(records: &[(u8, Vec<u8>)]) -> Left {
        Left { records: records.to_vec(), ..Left::default() }
    }

    fn heat(reads: u64, granule_reads: &[u64]) -> ObjectHeat {
        let counts = Counts { reads, ..Counts::default() };
        let (granule_reads, granule_writes) = (granule_reads.to_vec(), Vec::new());
        ObjectHeat { size: 32, counts, threads: 1, granule: 16, granule_reads, granule_writes }
    }

    #[test]
    fn a_changed_register_is_named() {
        let (before, mut after) = (left(&[(b'R', vec![0; 136])]), left(&[(b'R', vec![0; 136])]));
        assert_eq!(states(&before, &after), None);
        after.records[0].1[8 * 16] = 1;
        assert!(states(&before, &after).is_some_and(|text| text.contains("flags")));
        after.records.clear();
        assert!(states(&before, &after).is_some());
    }

    #[test]
    fn only_what_is_not_kept_of_vectors_may_differ() {
        for byte in 0..832 {
            let (before, mut after) = (left(&[(b'V', vec![0; 832])]), left(&[(b'V', vec![0; 832])]));
            after.records[0].1[byte] = 1;
            let ignored = NOT_KEPT.iter().any(|range| range.contains(&byte));
            assert_eq!(states(&before, &after).is_none(), ignored, "byte {byte}");
        }
    }

    #[test]
    fn counts_and_granules_are_compared() {
        let differs = |a: Option<&ObjectHeat>, b: Option<&ObjectHeat>| {
            let mut text = String::new();
            objects("it", a, b, &mut text);
            !text.is_empty()
        };
        let one = heat(3, &[1, 2]);
        assert!(!differs(Some(&one), Some(&heat(3, &[1, 2, 0]))));
        assert!(differs(Some(&one), Some(&heat(4, &[1, 2]))));
        assert!(differs(Some(&one), Some(&heat(3, &[2, 1]))));
        assert!(differs(Some(&one), None) && differs(None, Some(&one)) && !differs(None, None));
    }
}
