//! Which memory of the program does the kernel read and write in a system call?
//!
//! [`ranges`] answers twice for each call. *Before* it, with every byte that the kernel may touch, so that
//! protected pages can be opened. *After* it, with what the kernel did touch, so that it can be charged. The
//! answers come from tables of argument descriptors, one table a subject ([`Arg`](describe) explains the words),
//! and from small functions for arguments that lead to further memory.
//!
//! Source: the system call table `arch/x86/entry/syscalls/syscall_64.tbl` of Linux 6.18, the manual pages, and
//! the kernel's behaviour where they are silent; `tests/kernel_oracle` holds the tables against the running
//! kernel.
//!
//! Modules, lowest first: [`walk`] (one call under examination), [`describe`] (descriptors), one module a
//! subject, [`table`] (number to descriptors).
//!
//! # Signal context
//! Nothing here allocates, locks, panics or makes a system call; the program's memory is read by way of
//! [`Memory`] alone, and a budget bounds the work for whatever arguments.
//!
//! # Limits
//! - A buffer that was too short (a socket address, a control message) may be charged as if it had been long
//!   enough, for the kernel overwrites the length that it was handed.
//! - `select` counts descriptor sets of `nfds` bits, though the kernel stops at the size of the process's table.
//! - `vmsplice` is charged as reading, and `semctl(GETALL, SETALL)` not at all.
//! - `process_vm_readv` and `process_vm_writev` on oneself by the id of another thread are charged on one side only.
//! - Memory handed over for later (io_uring, `set_robust_list`, `rseq`, `clear_child_tid`) is not followed.
//! - Device files whose `write` takes structures with pointers (RDMA, SCSI generic) are taken for plain files.

mod aio;
mod credentials;
mod describe;
mod events;
mod fcntl;
mod files;
mod futex;
mod io;
mod ioctl;
mod ipc;
mod mount;
mod net;
mod plain;
mod prctl;
mod process;
mod ptrace;
mod sched;
mod signal;
mod sockopt;
mod system;
mod table;
mod time;
mod vm;
mod walk;
mod xattr;

#[cfg(test)]
mod tests;

use walk::{Outcome, Walk};

/// What the kernel does with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The kernel reads the program's memory.
    Read,
    /// The kernel writes the program's memory.
    Write,
}

/// Memory of the program that the kernel accesses in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelRange {
    /// First byte; never null.
    pub addr: u64,
    /// Length in bytes; never 0, and the range ends within the user half of the address space.
    pub len: u64,
    /// Read or written, from the kernel's point of view.
    pub kind: Kind,
}

/// On which side of the call the question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// What may be touched.
    Before,
    /// What has been touched.
    After {
        /// What the kernel returned: `-errno` on failure.
        result: i64,
    },
}

/// How much the answer before a call covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// The kernel touches nothing but the ranges given.
    Complete,
    /// The ranges given are touched, and perhaps others.
    Partial,
    /// Nothing is known about this call.
    Unknown,
}

/// The program's memory, for what arguments point to.
pub trait Memory {
    /// Copies `into.len()` bytes from `addr`; false if they cannot all be read. Strings are looked through in steps
    /// that may go beyond their end, but not beyond the end of its page.
    fn read(&self, addr: u64, into: &mut [u8]) -> bool;

    /// Process id of the program, to tell whether `process_vm_readv` and its like address it; 0 if not known.
    fn own_pid(&self) -> i32 {
        0
    }
}

/// Tells `visit` every range that system call `nr` with `args` may touch (before) or has touched (after).
///
/// Where the result is not [`Coverage::Complete`], the kernel may touch more than `visit` was told. After a
/// failed call, reads are told where the error shows that the kernel had got that far, and writes only where
/// the kernel makes them in spite of failing.
pub fn ranges(
    nr: i64,
    args: &[u64; 6],
    phase: Phase,
    memory: &dyn Memory,
    visit: &mut dyn FnMut(KernelRange),
) -> Coverage {
    let Some(descriptors) = table::descriptors(nr) else { return Coverage::Unknown };
    let mut walk = Walk::new(args, Outcome::of(phase), memory, visit);
    for descriptor in descriptors {
        descriptor.tell(&mut walk);
    }
    walk.coverage()
}
