//! The signal frame: the interrupted context that the kernel saves and restores, as handlers read and edit it.
//!
//! Layout: `struct rt_sigframe` of arch/x86/include/asm/sigframe.h, with the extended state behind
//! `fpstate` in XSAVE standard format (arch/x86/include/uapi/asm/sigcontext.h).
//!
//! # Safety
//! [`Frame::of`] trusts its caller that the pointer is the `ucontext` argument of a running handler; the rest
//! stays inside the frame whose size the kernel states.
//!
//! # Signal context
//! Plain memory accesses only.
#![allow(unsafe_code)]

/// Trap flag of EFLAGS: a debug exception after the next instruction.
pub const TRAP_FLAG: u64 = 1 << 8;
/// Direction flag of EFLAGS.
pub const DIRECTION_FLAG: u64 = 1 << 10;
/// Resume flag of EFLAGS.
pub const RESUME_FLAG: u64 = 1 << 16;

/// Bit of PKRU's state in XSTATE_BV.
const XFEATURE_PKRU: u64 = 1 << 9;
const XSTATE_MAGIC1: u32 = 0x4650_5853;
/// Offset of the kernel's `struct _fpx_sw_bytes` in the legacy FXSAVE area.
const SW_BYTES: usize = 464;
const XSTATE_BV: usize = 512;
const MXCSR: usize = 24;
const MXCSR_DEFAULT: u32 = 0x1f80;

/// `struct sigaltstack`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Lowest address.
    pub sp: usize,
    /// `SS_*`.
    pub flags: i32,
    pad: i32,
    /// Bytes.
    pub size: usize,
}

impl Stack {
    /// No alternate stack.
    pub const DISABLED: Self = Self { sp: 0, flags: libc::SS_DISABLE, pad: 0, size: 0 };

    /// An alternate stack of `size` bytes from `sp` up.
    pub const fn new(sp: usize, size: usize) -> Self {
        Self { sp, flags: 0, pad: 0, size }
    }

    /// Whether `address` lies on this stack, as the kernel decides it (`__on_sig_stack`).
    pub fn contains(&self, address: u64) -> bool {
        self.flags & libc::SS_DISABLE == 0
            && (address as usize) > self.sp
            && address as usize - self.sp <= self.size
    }
}

/// `struct sigcontext`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names of the registers")]
pub struct Context {
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub eflags: u64,
    pub segments: [u16; 4],
    pub err: u64,
    pub trapno: u64,
    pub oldmask: u64,
    pub cr2: u64,
    pub fpstate: usize,
    reserved: [u64; 8],
}

/// `struct siginfo`: 128 bytes, of which handlers read a few words.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names of siginfo_t")]
pub struct Info {
    pub signo: i32,
    pub errno: i32,
    pub code: i32,
    pad: i32,
    /// `si_addr`, `si_call_addr`, or `si_pid` and `si_uid`.
    pub address: u64,
    /// `si_syscall` in the low half.
    pub second: u64,
    rest: [u64; 12],
}

impl Context {
    /// The general registers, by number.
    pub fn registers(&self) -> [u64; 16] {
        let c = self;
        [
            c.rax, c.rcx, c.rdx, c.rbx, c.rsp, c.rbp, c.rsi, c.rdi, c.r8, c.r9, c.r10, c.r11, c.r12, c.r13,
            c.r14, c.r15,
        ]
    }
}

impl Info {
    /// What the kernel fills in for a signal of its own with nothing to tell (`SI_KERNEL`).
    pub const fn kernel(signo: i32) -> Self {
        Self { signo, errno: 0, code: 128, pad: 0, address: 0, second: 0, rest: [0; 12] }
    }

    /// `si_syscall`.
    pub fn syscall(&self) -> i64 {
        i64::from(self.second as u32 as i32)
    }
}

/// `struct rt_sigframe`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame {
    /// Return address of the handler.
    pub restorer: usize,
    flags: u64,
    link: usize,
    /// The alternate stack that rt_sigreturn restores.
    pub stack: Stack,
    /// The interrupted registers.
    pub context: Context,
    /// The interrupted signal mask: bit n - 1 for signal n.
    pub mask: u64,
    /// What happened.
    pub info: Info,
}

/// Offset of the `ucontext` in [`Frame`].
pub const UCONTEXT: usize = 8;
/// Offset of the siginfo in [`Frame`].
pub const SIGINFO: usize = core::mem::offset_of!(Frame, info);

const _: () = assert!(size_of::<Frame>() == 440 && SIGINFO == 312);

impl Frame {
    /// The frame around a handler's third argument.
    ///
    /// # Safety
    /// `ucontext` is the third argument of a handler that the kernel started with SA_SIGINFO and that is still
    /// running, and no other reference to its frame is alive.
    pub unsafe fn of<'a>(ucontext: *mut libc::c_void) -> &'a mut Self {
        // SAFETY: the kernel places the ucontext at this offset of the frame.
        unsafe { &mut *ucontext.cast::<u8>().sub(UCONTEXT).cast() }
    }

    /// The extended state, from the legacy area to the end of the XSAVE image.
    pub fn extended(&self) -> Option<&[u8]> {
        let len = self.extended_len()?;
        // SAFETY: the kernel states the length of the area behind a non-null fpstate.
        Some(unsafe { core::slice::from_raw_parts(self.context.fpstate as *const u8, len) })
    }

    /// [`Frame::extended`], to be edited.
    pub fn extended_mut(&mut self) -> Option<&mut [u8]> {
        let len = self.extended_len()?;
        // SAFETY: as in `extended`; the frame is borrowed mutably.
        Some(unsafe { core::slice::from_raw_parts_mut(self.context.fpstate as *mut u8, len) })
    }

    fn extended_len(&self) -> Option<usize> {
        let area = self.context.fpstate as *const u8;
        if area.is_null() {
            return None;
        }
        // SAFETY: a non-null fpstate has at least the 512 bytes of FXSAVE.
        let (magic, size) = unsafe {
            let sw = area.add(SW_BYTES).cast::<u32>();
            (sw.read_unaligned(), sw.add(1).read_unaligned())
        };
        // extended_size: the image and a closing magic word.
        if magic == XSTATE_MAGIC1 { Some(size as usize) } else { Some(512) }
    }

    /// The PKRU that returning from the handler loads; `offset` is where it lies in the XSAVE image.
    pub fn pkru(&self, offset: usize) -> Option<u32> {
        let area = self.extended()?;
        let saved = u64::from_le_bytes(area.get(XSTATE_BV..XSTATE_BV + 8)?.try_into().ok()?);
        if saved & XFEATURE_PKRU == 0 {
            return Some(0);
        }
        Some(u32::from_le_bytes(area.get(offset..offset + 4)?.try_into().ok()?))
    }

    /// Sets the PKRU that returning from the handler loads: the value, and the bit that says that there is one.
    pub fn set_pkru(&mut self, offset: usize, value: u32) {
        let Some(area) = self.extended_mut() else { return };
        if area.len() < offset + 4 {
            return;
        }
        area[XSTATE_BV + 1] |= (XFEATURE_PKRU >> 8) as u8;
        area[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Sets the floating-point and vector state to what a handler starts with, leaving PKRU.
    pub fn reset_vectors(&mut self) {
        let Some(area) = self.extended_mut() else { return };
        area[MXCSR..MXCSR + 4].copy_from_slice(&MXCSR_DEFAULT.to_le_bytes());
        if area.len() > XSTATE_BV + 8 {
            area[XSTATE_BV] = 0;
            area[XSTATE_BV + 1] &= (XFEATURE_PKRU >> 8) as u8;
        }
    }

    /// Sets the general registers, by number.
    pub fn set_registers(&mut self, registers: &[u64; 16]) {
        let c = &mut self.context;
        [
            c.rax, c.rcx, c.rdx, c.rbx, c.rsp, c.rbp, c.rsi, c.rdi, c.r8, c.r9, c.r10, c.r11, c.r12, c.r13,
            c.r14, c.r15,
        ] = *registers;
    }

    /// Sets the arguments of a system call.
    pub fn set_arguments(&mut self, args: &[u64; 6]) {
        let c = &mut self.context;
        [c.rdi, c.rsi, c.rdx, c.r10, c.r8, c.r9] = *args;
    }

    /// The arguments of the system call that was about to be made.
    pub fn arguments(&self) -> [u64; 6] {
        let c = &self.context;
        [c.rdi, c.rsi, c.rdx, c.r10, c.r8, c.r9]
    }
}
