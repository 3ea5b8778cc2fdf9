//! Accesses that the runtime itself makes to watched memory, by way of code that knows nothing of it: the loader's lists
//! that `dl_iterate_phdr` walks lie in the heap, for instance. They are let through, one instruction at a time, and not
//! charged.
//!
//! # Signal context
//! Everything here runs in handlers, possibly on top of another handler.

use crate::actions::bit;
use crate::frame::{Frame, TRAP_FLAG};
use crate::pku;
use crate::protect::{self, Method};
use thermalloc_alloc as alloc;

const MAX_OPENED: usize = 8;

/// An instruction of the runtime on its way.
#[derive(Default)]
pub struct Peek {
    running: Option<Saved>,
    opened: [usize; MAX_OPENED],
    count: usize,
}

#[derive(Clone, Copy)]
struct Saved {
    mask: u64,
    pkru: u32,
}

impl Peek {
    /// Lets the instruction run if it has faulted on watched memory; false if the fault is another.
    pub fn on_fault(&mut self, frame: &mut Frame) -> bool {
        let address = frame.info.address as usize;
        if !alloc::is_watched(address) || self.count == MAX_OPENED {
            return false;
        }
        if self.running.is_none() {
            let offset = pku::xsave_offset();
            let pkru = frame.pkru(offset).unwrap_or(0);
            self.running = Some(Saved { mask: frame.mask, pkru });
            if let Some(Method::Key(_)) = protect::method() {
                frame.set_pkru(offset, protect::opened_pkru(pkru));
            }
            // All but the faults and the trap of this very instruction wait.
            frame.mask = !(bit(libc::SIGTRAP) | bit(libc::SIGSEGV) | bit(libc::SIGBUS));
            frame.context.eflags |= TRAP_FLAG;
        }
        protect::open(address..address + 1);
        self.opened[self.count] = address;
        self.count += 1;
        true
    }

    /// The instruction has run; false if none was on its way.
    pub fn on_trap(&mut self, frame: &mut Frame) -> bool {
        let Some(saved) = self.running.take() else { return false };
        for &address in &self.opened[..self.count] {
            protect::close(address..address + 1);
        }
        self.count = 0;
        frame.mask = saved.mask;
        frame.context.eflags &= !TRAP_FLAG;
        if let Some(Method::Key(_)) = protect::method() {
            frame.set_pkru(pku::xsave_offset(), saved.pkru);
        }
        true
    }
}
