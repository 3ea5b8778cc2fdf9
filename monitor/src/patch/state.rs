//! What has been translated and patched.
//!
//! # Safety
//! Writes code: jumps into translations, and translations into the zones.
//!
//! # Signal context
//! Under the lock of the parent module, in handlers.
#![allow(unsafe_code)]

use super::emit::{self, Piece, Rules, Wrap};
use super::region::{self, MAX_LEN, Source};
use super::settle::{register, restore, take_back_push};
use super::window::{JUMP, OPCODE, Window, traps};
use super::zone::Zone;
use super::{Place, Refused, Step};
use crate::charged::Charged;
use crate::clock;
use crate::code;
use crate::control;
use crate::emulate;
use crate::frame::Frame;
use crate::heat;
use crate::memory;
use crate::rewrite;
use crate::thread::Thread;
use crate::totals::TOTALS;
use core::sync::atomic::Ordering;
use iced_x86::InstructionInfoFactory;
use std::collections::BTreeMap;
use std::ops::Range;

/// Traps of a window after which it is changed.
const OFTEN: u32 = 8;

/// Bytes of a body at most.
const LARGEST_BODY: usize = 64 << 10;

/// Bytes of code for one zone at most: the less, the more of the zone's span is in reach of all of it.
const LARGEST_CODE: u64 = 8 << 20;

/// Bytes in reach that make it worth to share a zone.
const LEAST_SHARED: u64 = 8 << 20;

/// Bytes that a direct jump may go.
const FARTHEST: u64 = (1 << 31) - (1 << 20);

/// A body in its place.
struct Placed {
    len: u32,
    pieces: Vec<Piece>,
    wraps: Vec<Wrap>,
}

/// A patched site.
struct Patch {
    original: [u8; JUMP],
    /// How often something came to a covered instruction.
    traps: u32,
}

/// A site that is not patched.
struct Refusal {
    why: &'static str,
    faults: u64,
}

/// Everything.
pub struct State {
    rules: Rules,
    factory: InstructionInfoFactory,
    zones: Vec<Zone>,
    /// Original addresses and their translations.
    translations: BTreeMap<u64, u64>,
    bodies: BTreeMap<u64, Placed>,
    /// Stubs and the sites that they belong to.
    stubs: BTreeMap<u64, u64>,
    patches: BTreeMap<u64, Patch>,
    refused: BTreeMap<u64, Refusal>,
}

/// Code as it was before any patch.
struct Original<'a> {
    code: Range<u64>,
    patches: &'a BTreeMap<u64, Patch>,
    translations: &'a BTreeMap<u64, u64>,
    calls: bool,
}

impl Source for Original<'_> {
    fn read(&self, ip: u64, bytes: &mut [u8; MAX_LEN]) -> usize {
        if !self.code.contains(&ip) {
            return 0;
        }
        let len = (self.code.end - ip).min(MAX_LEN as u64) as usize;
        // SAFETY: code of a loaded file, which stays mapped while it runs.
        unsafe { core::ptr::copy_nonoverlapping(ip as *const u8, bytes.as_mut_ptr(), len) };
        for (&site, patch) in self.patches.range(ip.saturating_sub(JUMP as u64)..ip + len as u64) {
            for (at, &byte) in (site..).zip(&patch.original) {
                if let Some(into) =
                    at.checked_sub(ip).and_then(|offset| bytes[..len].get_mut(offset as usize))
                {
                    *into = byte;
                }
            }
        }
        len
    }

    fn is_translated(&self, ip: u64) -> bool {
        self.translations.contains_key(&ip)
    }

    fn takes_calls(&self) -> bool {
        self.calls
    }
}

impl State {
    /// Nothing yet.
    pub fn new(loads: bool) -> Self {
        let low = rewrite::executable_mappings().iter().any(|mapping| mapping.start < 1 << 32);
        Self {
            rules: Rules { loads, low },
            factory: InstructionInfoFactory::new(),
            zones: Vec::new(),
            translations: BTreeMap::new(),
            bodies: BTreeMap::new(),
            stubs: BTreeMap::new(),
            patches: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }

    /// The translation of the instruction at `ip`, which is patched to lead there.
    pub fn enter(&mut self, ip: u64) -> Option<u64> {
        if self.patches.contains_key(&ip) {
            // Another thread has patched it since. Its bytes may be another patch's, too, by now.
            return self.translations.get(&ip).copied();
        }
        if let Some(refusal) = self.refused.get_mut(&ip) {
            refusal.faults += 1;
            return self.translations.get(&ip).copied();
        }
        match self.patch(ip) {
            Ok(translation) => {
                TOTALS.patched_sites.fetch_add(1, Ordering::Relaxed);
                Some(translation)
            }
            Err(why) => {
                self.refused.insert(ip, Refusal { why, faults: 1 });
                self.translations.get(&ip).copied()
            }
        }
    }

    fn patch(&mut self, ip: u64) -> Result<u64, &'static str> {
        let zone = self.zone_of(ip).ok_or("its module is unknown")?;
        if self.overlapped(ip) {
            return Err("it lies in the window of another patch");
        }
        if let Some(back) = self.return_in_window(zone, ip).filter(|back| !self.patches.contains_key(back)) {
            // Each return would trap: the code there gets a jump of its own, in whose bytes this one ends.
            self.patch(back)?;
        }
        let next = self.patches.range(ip + 1..ip + JUMP as u64).next().map(|(&site, _)| site);
        let mut starts = self.window(zone, ip)?;
        if let Some(next) = next {
            starts.retain(|&start| start < next);
        }
        if starts.iter().any(|start| !self.translations.contains_key(start)) {
            let end = next.unwrap_or(ip + JUMP as u64);
            self.translate(zone, ip, end)?;
        }
        if starts[1..].iter().any(|start| !self.translations.contains_key(start)) {
            return Err("an instruction behind it cannot be moved");
        }
        let translation = *self.translations.get(&ip).ok_or("it could not be translated")?;
        let window = Window::new(ip, starts);
        let jump = match next {
            Some(next) => self.before(zone, window, ip, next, translation)?,
            None => match window.jump(translation) {
                Some(jump) => jump,
                None => self.by_stub(zone, &window, ip, translation)?,
            },
        };
        self.write(zone, ip, jump)?;
        Ok(translation)
    }

    /// The jump of a site whose window reaches into the patch at `next`: its last bytes are that one's first.
    fn before(
        &mut self,
        zone: usize,
        mut window: Window,
        ip: u64,
        next: u64,
        translation: u64,
    ) -> Result<[u8; JUMP], &'static str> {
        const WHY: &str = "another patch overlaps";
        let reach = (next - ip) as usize;
        window = window.with(reach - 1, OPCODE);
        if reach == 4 {
            let far = self.far_zone(zone).ok_or(WHY)?;
            return self.by_stub(far, &window, ip, translation);
        }
        if reach < 2 {
            return Err(WHY);
        }
        // The other's displacement holds this one's top byte: it gets another stub.
        let top = self.zones[zone].top(ip);
        let byte = 3 - reach;
        let starts = self.window(zone, next)?;
        let other = Window::new(next, starts).with(byte, top);
        let target = *self.translations.get(&next).ok_or(WHY)?;
        let jump = self.by_stub(zone, &other, next, target).map_err(|_| WHY)?;
        replace(next, &jump).map_err(|_| WHY)?;
        for byte in reach..4 {
            window = window.with(byte, jump[byte + 1 - reach]);
        }
        self.by_stub(zone, &window, ip, translation).map_err(|_| WHY)
    }

    /// Whether an address lies in the window of a patch before it.
    fn overlapped(&self, ip: u64) -> bool {
        self.patches.range(ip.saturating_sub(JUMP as u64 - 1)..ip).next().is_some()
    }

    fn zone_of(&self, ip: u64) -> Option<usize> {
        self.zones.iter().position(|zone| zone.code_at(ip).is_some())
    }

    /// The zone for jumps whose top byte is a jump's first, made when first needed.
    fn far_zone(&mut self, zone: usize) -> Option<usize> {
        if let Some(far) = self.zones[zone].far {
            return Some(far);
        }
        let mut far = Zone::with_top(self.zones[zone].codes.first()?, OPCODE)?;
        far.codes.clear();
        self.zones.push(far);
        self.zones[zone].far = Some(self.zones.len() - 1);
        self.zones[zone].far
    }

    /// Something comes to a covered instruction again and again: it gets a patch of its own, and the one that covers it, another
    /// shape.
    fn split(&mut self, site: u64, at: u64) {
        // Its first bytes may be the last of another's jump.
        if self.overlapped(site) {
            return;
        }
        let Some(patch) = self.patches.remove(&site) else { return };
        if replace(site, &patch.original).is_err() {
            return;
        }
        for ip in [at, site] {
            if let Err(why) = self.patch(ip) {
                self.refuse(ip, why);
            }
        }
    }

    fn refuse(&mut self, ip: u64, why: &'static str) {
        self.refused.insert(ip, Refusal { why, faults: 0 });
    }

    /// Whether it is known what module an address is code of, or that it is none's.
    pub fn knows(&self, ip: u64) -> bool {
        self.zone_of(ip).is_some() || self.refused.contains_key(&ip)
    }

    /// Makes a zone for the module that an address is code of, one of the files mapped executable at `mappings`.
    pub fn add_zone(&mut self, ip: u64, mappings: &[Range<usize>]) {
        let code = match Self::code_for_zone(ip, mappings) {
            Ok(code) => code,
            Err(why) => return self.refuse(ip, why),
        };
        if let Some(zone) = Zone::new(code.clone()) {
            return self.zones.push(zone);
        }
        // Its neighbours have taken what there is: it shares.
        match self.zones.iter_mut().max_by_key(|zone| zone.reach(&code)) {
            Some(zone) if zone.reach(&code) >= LEAST_SHARED => zone.codes.push(code),
            _ => self.refuse(ip, "no room near its module"),
        }
    }

    /// The code that is to have a zone together with what is at `ip`.
    fn code_for_zone(ip: u64, mappings: &[Range<usize>]) -> Result<Range<u64>, &'static str> {
        let own = replace as *const () as usize;
        let mut mappings = mappings.iter();
        let code = mappings.find(|mapping| mapping.contains(&(ip as usize))).ok_or("it is no file's code")?;
        if code.contains(&own) {
            return Err("it is the runtime's own");
        }
        let part = ip / LARGEST_CODE * LARGEST_CODE;
        Ok(part.max(code.start as u64)..(part + LARGEST_CODE).min(code.end as u64))
    }

    fn source(&self, zone: usize, ip: u64) -> Original<'_> {
        Original {
            code: self.zones[zone].code_at(ip).cloned().unwrap_or(0..0),
            patches: &self.patches,
            translations: &self.translations,
            calls: control::dispatches(),
        }
    }

    /// Where the instructions begin that a jump at `ip` overwrites.
    fn window(&self, zone: usize, ip: u64) -> Result<Vec<u64>, &'static str> {
        let instructions = self.line(zone, ip);
        let is_whole = instructions.last().is_some_and(|last| last.next_ip() >= ip + JUMP as u64);
        let starts = instructions.iter().map(iced_x86::Instruction::ip).collect();
        if is_whole { Ok(starts) } else { Err("what follows it is no code") }
    }

    /// The instructions from `ip` on that a jump overwrites, as far as they are instructions.
    fn line(&self, zone: usize, ip: u64) -> Vec<iced_x86::Instruction> {
        let source = self.source(zone, ip);
        let mut line = Vec::with_capacity(JUMP);
        let mut at = ip;
        while at < ip + JUMP as u64 {
            let mut bytes = [0; MAX_LEN];
            let len = source.read(at, &mut bytes);
            let mut decoder =
                iced_x86::Decoder::with_ip(64, &bytes[..len], at, iced_x86::DecoderOptions::NONE);
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                break;
            }
            at = instruction.next_ip();
            line.push(instruction);
        }
        line
    }

    /// Where a call returns to, if that is in the window of a jump at `ip`.
    fn return_in_window(&self, zone: usize, ip: u64) -> Option<u64> {
        use iced_x86::FlowControl::{Call, IndirectCall};
        let line = self.line(zone, ip);
        let call = line.iter().find(|instruction| {
            matches!(instruction.flow_control(), Call | IndirectCall)
                && instruction.mnemonic() != iced_x86::Mnemonic::Syscall
        })?;
        Some(call.next_ip()).filter(|back| *back < ip + JUMP as u64)
    }

    fn translate(&mut self, zone: usize, ip: u64, end: u64) -> Result<(), &'static str> {
        let source = self.source(zone, ip);
        let items = region::build(&source, ip, end).ok_or("what follows it cannot be moved")?;
        let base = self.zones[zone].next();
        let mut factory = core::mem::replace(&mut self.factory, InstructionInfoFactory::new());
        let source = self.source(zone, ip);
        let body = emit::emit(&items, base, self.rules, &source, &mut factory, |ip| {
            // Another part of the module may have its zone further away than a jump goes.
            self.translations.get(&ip).copied().filter(|at| at.abs_diff(base) < FARTHEST)
        });
        self.factory = factory;
        let body = body.ok_or("it could not be translated")?;
        if body.code.len() > LARGEST_BODY || !self.zones[zone].has_room(body.code.len()) {
            return Err("the code cache is full");
        }
        // SAFETY: room of the zone that nobody uses yet.
        unsafe { code::write(base as usize, &body.code) }.map_err(|_| "code cannot be written")?;
        self.zones[zone].take(body.code.len());
        for (original, offset) in body.entries {
            self.translations.entry(original).or_insert(base + u64::from(offset));
        }
        let placed = Placed { len: body.code.len() as u32, pieces: body.pieces, wraps: body.wraps };
        self.bodies.insert(base, placed);
        Ok(())
    }

    /// A jump to a jump, where the window does not let the first go all the way.
    fn by_stub(
        &mut self,
        zone: usize,
        window: &Window,
        ip: u64,
        translation: u64,
    ) -> Result<[u8; JUMP], &'static str> {
        let stub = self.zones[zone].stub(window).ok_or("no target fits its window")?;
        let hop = Window::new(stub, []).jump(translation).ok_or("no target fits its window")?;
        // SAFETY: room of the zone that nobody uses yet.
        unsafe { code::write(stub as usize, &hop) }.map_err(|_| "code cannot be written")?;
        self.stubs.insert(stub, ip);
        window.jump(stub).ok_or("no target fits its window")
    }

    /// Replaces code by a jump, such that no thread ever executes half of it.
    fn write(&mut self, zone: usize, site: u64, jump: [u8; JUMP]) -> Result<(), &'static str> {
        let mut bytes = [0; MAX_LEN];
        self.source(zone, site).read(site, &mut bytes);
        let mut original = [0; JUMP];
        original.copy_from_slice(&bytes[..JUMP]);
        // First of all, so that whoever meets the trap is sent on.
        self.patches.insert(site, Patch { original, traps: 0 });
        replace(site, &jump).map_err(|_| {
            self.patches.remove(&site);
            "code cannot be written"
        })
    }

    /// See the parent module.
    pub fn on_trap(&mut self, frame: &mut Frame, at: u64) -> bool {
        if let Some((base, wrap)) = self.wrap_at(at) {
            let counter = register(&frame.context, wrap.cell) as usize + usize::from(wrap.offset);
            heat::on_wrap(counter, clock::now());
            frame.context.rip = base + u64::from(wrap.resume);
            return true;
        }
        let covering = self.patches.range_mut(..=at).next_back();
        let Some((&site, patch)) = covering.filter(|&(&site, _)| at < site + JUMP as u64) else {
            return self.has_changed(frame, at);
        };
        patch.traps += 1;
        let is_often = patch.traps == OFTEN;
        let Some(&translation) = self.translations.get(&at) else { return false };
        frame.context.rip = translation;
        if is_often && at != site {
            self.split(site, at);
        }
        true
    }

    /// Whether a breakpoint was in a window that another thread has changed since: then what stands there now is to be executed. A general
    /// protection fault tells nothing: an instruction with a wild operand raises it too.
    fn has_changed(&self, frame: &mut Frame, at: u64) -> bool {
        let mut byte = [0u8];
        let is_ours = frame.info.signo == libc::SIGTRAP && self.zone_of(at).is_some();
        if is_ours && memory::read(at as usize, &mut byte) && !traps(byte[0]) {
            frame.context.rip = at;
            return true;
        }
        false
    }

    fn wrap_at(&self, at: u64) -> Option<(u64, Wrap)> {
        let (&base, body) = self.bodies.range(..=at).next_back()?;
        let wrap = body.wraps.iter().find(|wrap| base + u64::from(wrap.at) == at)?;
        Some((base, *wrap))
    }

    /// See the parent module.
    pub fn original(&self, ip: u64) -> Option<[u8; MAX_LEN]> {
        let zone = self.zone_of(ip)?;
        let mut bytes = [0; MAX_LEN];
        self.source(zone, ip).read(ip, &mut bytes);
        Some(bytes)
    }

    /// Where the instruction at an address is to run, if a patch covers it.
    pub fn ahead(&self, ip: u64) -> Option<u64> {
        let (&site, _) = self.patches.range(..ip).next_back()?;
        self.translations.get(&ip).copied().filter(|_| ip < site + JUMP as u64)
    }

    /// A copy of an instruction has faulted: it has no counter.
    pub fn note(&mut self, rip: u64) {
        let Some(ip) = self.piece(rip).map(|(piece, _)| piece.ip) else { return };
        let uncounted = || Refusal { why: "its accesses have no inline counter", faults: 0 };
        self.refused.entry(ip).or_insert_with(uncounted).faults += 1;
    }

    /// A count has faulted whose cell does not exist: the operand is not the heap's, but lies below it. Goes on at the cold side. False
    /// if this was something else.
    pub fn go_cold(&self, frame: &mut Frame) -> bool {
        let rip = frame.context.rip;
        let Some((piece, offset)) = self.piece(rip).filter(|_| self.is_ours(rip)) else { return false };
        let counting = piece.bumps[0].is_some() && offset < piece.main && piece.cold != 0;
        // Nothing has been counted yet: the first count is what faults.
        if !counting || piece.bumps.iter().flatten().any(|(done, _)| *done <= offset) {
            return false;
        }
        frame.context.rip = rip - u64::from(offset) + u64::from(piece.cold);
        true
    }

    /// See the parent module.
    pub fn place(&self, rip: u64) -> Place {
        if !self.is_ours(rip) || self.stubs.contains_key(&rip) {
            return Place::Outside;
        }
        match self.piece(rip) {
            Some((piece, offset)) if offset == piece.main => Place::Copy,
            Some(_) => Place::Between,
            None => Place::Outside,
        }
    }

    /// See the parent module.
    pub fn step_at(&self, rip: u64) -> Step {
        if !self.is_ours(rip) {
            return Step::Outside;
        }
        match self.piece(rip) {
            Some((piece, offset)) if offset == piece.code.start && !self.stubs.contains_key(&rip) => {
                Step::At(piece.ip)
            }
            _ => Step::Inside,
        }
    }

    fn is_ours(&self, rip: u64) -> bool {
        self.zones.iter().any(|zone| zone.range.contains(&rip))
    }

    /// The piece that an address lies in, and the offset in its body.
    fn piece(&self, rip: u64) -> Option<(&Piece, u32)> {
        let (&base, body) = self.bodies.range(..=rip).next_back()?;
        let mut offset = u32::try_from(rip - base).ok().filter(|&offset| offset < body.len)?;
        if let Some(wrap) = body.wraps.iter().find(|wrap| wrap.at == offset) {
            offset = wrap.resume;
        }
        let at = body.pieces.partition_point(|piece| piece.code.end <= offset);
        let piece = body.pieces.get(at).filter(|piece| piece.code.contains(&offset))?;
        Some((piece, offset))
    }

    /// See the parent module.
    pub fn settle(&mut self, thread: &Thread, frame: &mut Frame, callout: &mut Charged) {
        let ordinal = thread.ordinal.load(Ordering::Relaxed);
        let rip = frame.context.rip;
        if !self.is_ours(rip) {
            return;
        }
        if let Some(&site) = self.stubs.get(&rip) {
            frame.context.rip = site;
        } else if let Some((piece, offset)) = self.piece(rip) {
            if piece.pushed.contains(&offset) {
                take_back_push(frame.context.rsp, ordinal);
            }
            if piece.charged && offset <= piece.main {
                callout.take_back(ordinal, thread.sheet());
            }
            restore(piece, offset, &mut frame.context);
            emulate::in_program_view(&mut frame.info, rip, frame.context.rip);
        }
    }

    /// Restores the original code of patches in a range, and forgets what was translated from it.
    pub fn forget(&mut self, range: Range<u64>) {
        let overlaps = |code: &Range<u64>| code.start < range.end && range.start < code.end;
        if !self.zones.iter().flat_map(|zone| &zone.codes).any(overlaps) {
            return;
        }
        let sites: Vec<u64> = self.patches.range(range.clone()).map(|(site, _)| *site).collect();
        for site in sites {
            if let Some(patch) = self.patches.remove(&site) {
                let _ = replace(site, &patch.original);
            }
        }
        self.refused.retain(|ip, _| !range.contains(ip));
        self.translations.retain(|ip, _| !range.contains(ip));
        let stays = |code: &Range<u64>| code.start < range.start || range.end < code.end;
        self.zones.iter_mut().for_each(|zone| zone.codes.retain(stays));
    }

    /// See the parent module.
    pub fn refused(&self) -> Vec<Refused> {
        let read = |ip: u64| {
            let mut bytes = [0; MAX_LEN];
            let zone = self.zone_of(ip);
            let len = zone.map_or(0, |zone| self.source(zone, ip).read(ip, &mut bytes));
            bytes[..len].to_vec()
        };
        let refused = |(&ip, refusal): (&u64, &Refusal)| Refused {
            ip,
            code: read(ip),
            why: refusal.why,
            faults: refusal.faults,
        };
        self.refused.iter().map(refused).collect()
    }
}

/// A trap first, then what follows it, then the first byte.
fn replace(site: u64, bytes: &[u8; JUMP]) -> Result<(), thermalloc_sys::mem::Errno> {
    let site = site as usize;
    // SAFETY: code of a loaded file, whose instructions have translations.
    unsafe {
        if !code::is_shared() {
            return code::write(site, bytes);
        }
        code::write(site, &[0xcc])?;
        code::synchronize();
        code::write(site + 1, &bytes[1..])?;
        code::synchronize();
        code::write(site, &bytes[..1])?;
        code::synchronize();
    }
    Ok(())
}
