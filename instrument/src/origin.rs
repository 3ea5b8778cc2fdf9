//! Where a pointer comes from: whether it can point to the heap at all, and from which pointer it was derived.

use crate::ir::{Module, Opcode, Value};

/// At most so many values are looked at; more make a pointer unknown.
const LIMIT: usize = 64;

/// Whether `pointer` can only point to memory that is no heap's: a stack slot, a global, the argument area, or
/// thread-local storage (of which the loader may put some into the heap: that stays to the protection).
pub fn is_private(pointer: Value) -> bool {
    let mut seen = vec![pointer];
    let mut next = 0;
    while next < seen.len() {
        let Some(sources) = sources(seen[next]) else { return false };
        next += 1;
        for source in sources {
            if !seen.contains(&source) {
                seen.push(source);
            }
        }
        if seen.len() > LIMIT {
            return false;
        }
    }
    true
}

/// The pointers that `pointer` may point into the objects of; empty if to private memory, none if unknown.
fn sources(pointer: Value) -> Option<Vec<Value>> {
    if pointer.is_global() || pointer.is_byval_argument() {
        return Some(Vec::new());
    }
    match pointer.opcode()? {
        Opcode::LLVMAlloca => Some(Vec::new()),
        Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast => Some(vec![pointer.operand(0)]),
        Opcode::LLVMSelect => Some(vec![pointer.operand(1), pointer.operand(2)]),
        Opcode::LLVMPHI => Some(pointer.incoming()),
        Opcode::LLVMCall => match pointer.intrinsic()? {
            name if name.starts_with("llvm.threadlocal.address") => Some(Vec::new()),
            name if name.contains("invariant.group") => Some(vec![pointer.operand(0)]),
            _ => None,
        },
        _ => None,
    }
}

/// The pointer from which `pointer` was derived by constant steps that stay within one object, and their sum. Two
/// accesses with the same first part are to the same object, so both are inside the heap or neither.
pub fn base(module: &Module, pointer: Value) -> (Value, i64) {
    let (mut at, mut sum) = (pointer, 0i64);
    // Code that is never reached may derive a pointer from itself.
    for _ in 0..LIMIT {
        if at.opcode() != Some(Opcode::LLVMGetElementPtr) || !at.is_inbounds() {
            break;
        }
        let Some(total) = module.constant_offset(at).and_then(|step| sum.checked_add(step)) else { break };
        (at, sum) = (at.operand(0), total);
    }
    (at, sum)
}
