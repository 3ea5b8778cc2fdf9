//! Memory protection keys: the PKRU register, and the system calls around them (pkeys(7)).
//!
//! # Safety
//! The instructions are executed only where a key was allocated, which proves CR4.PKE.
//!
//! # Signal context
//! Registers and system calls only.
#![allow(unsafe_code)]

use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::{AtomicU32, Ordering};
use thermalloc_sys::gate::syscall;
use thermalloc_sys::mem::{Errno, check};

/// Offset of PKRU in the XSAVE image, 0 while no key is allocated.
static XSAVE_OFFSET: AtomicU32 = AtomicU32::new(0);

/// One of the 15 keys besides key 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u8);

impl Key {
    /// Takes a key from the kernel.
    pub fn allocate() -> Result<Self, Errno> {
        // SAFETY: pkey_alloc takes no pointers.
        let key = check(unsafe { syscall(libc::SYS_pkey_alloc, &[0, 0]) })?;
        XSAVE_OFFSET.store(__cpuid_count(0xd, 9).ebx, Ordering::Relaxed);
        Ok(Self(key as u8))
    }

    /// Gives the key back.
    pub fn free(self) {
        XSAVE_OFFSET.store(0, Ordering::Relaxed);
        // SAFETY: no page carries the key.
        unsafe { syscall(libc::SYS_pkey_free, &[usize::from(self.0)]) };
    }

    /// The key that [`Key::number`] names.
    pub fn from_number(number: u8) -> Self {
        Self(number)
    }

    /// The kernel's number of the key.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Tags a range of whole pages with the key, at the given `PROT_*`.
    ///
    /// # Safety
    /// Whoever uses the range gets along with the protection.
    pub unsafe fn protect(self, at: usize, len: usize, prot: i32) -> Result<(), Errno> {
        // SAFETY: the caller vouches for the range.
        check(unsafe { syscall(libc::SYS_pkey_mprotect, &[at, len, prot as usize, usize::from(self.0)]) })
            .map(drop)
    }

    /// `pkru` with loads and stores through this key allowed.
    pub fn opened(self, pkru: u32) -> u32 {
        pkru & !(0b11 << (2 * self.0))
    }

    /// `pkru` with stores through this key denied, and loads too if `loads`.
    pub fn closed(self, pkru: u32, loads: bool) -> u32 {
        let deny = if loads { 0b01 } else { 0b10 };
        self.opened(pkru) | deny << (2 * self.0)
    }
}

/// Where PKRU lies in the XSAVE image of a signal frame (CPUID leaf 0xD, sub-leaf 9).
pub fn xsave_offset() -> usize {
    XSAVE_OFFSET.load(Ordering::Relaxed) as usize
}

/// Reads PKRU. Only after [`Key::allocate`] has succeeded.
pub fn read() -> u32 {
    let value: u32;
    // SAFETY: a key was allocated, so the instruction exists; it reads a register.
    unsafe {
        core::arch::asm!("rdpkru", in("ecx") 0, out("eax") value, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    value
}

/// Writes PKRU. Only after [`Key::allocate`] has succeeded.
pub fn write(value: u32) {
    // SAFETY: a key was allocated. Not `nomem`: the compiler must not move memory accesses across it.
    unsafe {
        core::arch::asm!("wrpkru", in("eax") value, in("ecx") 0, in("edx") 0, options(nostack, preserves_flags));
    }
}
