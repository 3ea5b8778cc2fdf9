//! A region: the code that is translated together, from a site along straight-line code and direct branches, so that loops
//! stay inside.
//!
//! # Signal context
//! Runs in handlers, and uses the private heap.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use std::collections::{BTreeMap, VecDeque};

/// Instructions of a region at most.
const LARGEST: usize = 96;
/// The longest instruction in bytes.
pub const MAX_LEN: usize = 15;

/// One step of a region, in the order of its code.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Address of the original instruction; for a `Goto`, where it goes.
    pub ip: u64,
    /// What becomes of it.
    pub what: What,
}

/// What becomes of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// Runs in its place in the cache.
    Run(Instruction, [u8; MAX_LEN]),
    /// A direct branch that may be taken; the target is its near branch target.
    Branch(Instruction),
    /// A direct jump, which needs no code: the next item is its target.
    Joined,
    /// A call, made so that it returns to the original code.
    Call(Instruction, [u8; MAX_LEN]),
    /// A system call, which is made at the door.
    SystemCall(Instruction, [u8; MAX_LEN]),
    /// Goes on at the original address `ip`.
    Goto,
}

/// Where a region's code is read, and what is known of the rest.
pub trait Source {
    /// The original bytes at an address, as many as there are; empty outside the module's code.
    fn read(&self, ip: u64, bytes: &mut [u8; MAX_LEN]) -> usize;
    /// Whether a translation of the instruction exists already.
    fn is_translated(&self, ip: u64) -> bool;
    /// Whether system calls are translated.
    fn takes_calls(&self) -> bool;
}

/// The region that begins at `entry`. What begins below `must_end`, in straight line from the entry, belongs to it whatever it
/// is: `None` if that cannot be.
pub fn build(source: &impl Source, entry: u64, must_end: u64) -> Option<Vec<Item>> {
    let mut region = Builder { source, items: Vec::new(), placed: BTreeMap::new(), queue: VecDeque::new() };
    region.must(entry, must_end)?;
    while let Some(ip) = region.queue.pop_front() {
        if !region.placed.contains_key(&ip) && region.items.len() < LARGEST && !source.is_translated(ip) {
            region.follow(ip);
        }
    }
    Some(region.items)
}

struct Builder<'a, S> {
    source: &'a S,
    items: Vec<Item>,
    placed: BTreeMap<u64, ()>,
    queue: VecDeque<u64>,
}

impl<S: Source> Builder<'_, S> {
    fn decode(&self, ip: u64) -> Option<(Instruction, [u8; MAX_LEN])> {
        let mut bytes = [0; MAX_LEN];
        let len = self.source.read(ip, &mut bytes);
        let mut decoder = Decoder::with_ip(64, &bytes[..len], ip, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then_some((instruction, bytes))
    }

    fn makes_system_call(&self, instruction: &Instruction) -> bool {
        instruction.mnemonic() == Mnemonic::Syscall && self.source.takes_calls()
    }

    fn push(&mut self, ip: u64, what: What) {
        if !matches!(what, What::Goto) {
            self.placed.insert(ip, ());
        }
        self.items.push(Item { ip, what });
    }

    /// The instructions of the window, and what follows in straight line. What stands behind a jump may be a target of its own.
    fn must(&mut self, entry: u64, end: u64) -> Option<()> {
        let mut ip = entry;
        let mut ended = false;
        while ip < end {
            let (instruction, bytes) = self.decode(ip)?;
            let next = instruction.next_ip();
            match instruction.flow_control() {
                FlowControl::Next => self.push(ip, What::Run(instruction, bytes)),
                FlowControl::ConditionalBranch => {
                    self.push(ip, What::Branch(instruction));
                    self.queue.push_back(instruction.near_branch_target());
                }
                FlowControl::UnconditionalBranch => {
                    // Its own code, for what follows in line is not its target.
                    self.push(ip, What::Branch(instruction));
                    self.queue.push_back(instruction.near_branch_target());
                }
                _ if self.makes_system_call(&instruction) => {
                    self.push(ip, What::SystemCall(instruction, bytes));
                }
                FlowControl::Call | FlowControl::IndirectCall if can_call(&instruction) => {
                    self.push(ip, What::Call(instruction, bytes));
                    // The call returns to the original code.
                    if next < end {
                        return None;
                    }
                }
                FlowControl::Return | FlowControl::IndirectBranch => {
                    self.push(ip, What::Run(instruction, bytes))
                }
                _ => return None,
            }
            ended = ends(&instruction);
            ip = next;
        }
        if !ended {
            self.follow(ip);
        }
        Some(())
    }

    /// Straight-line code from `ip` on.
    fn follow(&mut self, mut ip: u64) {
        loop {
            let full = self.items.len() >= LARGEST;
            if full || self.placed.contains_key(&ip) || self.source.is_translated(ip) {
                return self.push(ip, What::Goto);
            }
            let Some((instruction, bytes)) = self.decode(ip) else { return self.push(ip, What::Goto) };
            match instruction.flow_control() {
                FlowControl::Next if can_run(&instruction) => self.push(ip, What::Run(instruction, bytes)),
                FlowControl::ConditionalBranch => {
                    self.push(ip, What::Branch(instruction));
                    self.queue.push_back(instruction.near_branch_target());
                }
                FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => {
                    self.push(ip, What::Joined);
                    ip = instruction.near_branch_target();
                    continue;
                }
                FlowControl::Return | FlowControl::IndirectBranch if can_run(&instruction) => {
                    return self.push(ip, What::Run(instruction, bytes));
                }
                // It accesses memory, and may be too short to be patched itself.
                FlowControl::IndirectCall if calls_through_memory(&instruction) => {
                    return self.push(ip, What::Call(instruction, bytes));
                }
                _ if self.makes_system_call(&instruction) => {
                    self.push(ip, What::SystemCall(instruction, bytes));
                }
                // Another call is left in place, so that its return address is the program's.
                _ => return self.push(ip, What::Goto),
            }
            ip = instruction.next_ip();
        }
    }
}

/// Whether control never passes an instruction in line.
fn ends(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Return
            | FlowControl::IndirectBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::Call
            | FlowControl::IndirectCall
    ) && instruction.mnemonic() != Mnemonic::Syscall
}

/// Whether an instruction means the same in another place.
fn can_run(instruction: &Instruction) -> bool {
    !matches!(
        instruction.mnemonic(),
        Mnemonic::Syscall
            | Mnemonic::Sysenter
            | Mnemonic::Int
            | Mnemonic::Int1
            | Mnemonic::Int3
            | Mnemonic::Retf
    ) && !matches!(instruction.flow_control(), FlowControl::XbeginXabortXend | FlowControl::Exception)
}

/// Whether a call reads its target from memory that may be the heap's.
fn calls_through_memory(instruction: &Instruction) -> bool {
    can_call(instruction)
        && instruction.op0_kind() == iced_x86::OpKind::Memory
        && !instruction.is_ip_rel_memory_operand()
        && !instruction.has_segment_prefix()
}

/// Whether [`What::Call`] can make a call: near, and not by way of the stack pointer, which it moves first.
fn can_call(instruction: &Instruction) -> bool {
    use iced_x86::{Code, Register};
    let rsp = Register::RSP;
    match instruction.code() {
        Code::Call_rel32_64 => true,
        Code::Call_rm64 => {
            instruction.op0_register() != rsp
                && instruction.memory_base() != rsp
                && instruction.memory_index() != rsp
        }
        _ => false,
    }
}
