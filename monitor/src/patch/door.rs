//! The door: from translated code into the runtime and back, with no signal. System calls take it, and instructions whose
//! accesses no counter beside them can tell.
//!
//! Translated code notes its [`Site`] in the thread's [`Door`] and jumps to `thermalloc_door`, with rcx in its slot. The assembly keeps the
//! program's registers in the door, changes to the runtime's stack, and calls [`act`](callout::act), which says where to go on. A system call
//! is then made in the gate, with the program's registers, and comes back by `thermalloc_door_back`.
//!
//! From `thermalloc_door_busy` on the thread is in the runtime, so signals wait. Where one arrives elsewhere, [`roll`] makes its frame as if the
//! thread had not come this far yet, or had gone already. Signals that have waited are let in by a trap at `thermalloc_door_release`,
//! where all registers are the program's.
//!
//! # Safety
//! The assembly keeps every register; the door is the thread's own.
//!
//! # Signal context
//! [`roll`] and [`release`] are for handlers; the rest runs with signals waiting.
#![allow(unsafe_code)]

use super::callout::{self, Site};
use super::slots::{self, Slot};
use crate::frame::{Frame, TRAP_FLAG};
use crate::thread::Thread;
use core::arch::global_asm;
use core::cell::Cell;
use core::mem::offset_of;

/// Components of the extended state that code of the runtime may change: SSE, AVX and AVX-512.
const COMPONENTS: u32 = 0xe6;
/// Bytes of the standard xsave area up to the last of them.
const EXTENDED: usize = 2688;

/// What a thread leaves at the door.
#[repr(C, align(64))]
pub struct Door {
    extended: Cell<[u8; EXTENDED]>,
    vectors: Cell<[u128; 16]>,
    /// The program's general registers, by number; rcx is in [`Slot::Scratch`].
    gpr: Cell<[u64; 16]>,
    flags: Cell<u64>,
    /// Where the thread is to go on.
    exit: Cell<u64>,
    /// Who has come.
    site: Cell<*const Site>,
    /// An opmask register that the site has kept.
    mask: Cell<u64>,
    /// Where translated code jumps to.
    entry: Cell<u64>,
    /// Top of the runtime's stack.
    stack: Cell<u64>,
    /// Where the program goes on after [`release`].
    target: Cell<u64>,
}

const RCX: usize = 1;
const RBX: usize = 3;
const RSP: usize = 4;
const R11: usize = 11;

/// Offset of a field of the door in the thread's block.
const fn at(field: usize) -> usize {
    Thread::DOOR + field
}

/// Offset of [`Door`]'s kept register in the thread's block.
const fn gpr(number: usize) -> usize {
    at(offset_of!(Door, gpr)) + 8 * number
}

/// Where translated code finds its words of the door, as offsets from the thread's block.
pub const SITE: i32 = at(offset_of!(Door, site)) as i32;
/// See [`SITE`].
pub const ENTRY: i32 = at(offset_of!(Door, entry)) as i32;
/// See [`SITE`].
pub const MASK: i32 = at(offset_of!(Door, mask)) as i32;

global_asm!(
    ".pushsection .text.thermalloc_door,\"ax\",@progbits",
    ".macro thermalloc_label name",
    ".globl \\name",
    ".hidden \\name",
    "\\name:",
    ".endm",
    "thermalloc_label thermalloc_door_back",
    // A system call has returned: rcx and r11 are free.
    "mov rcx, qword ptr [rip + thermalloc_patch_slots@GOTTPOFF]",
    "mov rcx, fs:[rcx + {thread}]",
    "thermalloc_label thermalloc_door",
    "mov [rcx + {gpr} + 0*8], rax",
    "mov [rcx + {gpr} + 2*8], rdx",
    "mov [rcx + {gpr} + 3*8], rbx",
    "mov [rcx + {gpr} + 4*8], rsp",
    "mov [rcx + {gpr} + 5*8], rbp",
    "mov [rcx + {gpr} + 6*8], rsi",
    "mov [rcx + {gpr} + 7*8], rdi",
    "mov [rcx + {gpr} + 8*8], r8",
    "mov [rcx + {gpr} + 9*8], r9",
    "mov [rcx + {gpr} + 10*8], r10",
    "mov [rcx + {gpr} + 11*8], r11",
    "mov [rcx + {gpr} + 12*8], r12",
    "mov [rcx + {gpr} + 13*8], r13",
    "mov [rcx + {gpr} + 14*8], r14",
    "mov [rcx + {gpr} + 15*8], r15",
    "mov byte ptr [rcx + {waiting}], 0",
    "thermalloc_label thermalloc_door_kept",
    "mov rbx, rcx",
    "mov rsp, [rbx + {stack}]",
    "pushfq",
    "pop qword ptr [rbx + {flags}]",
    "mov dword ptr [rbx + {depth}], 1",
    "thermalloc_label thermalloc_door_busy",
    "cld",
    "lea rdi, [rbx + {vectors}]",
    "mov rax, [rbx + {site}]",
    "cmp byte ptr [rax + {whole}], 0",
    "jne 1f",
    "movaps [rdi], xmm0",
    "movaps [rdi + 16], xmm1",
    "movaps [rdi + 32], xmm2",
    "movaps [rdi + 48], xmm3",
    "movaps [rdi + 64], xmm4",
    "movaps [rdi + 80], xmm5",
    "movaps [rdi + 96], xmm6",
    "movaps [rdi + 112], xmm7",
    "movaps [rdi + 128], xmm8",
    "movaps [rdi + 144], xmm9",
    "movaps [rdi + 160], xmm10",
    "movaps [rdi + 176], xmm11",
    "movaps [rdi + 192], xmm12",
    "movaps [rdi + 208], xmm13",
    "movaps [rdi + 224], xmm14",
    "movaps [rdi + 240], xmm15",
    "jmp 2f",
    "1:",
    "mov eax, {components}",
    "xor edx, edx",
    "xsave64 [rbx + {extended}]",
    "2:",
    "mov rdi, rbx",
    "call {act}",
    "3:",
    "lea rdi, [rbx + {vectors}]",
    "mov rax, [rbx + {site}]",
    "cmp byte ptr [rax + {whole}], 0",
    "jne 4f",
    "movaps xmm0, [rdi]",
    "movaps xmm1, [rdi + 16]",
    "movaps xmm2, [rdi + 32]",
    "movaps xmm3, [rdi + 48]",
    "movaps xmm4, [rdi + 64]",
    "movaps xmm5, [rdi + 80]",
    "movaps xmm6, [rdi + 96]",
    "movaps xmm7, [rdi + 112]",
    "movaps xmm8, [rdi + 128]",
    "movaps xmm9, [rdi + 144]",
    "movaps xmm10, [rdi + 160]",
    "movaps xmm11, [rdi + 176]",
    "movaps xmm12, [rdi + 192]",
    "movaps xmm13, [rdi + 208]",
    "movaps xmm14, [rdi + 224]",
    "movaps xmm15, [rdi + 240]",
    "jmp thermalloc_door_leaving",
    "4:",
    "mov eax, {components}",
    "xor edx, edx",
    "xrstor64 [rbx + {extended}]",
    "thermalloc_label thermalloc_door_leaving",
    "cmp byte ptr [rbx + {waiting}], 0",
    "jne 5f",
    "push qword ptr [rbx + {flags}]",
    "popfq",
    "mov rax, [rbx + {gpr} + 0*8]",
    "mov rdx, [rbx + {gpr} + 2*8]",
    "mov rsp, [rbx + {gpr} + 4*8]",
    "mov rbp, [rbx + {gpr} + 5*8]",
    "mov rsi, [rbx + {gpr} + 6*8]",
    "mov rdi, [rbx + {gpr} + 7*8]",
    "mov r8, [rbx + {gpr} + 8*8]",
    "mov r9, [rbx + {gpr} + 9*8]",
    "mov r10, [rbx + {gpr} + 10*8]",
    "mov r11, [rbx + {gpr} + 11*8]",
    "mov r12, [rbx + {gpr} + 12*8]",
    "mov r13, [rbx + {gpr} + 13*8]",
    "mov r14, [rbx + {gpr} + 14*8]",
    "mov r15, [rbx + {gpr} + 15*8]",
    "mov rcx, rbx",
    "mov rbx, [rcx + {gpr} + 3*8]",
    "mov dword ptr [rcx + {depth}], 0",
    "jmp qword ptr [rcx + {exit}]",
    "thermalloc_label thermalloc_door_left",
    "int3",
    "5:",
    "mov rdi, rbx",
    "call {retreat}",
    "jmp 3b",
    "thermalloc_label thermalloc_door_release",
    "int3",
    "int3",
    ".popsection",
    thread = const Slot::Thread as i32,
    gpr = const gpr(0),
    stack = const at(offset_of!(Door, stack)),
    flags = const at(offset_of!(Door, flags)),
    vectors = const at(offset_of!(Door, vectors)),
    extended = const at(offset_of!(Door, extended)),
    site = const at(offset_of!(Door, site)),
    whole = const offset_of!(Site, whole),
    exit = const at(offset_of!(Door, exit)),
    waiting = const Thread::WAITING,
    depth = const Thread::DEPTH,
    components = const COMPONENTS,
    act = sym act,
    retreat = sym retreat,
);

unsafe extern "C" {
    static thermalloc_door: u8;
    static thermalloc_door_back: u8;
    static thermalloc_door_kept: u8;
    static thermalloc_door_busy: u8;
    static thermalloc_door_leaving: u8;
    static thermalloc_door_left: u8;
    static thermalloc_door_release: u8;
}

/// Where a returned system call goes.
pub fn back() -> u64 {
    &raw const thermalloc_door_back as u64
}

impl Door {
    /// For a thread that begins to run translated code.
    pub fn open(&self, stack: u64) {
        self.entry.set(&raw const thermalloc_door as u64);
        self.stack.set(stack);
    }

    /// One of the program's registers, by number.
    pub fn register(&self, number: usize) -> u64 {
        if number == RCX {
            return slots::get(Slot::Scratch);
        }
        // SAFETY: a word of the array, which nobody writes while the thread is in the runtime.
        unsafe { self.gpr.as_ptr().cast::<u64>().add(number & 15).read() }
    }

    /// The program's registers, by number.
    pub fn registers(&self) -> [u64; 16] {
        let mut registers = self.gpr.get();
        registers[RCX] = slots::get(Slot::Scratch);
        registers
    }

    /// Sets the program's registers.
    pub fn set_registers(&self, registers: [u64; 16]) {
        slots::set(Slot::Scratch, registers[RCX]);
        self.gpr.set(registers);
    }

    /// Sets what a system call leaves behind beside its result: the return address in rcx, the flags in r11.
    pub fn set_clobbered(&self, returns_to: u64) {
        slots::set(Slot::Scratch, returns_to);
        let mut registers = self.gpr.get();
        registers[R11] = self.flags.get();
        self.gpr.set(registers);
    }

    /// The program's flags.
    pub fn flags(&self) -> u64 {
        self.flags.get()
    }

    /// The opmask register that the site has kept.
    pub fn mask(&self) -> u64 {
        self.mask.get()
    }

    /// The extended state in xsave's standard format, if all of it has been kept.
    pub fn extended(&self) -> Option<&[u8]> {
        // SAFETY: bytes that nobody writes while the thread is in the runtime.
        self.site()?.whole.then(|| unsafe { &*self.extended.as_ptr() }.as_slice())
    }

    /// Who has come.
    pub fn site(&self) -> Option<&'static Site> {
        // SAFETY: translated code names sites, which live as long as it.
        unsafe { self.site.get().as_ref() }
    }

    /// Where the thread goes on.
    pub fn leave_to(&self, exit: u64) {
        self.exit.set(exit);
    }
}

/// Called by the assembly, signals waiting.
unsafe extern "C" fn act(thread: &'static Thread) {
    thread.allow_calls();
    super::count(false);
    callout::act(thread);
    thread.catch_calls();
}

/// Signals wait: the thread leaves by way of [`release`].
extern "C" fn retreat(thread: &Thread) {
    let door = thread.door();
    thread.stop_waiting();
    let release = &raw const thermalloc_door_release as u64;
    if door.exit.get() != release {
        door.target.set(callout::retreat(thread, door.exit.get()));
        door.exit.set(release);
    }
}

/// Whether an address is the door's.
fn contains(rip: u64) -> bool {
    (back()..=&raw const thermalloc_door_release as u64 + 1).contains(&rip)
}

/// A thread that the program steps one by one has come to the door: it takes the cold side instead, where each step is the program's.
pub fn skip(thread: &Thread, frame: &mut Frame) -> bool {
    let is_step = frame.info.signo == libc::SIGTRAP && frame.context.eflags & TRAP_FLAG != 0;
    let has_come = frame.context.rip == &raw const thermalloc_door as u64;
    let site = thread.door().site().filter(|_| is_step && has_come);
    if let Some(site) = site {
        frame.context.rip = site.cold;
    }
    site.is_some()
}

/// A thread that a signal has found at the door, outside of the runtime proper: makes the frame as if it had not come yet, or
/// had left. Returns whether it was there.
pub fn roll(thread: &Thread, frame: &mut Frame) -> bool {
    let rip = frame.context.rip;
    if !contains(rip) {
        return false;
    }
    if rip == &raw const thermalloc_door_release as u64 {
        release(thread, frame);
        return true;
    }
    let door = thread.door();
    let kept = &raw const thermalloc_door_kept as u64;
    if (back()..&raw const thermalloc_door_busy as u64).contains(&rip) {
        if rip >= kept {
            frame.context.rbx = door.gpr.get()[RBX];
            frame.context.rsp = door.gpr.get()[RSP];
        }
        frame.context.rip = callout::before(thread, frame, rip >= &raw const thermalloc_door as u64);
        return true;
    }
    let leaving = &raw const thermalloc_door_leaving as u64..&raw const thermalloc_door_left as u64;
    if leaving.contains(&rip) {
        if thread.is_waiting() {
            // Another has waited since the exit was chosen, and would be left blocked: both go on by the trap.
            retreat(thread);
        }
        let mut registers = door.gpr.get();
        registers[RCX] = thread as *const Thread as u64;
        frame.set_registers(&registers);
        frame.context.eflags = door.flags.get();
        frame.context.rip = door.exit.get();
        thread.leave_door();
        if frame.context.rip == &raw const thermalloc_door_release as u64 {
            release(thread, frame);
        }
        return true;
    }
    false
}

/// Whether the frame is that of the trap that lets waiting signals in.
pub fn is_release(frame: &Frame) -> bool {
    frame.info.signo == libc::SIGTRAP && frame.context.rip == &raw const thermalloc_door_release as u64 + 1
}

/// Lets the signals in that have waited, as soon as the handler returns.
pub fn release(thread: &Thread, frame: &mut Frame) {
    frame.context.rip = thread.door().target.get();
    frame.context.rcx = slots::get(Slot::Scratch);
    frame.mask &= !thread.take_deferred();
}
