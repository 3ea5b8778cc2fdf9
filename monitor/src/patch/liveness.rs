//! Which registers and flags a region still needs at each of its items: what is dead serves as scratch.
//!
//! # Signal context
//! Runs in handlers, and uses the private heap.

use super::region::{Item, Source, What};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions,
    Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};
use std::collections::BTreeMap;

/// A set of general registers (bits 0 to 15) and arithmetic flags (bits 16 to 21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set(pub u32);

/// Everything.
pub const ALL: Set = Set(0x3f_ffff);
const FLAGS: u32 = 0x3f_0000;

impl Set {
    /// Whether any arithmetic flag is in it.
    pub fn has_flags(self) -> bool {
        self.0 & FLAGS != 0
    }

    /// Whether a general register is in it, by number.
    pub fn has(self, register: u8) -> bool {
        self.0 >> register & 1 != 0
    }
}

/// What an instruction reads, and what it overwrites whole.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// Read.
    pub uses: u32,
    /// Overwritten in any case.
    pub kills: u32,
}

/// Instructions looked at beyond an exit.
const AHEAD: usize = 12;

/// For each item, what is live before it.
pub fn live(items: &[Item], source: &impl Source, factory: &mut InstructionInfoFactory) -> Vec<Set> {
    let effects: Vec<Effect> = items
        .iter()
        .map(|item| match &item.what {
            What::Run(instruction, _) => effect(instruction, factory),
            What::Branch(instruction) => effect(instruction, factory),
            What::SystemCall(..) => Effect { uses: ALL.0, kills: 0 },
            What::Call(..) | What::Goto | What::Joined => Effect { uses: 0, kills: 0 },
        })
        .collect();
    let at: BTreeMap<u64, usize> = items
        .iter()
        .enumerate()
        .filter(|(_, item)| !matches!(item.what, What::Goto))
        .map(|(index, item)| (item.ip, index))
        .collect();
    let mut beyond = Beyond { source, factory, known: BTreeMap::new() };
    let mut live = vec![Set(0); items.len() + 1];
    loop {
        let mut changed = false;
        for (index, item) in items.iter().enumerate().rev() {
            let mut target = |ip: u64, live: &[Set]| match at.get(&ip) {
                Some(&index) => live[index].0,
                None => beyond.live(ip).0,
            };
            let out = match &item.what {
                What::Run(instruction, _) => match instruction.flow_control() {
                    // Nobody passes flags out of a function.
                    FlowControl::Return => ALL.0 & !FLAGS,
                    FlowControl::IndirectBranch => ALL.0,
                    _ => live[index + 1].0,
                },
                What::Branch(instruction) => {
                    let taken = target(instruction.near_branch_target(), &live);
                    let falls = instruction.flow_control() == FlowControl::ConditionalBranch;
                    taken | if falls { live[index + 1].0 } else { 0 }
                }
                What::Joined | What::SystemCall(..) => live[index + 1].0,
                What::Call(..) => ALL.0 & !FLAGS,
                What::Goto => target(item.ip, &live),
            };
            let effect = effects[index];
            let before = Set(effect.uses | out & !effect.kills);
            changed |= before != live[index];
            live[index] = before;
        }
        if !changed {
            live.pop();
            return live;
        }
    }
}

/// What is live at addresses outside of the region.
struct Beyond<'a, S> {
    source: &'a S,
    factory: &'a mut InstructionInfoFactory,
    known: BTreeMap<u64, Set>,
}

impl<S: Source> Beyond<'_, S> {
    fn live(&mut self, ip: u64) -> Set {
        if let Some(&known) = self.known.get(&ip) {
            return known;
        }
        let live = self.look(ip);
        self.known.insert(ip, live);
        live
    }

    /// Follows straight-line code and jumps: what is overwritten before it is read is dead.
    fn look(&mut self, mut ip: u64) -> Set {
        let (mut used, mut killed) = (0, 0);
        for _ in 0..AHEAD {
            let mut bytes = [0; super::region::MAX_LEN];
            let len = self.source.read(ip, &mut bytes);
            let instruction = Decoder::with_ip(64, &bytes[..len], ip, DecoderOptions::NONE).decode();
            let all = |used: u32, killed: u32, live: u32| Set(used | live & !killed);
            match instruction.flow_control() {
                FlowControl::Next => {
                    let effect = effect(&instruction, self.factory);
                    used |= effect.uses & !killed;
                    killed |= effect.kills;
                    ip = instruction.next_ip();
                }
                FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => {
                    ip = instruction.near_branch_target();
                }
                _ if instruction.mnemonic() == Mnemonic::Syscall => break,
                FlowControl::Call | FlowControl::Return => {
                    let uses = effect(&instruction, self.factory).uses & !killed;
                    return all(used | uses, killed, ALL.0 & !FLAGS);
                }
                _ => break,
            }
        }
        Set(used | ALL.0 & !killed)
    }
}

/// What an instruction reads and overwrites.
pub fn effect(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Effect {
    let (mut uses, mut kills) = (0u32, 0u32);
    let info = factory.info_options(instruction, InstructionInfoOptions::NO_MEMORY_USAGE);
    for used in info.used_registers() {
        let Some(bit) = bit(used.register()) else { continue };
        let whole = used.register().size() >= 4;
        match used.access() {
            OpAccess::Write if whole => kills |= bit,
            OpAccess::None | OpAccess::NoMemAccess => {}
            // A partial or conditional write keeps the rest.
            _ => uses |= bit,
        }
    }
    kills &= !uses;
    uses |= flags(instruction.rflags_read());
    if !may_leave_flags(instruction) {
        // What is undefined after it is, on processors, often what was there before.
        let defined = instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set();
        kills |= flags(defined) & !uses;
    }
    Effect { uses, kills }
}

/// The bit of the general register that a register is part of.
pub fn bit(register: Register) -> Option<u32> {
    register.is_gpr().then(|| 1 << register.full_register().number())
}

fn flags(rflags: u32) -> u32 {
    [RflagsBits::CF, RflagsBits::PF, RflagsBits::AF, RflagsBits::ZF, RflagsBits::SF, RflagsBits::OF]
        .iter()
        .enumerate()
        .filter(|(_, flag)| rflags & **flag != 0)
        .fold(0, |set, (index, _)| set | 1 << (16 + index))
}

/// Whether an instruction that writes flags may leave them as they were: a shift by nothing, a string of no elements.
fn may_leave_flags(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    let shift = matches!(instruction.mnemonic(), Shl | Sal | Shr | Sar | Rol | Ror | Rcl | Rcr | Shld | Shrd);
    let count_is_known =
        instruction.op_kinds().last() == Some(OpKind::Immediate8) && instruction.immediate8() & 0x1f != 0;
    let by_one = instruction.op_count() == 1;
    (shift && !count_is_known && !by_one) || instruction.has_rep_prefix() || instruction.has_repne_prefix()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect_of(code: &[u8]) -> Effect {
        effect(&Decoder::new(64, code, DecoderOptions::NONE).decode(), &mut InstructionInfoFactory::new())
    }

    #[test]
    fn effects() {
        let load = effect_of(&[0x48, 0x8b, 0x43, 0x08]); // mov rax, [rbx+8]
        assert_eq!((load.uses, load.kills), (1 << 3, 1));
        let partial = effect_of(&[0x8a, 0x03]); // mov al, [rbx]
        assert_eq!((partial.uses & 1, partial.kills & 1), (1, 0));
        let conditional = effect_of(&[0x48, 0x0f, 0x44, 0x03]); // cmove rax, [rbx]
        assert_eq!((conditional.uses & 1, conditional.kills & 1), (1, 0));
        assert!(Set(conditional.uses).has_flags());
        let add = effect_of(&[0x48, 0x01, 0x03]); // add [rbx], rax
        assert_eq!(add.kills & FLAGS, FLAGS);
        assert_eq!(effect_of(&[0x48, 0xd3, 0xe0]).kills & FLAGS, 0); // shl rax, cl
        assert_ne!(effect_of(&[0x48, 0xc1, 0xe0, 4]).kills & FLAGS, 0); // shl rax, 4
        assert_eq!(effect_of(&[0xff, 0x03]).kills & 1 << 16, 0); // inc [rbx] keeps carry
        assert_eq!(effect_of(&[0xf3, 0xa6]).kills & FLAGS, 0); // repe cmpsb
    }
}
