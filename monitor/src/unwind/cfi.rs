//! From `.eh_frame` to a rule: the row of call frame information that covers one address, reduced to what
//! [`Rule`] can say. Parsing is gimli's.
//!
//! Source: DWARF 5, section 6.4; Linux Standard Base 5.0, "Exception Frames".

use super::rule::{Cfa, Rule, SavedBp};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, Encoding, EndianSlice, LittleEndian, Operation, Register,
    RegisterRule, UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow, X86_64,
};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Scratch memory of the parser.
pub type Context = UnwindContext<usize>;

/// A module's unwind tables as they lie in memory.
pub struct Tables<'a> {
    /// Address of `.eh_frame_hdr`.
    pub header_at: u64,
    /// Its bytes.
    pub header: &'a [u8],
    /// The module's memory from an address on, for as far as it can be read.
    pub memory_from: &'a dyn Fn(u64) -> Option<&'a [u8]>,
}

/// The rule for the code at `address`: [`Rule::END`] where the tables say nothing that can be used, as libgcc has it.
pub fn rule_at(tables: &Tables<'_>, address: u64, context: &mut Context) -> Rule {
    look_up(tables, address, context).unwrap_or(Rule::END)
}

fn look_up(tables: &Tables<'_>, address: u64, context: &mut Context) -> Option<Rule> {
    let bases = BaseAddresses::default().set_eh_frame_hdr(tables.header_at);
    let header = EhFrameHdr::new(tables.header, LittleEndian).parse(&bases, 8).ok()?;
    let section_at = header.eh_frame_ptr().direct().ok()?;
    let bases = bases.set_eh_frame(section_at);
    let section = EhFrame::new((tables.memory_from)(section_at)?, LittleEndian);
    let table = header.table()?;
    let offset = table.pointer_to_offset(table.lookup(address, &bases).ok()?).ok()?;
    let entry = section.fde_from_offset(&bases, offset, EhFrame::cie_from_offset).ok()?;
    if !entry.contains(address) {
        return None;
    }
    if entry.is_signal_trampoline() {
        return Some(Rule::SIGNAL);
    }
    let encoding = entry.cie().encoding();
    let row = entry.unwind_info_for_address(&section, &bases, context, address).ok()?;
    reduce(row, &section, encoding)
}

fn reduce(row: &UnwindTableRow<usize>, section: &EhFrame<Slice<'_>>, encoding: Encoding) -> Option<Rule> {
    match row.register(X86_64::RA)? {
        RegisterRule::Offset(-8) => {}
        _ => return None,
    }
    let (cfa, cfa_offset) = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => (plain(*register)?, *offset),
        CfaRule::Expression(expression) => match address(expression, section, encoding)? {
            (Register(7), offset, true) => (Cfa::AtSp, offset),
            (Register(6), offset, true) => (Cfa::AtBp, offset),
            (register, offset, false) => (plain(register)?, offset),
            _ => return None,
        },
    };
    let (saved_bp, bp_offset) = match row.register(X86_64::RBP) {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => (SavedBp::Same, 0),
        Some(RegisterRule::Offset(offset)) => (SavedBp::AtCfa, offset),
        Some(RegisterRule::Expression(expression)) => match address(&expression, section, encoding) {
            Some((X86_64::RBP, offset, false)) => (SavedBp::AtBp, offset),
            Some((X86_64::RSP, offset, false)) => (SavedBp::AtSp, offset),
            _ => (SavedBp::Lost, 0),
        },
        Some(_) => (SavedBp::Lost, 0),
    };
    let cfa_offset = i32::try_from(cfa_offset).ok()?;
    let (saved_bp, bp_words) = match i16::try_from(bp_offset / 8) {
        Ok(words) if bp_offset % 8 == 0 => (saved_bp, words),
        _ => (SavedBp::Lost, 0),
    };
    Some(Rule { cfa_offset, bp_words, cfa, saved_bp })
}

fn plain(register: Register) -> Option<Cfa> {
    match register {
        X86_64::RSP => Some(Cfa::Sp),
        X86_64::RBP => Some(Cfa::Bp),
        _ => None,
    }
}

/// An expression of the form "register + offset", or the word that lies there (`true`): all that compilers emit
/// outside PLT stubs and signal trampolines.
fn address(
    expression: &UnwindExpression<usize>,
    section: &EhFrame<Slice<'_>>,
    encoding: Encoding,
) -> Option<(Register, i64, bool)> {
    let mut operations = expression.get(section).ok()?.operations(encoding);
    let Operation::RegisterOffset { register, offset, .. } = operations.next().ok()?? else { return None };
    let is_word = match operations.next().ok()? {
        None => return Some((register, offset, false)),
        Some(Operation::Deref { size: 8, space: false, .. }) => true,
        Some(_) => return None,
    };
    operations.next().ok()?.is_none().then_some((register, offset, is_word))
}
