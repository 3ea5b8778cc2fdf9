//! Ranges of `rep` string instructions against a walk over their elements.

use proptest::prelude::*;
use thermalloc_monitor::operands::{
    Access, Class, DecoderState, Kind, NoVectors, Registers, RepString, StringOp, XsaveLayout,
};

const DOWN: u64 = 1 << 10;

fn string(code: &[u8]) -> RepString {
    let decoded = DecoderState::new(XsaveLayout::detect()).decode(code, &Registers::default(), &NoVectors);
    match decoded.class {
        Class::RepString(string) => string,
        other => panic!("{code:x?} is {other:?}"),
    }
}

/// Prefixes and opcode of a `rep` string instruction, with its operation and element size.
fn instruction() -> impl Strategy<Value = (Vec<u8>, StringOp, u8, bool)> {
    let ops = prop_oneof![
        Just((0xA4, StringOp::Movs)),
        Just((0xAA, StringOp::Stos)),
        Just((0xAC, StringOp::Lods)),
        Just((0xA6, StringOp::Cmps)),
        Just((0xAE, StringOp::Scas)),
    ];
    (ops, 0..4u8, any::<bool>(), any::<bool>()).prop_map(|((opcode, op), size, addr32, repne)| {
        let mut code = Vec::new();
        code.extend(addr32.then_some(0x67));
        code.push(if repne { 0xF2 } else { 0xF3 });
        code.extend([None, Some(0x66), None, Some(0x48)][usize::from(size)]);
        code.push(opcode | u8::from(size != 0));
        (code, op, [1, 2, 4, 8][usize::from(size)], addr32)
    })
}

/// Lowest address and number of bytes of `count` elements from `start` on.
fn walk(start: u64, count: u64, element: u64, down: bool) -> (u64, u64) {
    let at = |n: u64| if down { start - n * element } else { start + n * element };
    let low = (0..count).map(at).min().unwrap_or(start);
    let high = (0..count).map(|n| at(n) + element).max().unwrap_or(start);
    (low, high - low)
}

fn expected(op: StringOp, registers: &Registers, count: u64, element: u64) -> Vec<Access> {
    let down = registers.rflags & DOWN != 0;
    let access = |pointer: u64, kind| {
        let (addr, len) = walk(pointer, count, element, down);
        Access { addr, len, kind }
    };
    let (source, target) = (registers.gpr[6], registers.gpr[7]);
    let all = match op {
        StringOp::Movs => vec![access(source, Kind::Read), access(target, Kind::Write)],
        StringOp::Stos => vec![access(target, Kind::Write)],
        StringOp::Lods => vec![access(source, Kind::Read)],
        StringOp::Cmps => vec![access(source, Kind::Read), access(target, Kind::Read)],
        StringOp::Scas => vec![access(target, Kind::Read)],
    };
    all.into_iter().filter(|access| access.len != 0).collect()
}

proptest! {
    #[test]
    fn ranges_are_what_a_walk_over_the_elements_touches(
        (code, op, element, addr32) in instruction(),
        source in 0x1_0000u64..0x7FFF_0000,
        target in 0x1_0000u64..0x7FFF_0000,
        count in 0u64..1000,
        done in 0u64..1000,
        down in any::<bool>(),
        garbage in any::<u32>(),
    ) {
        let string = string(&code);
        prop_assert_eq!((string.op, string.element, string.addr32), (op, element, addr32));
        let mut before = Registers { rflags: if down { DOWN } else { 0 }, ..Registers::default() };
        (before.gpr[1], before.gpr[6], before.gpr[7]) = (count, source, target);
        let wanted = expected(op, &before, count, element.into());
        let with_garbage = |mut registers: Registers| {
            // With prefix 67 the upper halves do not count.
            if addr32 {
                for n in [1, 6, 7] {
                    registers.gpr[n] |= u64::from(garbage) << 32;
                }
            }
            registers
        };
        let max = string.max_ranges(&with_garbage(before));
        prop_assert_eq!(max.as_slice(), &wanted[..]);
        let done = done.min(count);
        let mut after = before;
        after.gpr[1] = count - done;
        let wanted = expected(op, &before, done, element.into());
        let ranges = string.done_ranges(&with_garbage(before), &after);
        prop_assert_eq!(ranges.as_slice(), &wanted[..]);
    }

    #[test]
    fn ranges_stay_in_the_address_space(
        (code, _, element, _) in instruction(),
        pointer in any::<u64>(),
        count in prop_oneof![Just(u64::MAX), Just(1 << 63), any::<u64>()],
        down in any::<bool>(),
    ) {
        let string = string(&code);
        let mask = if string.addr32 { u64::from(u32::MAX) } else { u64::MAX };
        let mut registers = Registers { rflags: if down { DOWN } else { 0 }, ..Registers::default() };
        (registers.gpr[1], registers.gpr[6], registers.gpr[7]) = (count, pointer, pointer);
        let first = pointer & mask;
        for range in string.max_ranges(&registers).iter() {
            let last = range.addr + (range.len - 1);
            // The element that comes first is always inside, as far as the address space goes.
            prop_assert!(range.addr <= first && first <= last);
            prop_assert!(last <= mask.saturating_add(u64::from(element)));
        }
    }
}
