//! Tries things out. What would leave traces, or what a sandbox may answer by killing, is tried in a forked child.
//!
//! # Safety
//! The children call system calls on live locals and end by `_exit`; the trap handler only counts.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI32, Ordering};
use std::{io, mem, ptr};

/// Numbers of prctl(2) and its arguments that libc does not have under these names everywhere.
const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
const PR_SYS_DISPATCH_ON: usize = 1;
const MEMBARRIER_CMD_QUERY: i64 = 0;
const MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE: i64 = 1 << 5;
/// Of EFLAGS: trap after the next instruction.
const TRAP_FLAG: u64 = 1 << 8;

/// Why a trial failed.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Refusal {
    /// A system call gave this errno.
    Errno(i32),
    /// The child was killed by this signal.
    Killed(i32),
    /// The trial went through and had no effect.
    NoEffect,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Errno(errno) => write!(f, "{}", io::Error::from_raw_os_error(*errno)),
            Self::Killed(signal) => write!(f, "the trial was killed by signal {signal}"),
            Self::NoEffect => write!(f, "it has no effect here"),
        }
    }
}

/// How many protection keys this process could allocate.
pub fn protection_keys() -> Result<i32, Refusal> {
    in_child(|| {
        let mut count = 0;
        loop {
            // SAFETY: no pointers; access rights 0 leave everything open.
            let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, 0) };
            match key {
                -1 if count == 0 => return -errno(),
                -1 => return count,
                _ => count += 1,
            }
        }
    })
}

/// Whether Syscall User Dispatch can be switched on.
pub fn syscall_user_dispatch() -> Result<(), Refusal> {
    in_child(|| {
        // Zero lets all calls pass.
        let selector = 0u8;
        // SAFETY: the kernel reads the selector at each system call until the child ends, which is within this frame.
        let result = unsafe {
            libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0usize, 0usize, &raw const selector)
        };
        if result == 0 { 0 } else { -errno() }
    })
    .map(drop)
}

/// Whether an anonymous file can be made and mapped twice, as the alias view needs.
pub fn anonymous_file() -> Result<(), Refusal> {
    in_child(|| {
        // SAFETY: a static C string; the descriptor ends with the child.
        let fd = unsafe { libc::memfd_create(c"thermalloc".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: no pointers.
        if fd < 0 || unsafe { libc::ftruncate(fd, 1 << 20) } != 0 {
            return -errno();
        }
        for _ in 0..2 {
            // SAFETY: the kernel chooses free addresses.
            let at = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    1 << 20,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    fd,
                    0,
                )
            };
            if at == libc::MAP_FAILED {
                return -errno();
            }
        }
        0
    })
    .map(drop)
}

/// Whether address space of this many bytes can be reserved.
pub fn address_space(bytes: usize) -> Result<(), Refusal> {
    in_child(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the kernel chooses free addresses.
        let at = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if at == libc::MAP_FAILED { -errno() } else { 0 }
    })
    .map(drop)
}

/// Whether other cores can be told that code has changed.
pub fn core_barrier() -> Result<(), Refusal> {
    in_child(|| {
        // SAFETY: no pointers.
        match unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) } {
            -1 => -errno(),
            commands if commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE != 0 => 1,
            _ => 0,
        }
    })
    .and_then(|supported| if supported == 1 { Ok(()) } else { Err(Refusal::NoEffect) })
}

static TRAPS: AtomicI32 = AtomicI32::new(0);

extern "C" fn count_trap(_: i32) {
    TRAPS.fetch_add(1, Ordering::SeqCst);
}

/// Whether the trap flag of EFLAGS gives SIGTRAP after an instruction.
pub fn single_step() -> Result<(), Refusal> {
    in_child(|| {
        let handler = count_trap as extern "C" fn(i32) as libc::sighandler_t;
        // SAFETY: the handler only counts. The flag is set by popfq and cleared by the next one, which is itself
        // stepped; `push` goes below the red zone because the block does not say `nostack`.
        unsafe {
            libc::signal(libc::SIGTRAP, handler);
            std::arch::asm!(
                "pushfq",
                "or qword ptr [rsp], {flag}",
                "popfq",
                "nop",
                "pushfq",
                "and qword ptr [rsp], {mask}",
                "popfq",
                flag = const TRAP_FLAG,
                mask = const !(TRAP_FLAG as i32),
            );
        }
        i32::from(TRAPS.load(Ordering::SeqCst) > 0)
    })
    .and_then(|trapped| if trapped == 1 { Ok(()) } else { Err(Refusal::NoEffect) })
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Runs a trial in a child. It returns a result, or a negative errno.
fn in_child(trial: impl FnOnce() -> i32) -> Result<i32, Refusal> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors to a live array.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Refusal::Errno(errno()));
    }
    // SAFETY: this program has one thread here; the child runs the trial, writes its result and ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let result = trial().to_ne_bytes();
        // SAFETY: the kernel reads a live array; `_exit` runs no code of the parent's.
        unsafe {
            libc::write(ends[1], result.as_ptr().cast(), result.len());
            libc::_exit(0);
        }
    }
    let answer = if pid < 0 { Err(Refusal::Errno(errno())) } else { collect(pid, ends) };
    // SAFETY: closes what was opened above and is not used after; `collect` has closed the writing end.
    unsafe {
        libc::close(ends[0]);
        if pid < 0 {
            libc::close(ends[1]);
        }
    }
    answer
}

fn collect(pid: i32, ends: [i32; 2]) -> Result<i32, Refusal> {
    let mut bytes = [0; mem::size_of::<i32>()];
    let mut status = 0;
    // SAFETY: closes the parent's copy of the writing end; the kernel writes live locals; the child is this one's.
    let n = unsafe {
        libc::close(ends[1]);
        let n = libc::read(ends[0], bytes.as_mut_ptr().cast(), bytes.len());
        while libc::waitpid(pid, &mut status, 0) < 0 && errno() == libc::EINTR {}
        n
    };
    if libc::WIFSIGNALED(status) {
        return Err(Refusal::Killed(libc::WTERMSIG(status)));
    }
    match i32::from_ne_bytes(bytes) {
        _ if n != bytes.len() as isize => Err(Refusal::NoEffect),
        result if result < 0 => Err(Refusal::Errno(-result)),
        result => Ok(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_answers_fails_or_dies() {
        assert_eq!(in_child(|| 7), Ok(7));
        assert_eq!(in_child(|| -libc::EPERM), Err(Refusal::Errno(libc::EPERM)));
        // SAFETY: kills the child by itself.
        let dies = in_child(|| unsafe { libc::raise(libc::SIGKILL) });
        assert_eq!(dies, Err(Refusal::Killed(libc::SIGKILL)));
    }
}
