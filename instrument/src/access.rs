//! Which instructions access memory that may be the heap's, and what the machine makes of each.
//!
//! What the back end turns into a loop, a library call or several accesses whose number depends on the run is left
//! alone: it faults and is counted by the runtime, which is right, only slower.

use crate::ir::{Module, Opcode, Ordering, Rmw, Value};
use crate::origin::is_private;
use crate::pieces::{Piece, pieces};

/// Reads, writes or both, with the numbers that the runtime uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A load.
    Read = 1,
    /// A store.
    Write = 2,
    /// A read-modify-write.
    Both = 3,
}

/// One access through one pointer, of known size.
#[derive(Clone, Debug)]
pub struct Access {
    /// The load, store or atomic.
    pub instruction: Value,
    /// The number of its pointer operand.
    pub operand: u32,
    /// What it does to each of the pieces.
    pub kind: Kind,
    /// What it touches.
    pub pieces: Vec<Piece>,
    /// Whether it stands alone: atomics, and what the program itself made volatile.
    pub alone: bool,
}

/// A memory intrinsic: one access of `length` bytes for each operand.
#[derive(Clone, Debug)]
pub struct Block {
    /// The call.
    pub instruction: Value,
    /// Operand numbers of the pointers that may be heap, and what the call does there.
    pub sides: Vec<(u32, Kind)>,
    /// The length operand.
    pub length: Value,
}

/// What an instruction means to the pass.
pub enum Found {
    /// To be counted.
    Access(Access),
    /// To be counted as a range.
    Block(Block),
    /// Nothing may be counted ahead across it, and no window may stay open across it.
    Barrier,
    /// Neither touches the heap nor leaves the block.
    Nothing,
}

/// Classifies instructions of one function.
pub struct Finder {
    module: Module,
    /// Bytes of the widest vector register.
    widest: u64,
    cx16: bool,
}

impl Finder {
    /// For the instructions of `function`, whose target features matter.
    pub fn new(module: Module, function: Value) -> Finder {
        let features = function.text_attribute("target-features");
        let has = |name: &str| features.split(',').any(|feature| feature == name);
        let narrow = function.text_attribute("prefer-vector-width");
        let widest = match () {
            () if has("+avx512f") && (narrow.is_empty() || narrow == "512") => 64,
            () if has("+avx") => 32,
            () => 16,
        };
        Finder { module, widest, cx16: has("+cx16") }
    }

    /// What `instruction` means.
    pub fn find(&self, instruction: Value) -> Found {
        let Some(opcode) = instruction.opcode() else { return Found::Nothing };
        match opcode {
            Opcode::LLVMLoad => self.load(instruction),
            Opcode::LLVMStore => self.store(instruction),
            Opcode::LLVMAtomicRMW => self.rmw(instruction),
            Opcode::LLVMAtomicCmpXchg => self.compare_exchange(instruction),
            Opcode::LLVMCall => call(instruction),
            Opcode::LLVMInvoke | Opcode::LLVMCallBr | Opcode::LLVMFence | Opcode::LLVMVAArg => Found::Barrier,
            Opcode::LLVMSDiv | Opcode::LLVMUDiv | Opcode::LLVMSRem | Opcode::LLVMURem => Found::Barrier,
            _ => Found::Nothing,
        }
    }

    fn load(&self, instruction: Value) -> Found {
        let ordering = instruction.ordering();
        let atomic = ordering != Ordering::LLVMAtomicOrderingNotAtomic;
        self.access(instruction, 0, instruction, Kind::Read, atomic)
    }

    fn store(&self, instruction: Value) -> Found {
        let ordering = instruction.ordering();
        let atomic = ordering != Ordering::LLVMAtomicOrderingNotAtomic;
        // XCHG, which reads too.
        let exchanges = ordering == Ordering::LLVMAtomicOrderingSequentiallyConsistent;
        let kind = if exchanges { Kind::Both } else { Kind::Write };
        self.access(instruction, 1, instruction.operand(0), kind, atomic)
    }

    fn rmw(&self, instruction: Value) -> Found {
        let neutral = matches!(instruction.operand(1).constant(), Some(0 | -1));
        let used = instruction.is_used();
        let single = match instruction.rmw() {
            Rmw::LLVMAtomicRMWBinOpXchg => true,
            // Adding nothing may become a mere load.
            Rmw::LLVMAtomicRMWBinOpAdd | Rmw::LLVMAtomicRMWBinOpSub => {
                instruction.operand(1).constant() != Some(0)
            }
            Rmw::LLVMAtomicRMWBinOpAnd | Rmw::LLVMAtomicRMWBinOpOr | Rmw::LLVMAtomicRMWBinOpXor => {
                !used && !neutral
            }
            _ => false,
        };
        match self.access(instruction, 0, instruction.operand(1), Kind::Both, true) {
            Found::Access(access) if single && access.pieces.len() == 1 => Found::Access(access),
            Found::Nothing => Found::Nothing,
            _ => Found::Barrier,
        }
    }

    fn compare_exchange(&self, instruction: Value) -> Found {
        let found = self.access(instruction, 0, instruction.operand(1), Kind::Both, true);
        let Found::Access(mut access) = found else { return found };
        if let [Piece { size: 8, .. }, Piece { size: 8, .. }] = access.pieces[..] {
            if !self.cx16 {
                return Found::Barrier;
            }
            access.pieces = vec![Piece { offset: 0, size: 16 }];
        }
        Found::Access(access)
    }

    fn access(&self, instruction: Value, operand: u32, data: Value, kind: Kind, atomic: bool) -> Found {
        let pointer = instruction.operand(operand);
        if !pointer.kind().is_plain_pointer() || is_private(pointer) {
            return Found::Nothing;
        }
        let Some(data) = self.module.data(data.kind()) else { return Found::Barrier };
        let pieces = pieces(&data, self.widest);
        if pieces.is_empty() {
            return Found::Nothing;
        }
        let compared = instruction.opcode() == Some(Opcode::LLVMAtomicCmpXchg);
        // Two machine accesses cannot be atomic: a loop or a library call.
        if atomic && pieces.len() > 1 && !compared {
            return Found::Barrier;
        }
        let alone = atomic || instruction.is_volatile();
        Found::Access(Access { instruction, operand, kind, pieces, alone })
    }
}

/// Memory intrinsics are found by name; of other calls only those stay out of the way that become no call.
fn call(instruction: Value) -> Found {
    let Some(name) = instruction.intrinsic() else { return Found::Barrier };
    let sides: &[(u32, Kind)] = match name.as_str() {
        name if name.starts_with("llvm.memcpy.element") || name.starts_with("llvm.memmove.element") => &[],
        name if name.starts_with("llvm.memset.element") => &[],
        name if name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.") => {
            &[(0, Kind::Write), (1, Kind::Read)]
        }
        name if name.starts_with("llvm.memset.") => &[(0, Kind::Write)],
        name if is_transparent(name) => return Found::Nothing,
        _ => &[],
    };
    let heap = |side: &(u32, Kind)| {
        let pointer = instruction.operand(side.0);
        pointer.kind().is_plain_pointer() && !is_private(pointer)
    };
    let sides: Vec<(u32, Kind)> = sides.iter().copied().filter(heap).collect();
    if sides.is_empty() {
        return Found::Barrier;
    }
    Found::Block(Block { instruction, sides, length: instruction.operand(2) })
}

/// Intrinsics that become no call and touch no memory.
fn is_transparent(name: &str) -> bool {
    const PREFIXES: [&str; 24] = [
        "dbg.",
        "lifetime.",
        "assume",
        "experimental.noalias.",
        "invariant.",
        "umin.",
        "umax.",
        "smin.",
        "smax.",
        "abs.",
        "ctlz.",
        "cttz.",
        "ctpop.",
        "bswap.",
        "fshl.",
        "fshr.",
        "fabs.",
        "expect.",
        "uadd.",
        "usub.",
        "sadd.",
        "ssub.",
        "umul.with",
        "threadlocal.address",
    ];
    name.strip_prefix("llvm.").is_some_and(|rest| PREFIXES.iter().any(|prefix| rest.starts_with(prefix)))
}
