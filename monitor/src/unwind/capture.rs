//! The call stack of an allocation.
//!
//! # Signal context
//! Runs inside malloc, so possibly in a handler of the program, never in one of the monitor's. Addresses seen
//! before need no lock and no memory; a new one takes the locks described in [`modules`].

use super::modules;
use super::rule::{Registers, Rule};
use super::shared;
use super::stack::StackReader;

/// Registers of the function that called malloc, as they are once malloc has returned.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The return address.
    pub ip: u64,
    /// RSP after the return: the address above the return address.
    pub sp: u64,
    /// RBP.
    pub bp: u64,
}

const SLOTS: usize = 1024;

/// A thread asks the loader for news once in so many captures. In between, code that has replaced other code at the same
/// address may be unwound by the old code's rules. That leads to an address never seen before, as a rule, and so to
/// news and a second attempt; otherwise to a wrong stack, never to a crash.
const POLL_EVERY: u32 = 64;

/// Attempts at a stack while modules come and go.
const ATTEMPTS: u32 = 3;

#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    /// The address that `rule` belongs to; 0 is none.
    address: u64,
    rule: Rule,
}

/// What a thread remembers from one capture to the next: 16 KiB. All bytes zero is a valid new state, so it may lie
/// in fresh mapped memory.
#[repr(C)]
pub struct UnwindState {
    generation: u64,
    until_poll: u32,
    stack: StackReader,
    slots: [Slot; SLOTS],
}

impl Default for UnwindState {
    fn default() -> Self {
        Self::new()
    }
}

impl UnwindState {
    /// Remembers nothing.
    pub const fn new() -> Self {
        let empty = Slot { address: 0, rule: Rule::END };
        Self { generation: 0, until_poll: 0, stack: StackReader::new(), slots: [empty; SLOTS] }
    }

    /// Forgets what belongs to modules that may have gone.
    #[inline]
    fn synchronise(&mut self) {
        if self.until_poll == 0 {
            self.until_poll = POLL_EVERY;
            modules::try_poll();
        }
        self.until_poll -= 1;
        let generation = modules::generation();
        if self.generation != generation {
            self.generation = generation;
            self.forget();
        }
    }

    #[cold]
    fn forget(&mut self) {
        self.slots.fill(Slot { address: 0, rule: Rule::END });
    }
}

#[inline]
fn rule_for(slots: &mut [Slot; SLOTS], address: u64) -> Rule {
    let slot = &mut slots[shared::slot(address, SLOTS.trailing_zeros())];
    if slot.address != address {
        let Some(rule) = modules::rule_at(address) else { return Rule::END };
        *slot = Slot { address, rule };
    }
    slot.rule
}

/// Writes the call stack to `frames`, innermost first, and returns its length: the caller's return address, then
/// those of its callers, `depth` in all. Depth 0 is the caller alone, without unwinding, like depth 1. Where a
/// signal handler was called, the frame below is the interrupted instruction.
///
/// Stops early at the end of the stack, at code that cannot be unwound, at unreadable memory, and when `frames` is full.
#[inline]
pub fn capture(state: &mut UnwindState, caller: Caller, depth: usize, frames: &mut [u64]) -> usize {
    capture_with(state, caller, depth, frames, &mut |_| None)
}

/// [`capture`] for stacks that lie in memory that the thread cannot read as it is: `read` is asked first for each
/// word, and answers for the addresses that it knows.
#[inline]
pub fn capture_with(
    state: &mut UnwindState,
    caller: Caller,
    depth: usize,
    frames: &mut [u64],
    read: &mut impl FnMut(u64) -> Option<u64>,
) -> usize {
    let wanted = depth.max(1).min(frames.len());
    if wanted == 0 {
        return 0;
    }
    frames[0] = caller.ip;
    if wanted == 1 {
        return 1;
    }
    let mut len = 0;
    for _ in 0..ATTEMPTS {
        state.synchronise();
        len = walk(state, caller, &mut frames[..wanted], read);
        if state.generation == modules::generation() {
            break;
        }
    }
    len
}

/// Fills `frames`, which is not empty.
#[inline]
fn walk(
    state: &mut UnwindState,
    caller: Caller,
    frames: &mut [u64],
    read: &mut impl FnMut(u64) -> Option<u64>,
) -> usize {
    let UnwindState { stack, slots, .. } = state;
    stack.begin(caller.sp);
    let mut read = |address| read(address).or_else(|| stack.read(address));
    let mut at = Registers { ip: caller.ip, sp: caller.sp, bp: caller.bp };
    // A return address may be the first byte of the next function; the call is in the one before.
    let mut is_return = true;
    let mut len = 1;
    while len < frames.len() {
        let rule = rule_for(slots, at.ip.wrapping_sub(u64::from(is_return)));
        let Some(next) = rule.step(at, &mut read) else { break };
        if next.ip == 0 || (rule == Rule::FRAME_POINTER && !modules::is_code(next.ip)) {
            break;
        }
        is_return = !rule.is_signal();
        frames[len] = next.ip;
        len += 1;
        at = next;
    }
    len
}
