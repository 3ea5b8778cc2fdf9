//! Sites of the door: what translated code does to get there, and what it comes back to.
//!
//! ```text
//!     mov fs:[scratch], rcx; mov rcx, fs:[door]; jrcxz cold
//!     (the mask;) the site; jmp the door
//!   hot:   mov rcx, fs:[scratch]; gs: the instruction; jmp next
//!   land:  mov rcx, fs:[scratch]; jmp next
//!   cold:  mov rcx, fs:[scratch]; the instruction
//!   next:
//! ```
//!
//! # Signal context
//! Runs in handlers, and uses the private heap.

use super::super::assembler::RCX;
use super::super::callout::{Site, What};
use super::super::door;
use super::super::slots::Slot;
use super::{Emitter, Piece};
use crate::redirect::redirect_decoded;
use iced_x86::Instruction;

/// A site whose addresses are not known yet.
pub struct Pending {
    site: Box<Site>,
    hot: Option<u32>,
    land: u32,
    cold: u32,
}

impl Pending {
    /// The site, for code that lies at `base`. It lives from here on.
    pub fn place(mut self, base: u64) {
        let at = |offset: u32| base + u64::from(offset);
        self.site.hot = self.hot.map_or(0, at);
        self.site.land = at(self.land);
        self.site.cold = at(self.cold);
        Box::leak(self.site);
    }
}

impl Emitter {
    /// An instruction that comes to the door.
    pub fn door(&mut self, site: Box<Site>, instruction: &Instruction, original: &[u8; 15]) -> Option<()> {
        let (ip, next) = (instruction.ip(), instruction.next_ip());
        let start = self.asm.here();
        self.asm.store(Slot::Scratch, RCX);
        let kept = self.asm.here();
        self.asm.load(RCX, Slot::Door);
        let shut = self.asm.jump_if_rcx_zero();
        if let What::Lanes { mask, count, .. } = site.what {
            self.asm.store_mask(door::MASK, mask, count > 16)?;
        }
        let address = &raw const *site as u64;
        self.asm.store_at_rcx(door::SITE, address as u32);
        self.asm.store_at_rcx(door::SITE + 4, (address >> 32) as u32);
        self.asm.jump_through_rcx(door::ENTRY);
        self.pieces.push(Piece {
            code: start..self.asm.here(),
            main: start,
            ip,
            scratch: RCX,
            spilled: kept..self.asm.here(),
            ..Piece::default()
        });
        let hot = match site.what {
            What::Call | What::String { .. } => None,
            _ => self.hot(ip, next, instruction, original),
        };
        let (land, back) = self.with_rcx(next, false, |this| Some(this.asm.jump()))?;
        let (cold, ()) = self.with_rcx(ip, false, |this| this.asm.instruction(instruction, original))?;
        self.asm.bind_short(shut, cold)?;
        let here = self.asm.here();
        self.asm.bind(back, here);
        if let Some((_, jump)) = hot {
            self.asm.bind(jump, here);
        }
        self.sites.push(Pending { site, hot: hot.map(|(at, _)| at), land, cold });
        Some(())
    }

    /// The instruction redirected, its accesses charged already: where it is, and where the jump behind it has its displacement.
    fn hot(
        &mut self,
        ip: u64,
        next: u64,
        instruction: &Instruction,
        original: &[u8; 15],
    ) -> Option<(u32, u32)> {
        let redirected = redirect_decoded(instruction, &original[..instruction.len()])?;
        let (hot, ()) = self.with_rcx(ip, true, |this| {
            this.asm.bytes(redirected.bytes());
            Some(())
        })?;
        let mut jump = 0;
        self.plain(next, |this| {
            jump = this.asm.jump();
            Some(())
        })?;
        Some((hot, jump))
    }

    /// Code that is come to with rcx in its slot: gives it back, and does `act`, before which the program's state is in place. `charged`: its accesses
    /// have been. Returns where it begins.
    fn with_rcx<R>(
        &mut self,
        ip: u64,
        charged: bool,
        act: impl FnOnce(&mut Self) -> Option<R>,
    ) -> Option<(u32, R)> {
        let start = self.asm.here();
        self.asm.load(RCX, Slot::Scratch);
        let main = self.asm.here();
        let result = act(self)?;
        let code = start..self.asm.here();
        let spilled = start..main;
        self.pieces.push(Piece { code, main, ip, scratch: RCX, spilled, charged, ..Piece::default() });
        Some((start, result))
    }
}
