//! A system call made on the program's behalf: the buffers that the kernel will touch are opened, the thread goes to
//! the gate's stub, and what the kernel did is charged when the stub traps.
//!
//! The program's handlers never run while a call is on its way: [`settle`] first completes it or takes it back
//! to the `syscall` instruction. So a thread needs one record of a call in progress.
//!
//! # Signal context
//! Everything here runs in handlers.

use crate::access::{Access, By, Kind};
use crate::clock;
use crate::control;
use crate::frame::Frame;
use crate::heat;
use crate::kernel::{self, Coverage, KernelRange, Memory, Phase};
use crate::memory;
use crate::protect::{self, Method};
use crate::rewrite;
use crate::step::is_watched;
use crate::thread::HandlerState;
use crate::totals::TOTALS;
use core::sync::atomic::Ordering;
use thermalloc_alloc as alloc;
use thermalloc_sys::gate;

/// Buffers that are opened one by one; a call with more gets all of the heap.
const MAX_OPENED: usize = 64;

/// Bytes of a `syscall` instruction.
pub const SYSCALL_LEN: u64 = 2;

/// A system call on its way.
#[derive(Clone)]
pub struct Call {
    /// Address behind the program's `syscall` instruction; 0 when no call is on its way.
    pub returns_to: u64,
    /// Number.
    pub nr: i64,
    /// Arguments as the program passed them.
    pub args: [u64; 6],
    /// What to do besides when the call has returned.
    pub after: After,
    opened: [(usize, usize); MAX_OPENED],
    opened_count: usize,
    opened_all: bool,
    /// The vector of a gathering or scattering call, and the message header that names it, with addresses in the alias view.
    vector: [[u64; 2]; MAX_OPENED],
    header: [u64; 7],
}

/// What a returned call needs besides its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// The signal mask was widened for the call: put this one back.
    Mask(u64),
}

impl Default for Call {
    fn default() -> Self {
        Self {
            returns_to: 0,
            nr: 0,
            args: [0; 6],
            after: After::Nothing,
            opened: [(0, 0); MAX_OPENED],
            opened_count: 0,
            opened_all: false,
            vector: [[0; 2]; MAX_OPENED],
            header: [0; 7],
        }
    }
}

impl Call {
    /// Whether a call is on its way.
    pub fn is_running(&self) -> bool {
        self.returns_to != 0
    }

    /// Leaves the opened buffers to another record of the same call.
    pub fn forget_openings(&mut self) {
        self.opened_count = 0;
        self.opened_all = false;
    }
}

/// The program's memory, as the system call table reads it.
pub struct ProgramMemory;

impl Memory for ProgramMemory {
    fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        memory::read(addr as usize, into)
    }

    fn own_pid(&self) -> i32 {
        crate::process::pid()
    }
}

/// Sends the thread to `stub` to make system call `nr`, whose arguments are in the frame.
pub fn begin(state: &mut HandlerState, frame: &mut Frame, nr: i64, stub: usize) {
    TOTALS.syscalls.fetch_add(1, Ordering::Relaxed);
    let call = &mut state.call;
    call.returns_to = frame.context.rip;
    call.nr = nr;
    call.args = frame.arguments();
    call.after = After::Nothing;
    call.opened_count = 0;
    call.opened_all = false;
    match protect::method() {
        Some(Method::Pages) => match by_alias(call) {
            Some(args) => frame.set_arguments(&args),
            None => open_buffers(call),
        },
        Some(Method::Key(_)) => {
            let offset = crate::pku::xsave_offset();
            let pkru = frame.pkru(offset).unwrap_or(0);
            frame.set_pkru(offset, protect::opened_pkru(pkru));
        }
        None => {}
    }
    frame.context.rax = nr as u64;
    frame.context.rip = stub as u64;
}

/// Calls that are made at the door: frequent ones that nothing in the monitor but their buffers is concerned with.
pub fn is_for_door(nr: i64) -> bool {
    matches!(
        nr,
        libc::SYS_read
            | libc::SYS_write
            | libc::SYS_pread64
            | libc::SYS_pwrite64
            | libc::SYS_readv
            | libc::SYS_writev
            | libc::SYS_preadv
            | libc::SYS_pwritev
            | libc::SYS_recvfrom
            | libc::SYS_sendto
            | libc::SYS_recvmsg
            | libc::SYS_sendmsg
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_socket
            | libc::SYS_setsockopt
            | libc::SYS_getsockopt
            | libc::SYS_shutdown
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_ctl
            | libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_select
            | libc::SYS_futex
            | libc::SYS_getdents64
            | libc::SYS_clock_gettime
            | libc::SYS_clock_nanosleep
            | libc::SYS_nanosleep
            | libc::SYS_gettimeofday
            | libc::SYS_sched_yield
            | libc::SYS_open
            | libc::SYS_openat
            | libc::SYS_close
            | libc::SYS_lseek
            | libc::SYS_stat
            | libc::SYS_lstat
            | libc::SYS_fstat
            | libc::SYS_newfstatat
            | libc::SYS_access
            | libc::SYS_readlink
            | libc::SYS_readlinkat
            | libc::SYS_fcntl
            | libc::SYS_ioctl
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_ftruncate
            | libc::SYS_unlink
            | libc::SYS_getpid
            | libc::SYS_gettid
            | libc::SYS_getppid
            | libc::SYS_getuid
            | libc::SYS_geteuid
            | libc::SYS_getgid
            | libc::SYS_getegid
            | libc::SYS_getrandom
            | libc::SYS_getrusage
    )
}

/// Begins a call that the thread makes at the door, without a signal: the arguments to make it with. `None`: it must arrive as a
/// signal, for it is one of those that the monitor has a part in, or buffers must be opened for it.
pub fn begin_at_door(call: &mut Call, returns_to: u64, nr: i64, args: [u64; 6]) -> Option<[u64; 6]> {
    if !is_for_door(nr) || protect::method() != Some(Method::Pages) {
        return None;
    }
    (call.nr, call.args, call.after) = (nr, args, After::Nothing);
    let args = by_alias(call).or_else(|| touches_no_heap(nr, &args).then_some(args))?;
    TOTALS.syscalls.fetch_add(1, Ordering::Relaxed);
    call.forget_openings();
    call.returns_to = returns_to;
    Some(args)
}

/// Whether the kernel is known to touch no watched memory in a call.
fn touches_no_heap(nr: i64, args: &[u64; 6]) -> bool {
    let mut is_clear = true;
    let coverage = kernel::ranges(nr, args, Phase::Before, &ProgramMemory, &mut |range: KernelRange| {
        is_clear &= !is_watched(range.addr as usize, range.len as usize, kind_of(range));
    });
    is_clear && coverage == Coverage::Complete
}

/// A call made at the door has returned: charges what the kernel did. Returns the arguments as the program passed them.
pub fn finish_at_door(call: &mut Call, result: i64, thread: u32) -> [u64; 6] {
    charge(call.nr, &call.args, result, thread);
    call.returns_to = 0;
    call.args
}

/// A call that was to be made at the door is not made yet after all: its number and arguments.
pub fn take_back_at_door(call: &mut Call) -> (i64, [u64; 6]) {
    call.returns_to = 0;
    (call.nr, call.args)
}

/// The arguments that make the kernel reach heap buffers by the alias view, so that nothing need be opened: for calls that the kernel has done
/// with when they return, whose buffers are named by the arguments themselves, by one vector, or by one message header. `None`: as they are.
fn by_alias(call: &mut Call) -> Option<[u64; 6]> {
    if !control::is_aliased() || protect::has_wishes() {
        return None;
    }
    let mut args = call.args;
    let pointers: &[usize] = match call.nr {
        libc::SYS_read | libc::SYS_write | libc::SYS_pread64 | libc::SYS_pwrite64 => &[1],
        libc::SYS_recvfrom | libc::SYS_sendto => &[1, 4, 5],
        libc::SYS_epoll_wait | libc::SYS_getdents64 | libc::SYS_clock_gettime | libc::SYS_fstat => &[1],
        libc::SYS_epoll_ctl => &[3],
        libc::SYS_open | libc::SYS_stat | libc::SYS_lstat | libc::SYS_access | libc::SYS_readlink => &[0, 1],
        libc::SYS_openat | libc::SYS_newfstatat | libc::SYS_readlinkat => &[1, 2],
        libc::SYS_readv | libc::SYS_writev | libc::SYS_preadv | libc::SYS_pwritev => {
            move_vector(call, args[1], args[2])?;
            args[1] = call.vector.as_ptr() as u64;
            &[]
        }
        libc::SYS_sendmsg => {
            // Name and its length, vector and its length, control data and its length, flags.
            call.header = memory::read_value::<[u64; 7]>(args[1] as usize)?;
            let header = call.header;
            move_vector(call, header[2], header[3])?;
            call.header[0] = alias_of(header[0]);
            call.header[2] = call.vector.as_ptr() as u64;
            call.header[4] = alias_of(header[4]);
            args[1] = call.header.as_ptr() as u64;
            &[]
        }
        _ => return None,
    };
    for &at in pointers {
        args[at] = alias_of(args[at]);
    }
    Some(args)
}

/// Copies a vector of `count` buffers from the program's memory, with its addresses in the alias view.
fn move_vector(call: &mut Call, at: u64, count: u64) -> Option<()> {
    let count = usize::try_from(count).ok().filter(|&count| count <= MAX_OPENED)?;
    for (index, buffer) in call.vector[..count].iter_mut().enumerate() {
        let [base, len] = memory::read_value::<[u64; 2]>(at as usize + 16 * index)?;
        // One that leaves the heap would reach something else behind it there.
        if alloc::contains(base as usize) != alloc::contains((base as usize).checked_add(len as usize)?) {
            return None;
        }
        *buffer = [alias_of(base), len];
    }
    Some(())
}

fn alias_of(address: u64) -> u64 {
    alloc::alias_of(address as usize) as u64
}

fn open_buffers(call: &mut Call) {
    let (nr, args) = (call.nr, call.args);
    let mut too_many = false;
    let coverage = kernel::ranges(nr, &args, Phase::Before, &ProgramMemory, &mut |range: KernelRange| {
        let (start, len) = (range.addr as usize, range.len as usize);
        if !is_watched(start, len, kind_of(range)) {
            return;
        }
        if call.opened_count == MAX_OPENED {
            too_many = true;
            return;
        }
        let end = start.saturating_add(len);
        protect::open(start..end);
        call.opened[call.opened_count] = (start, end);
        call.opened_count += 1;
    });
    if coverage != Coverage::Complete || too_many {
        protect::open_everything();
        call.opened_all = true;
    }
}

fn kind_of(range: KernelRange) -> Kind {
    match range.kind {
        kernel::Kind::Read => Kind::Read,
        kernel::Kind::Write => Kind::Write,
    }
}

/// Charges what the kernel accessed in a call that has returned.
pub fn charge(nr: i64, args: &[u64; 6], result: i64, thread: u32) {
    let now = clock::now();
    kernel::ranges(nr, args, Phase::After { result }, &ProgramMemory, &mut |range: KernelRange| {
        let kind = kind_of(range);
        let (addr, len) = (range.addr as usize, range.len as usize);
        if is_watched(addr, len, kind) {
            heat::charge(&Access { addr, len, kind, by: By::Kernel }, thread, now);
        }
    });
}

/// The call has returned: charges what the kernel did, closes, and takes the thread back to the program.
pub fn finish(state: &mut HandlerState, frame: &mut Frame, thread: u32) {
    let call = &mut state.call;
    if rewrite::is_on() {
        rewrite_new_code(call, frame.context.rax as i64);
    }
    charge(call.nr, &call.args, frame.context.rax as i64, thread);
    frame.context.rip = call.returns_to;
    leave(call, frame);
}

/// Code that has been mapped has system calls of its own.
fn rewrite_new_code(call: &Call, result: i64) {
    let [at, len, prot, _, file, _] = call.args;
    let maps = match call.nr {
        libc::SYS_mmap => file as i32 >= 0,
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => true,
        _ => false,
    };
    let readable_code = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    if maps && result >= 0 && prot & 7 == readable_code {
        let start = if call.nr == libc::SYS_mmap { result as usize } else { at as usize };
        // What cannot be rewritten stays as it is, with the limits of calls from foreign code.
        let _ = rewrite::scan(start..start + len as usize);
    }
}

/// The call has not been made, or is to be made again after a handler: back to the `syscall` instruction.
pub fn take_back(state: &mut HandlerState, frame: &mut Frame) {
    let call = &mut state.call;
    frame.context.rip = call.returns_to - SYSCALL_LEN;
    frame.context.rax = call.nr as u64;
    leave(call, frame);
}

fn leave(call: &mut Call, frame: &mut Frame) {
    // What the instruction itself leaves behind: RCX is the return address, R11 the flags.
    frame.context.rcx = call.returns_to;
    // Arguments that the monitor may have replaced.
    frame.set_arguments(&call.args);
    close_buffers(call);
    if let Some(Method::Key(_)) = protect::method() {
        // pkey_alloc sets rights in the register: they stay.
        let offset = crate::pku::xsave_offset();
        let pkru = frame.pkru(offset).unwrap_or(0);
        frame.set_pkru(offset, protect::closed_pkru(pkru));
    }
    if let After::Mask(mask) = call.after {
        frame.mask = mask;
    }
    call.after = After::Nothing;
    call.returns_to = 0;
}

/// Closes what was opened for a call.
pub fn close_buffers(call: &mut Call) {
    for &(start, end) in &call.opened[..call.opened_count] {
        protect::close(start..end);
    }
    if call.opened_all {
        protect::close_everything();
    }
    call.forget_openings();
}

/// Where a thread stands in a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before the `syscall` instruction.
    Before,
    /// After it.
    After,
    /// In none.
    Elsewhere,
}

/// Where `rip` stands in the stubs.
pub fn place(rip: u64) -> Place {
    let rip = rip as usize;
    if rip == gate::call() || rip == gate::door() || rip == gate::clone() {
        Place::Before
    } else if rip == gate::door_done()
        || (gate::call_done()..=gate::call_done() + 1).contains(&rip)
        || gate::clone_done().contains(&rip)
    {
        Place::After
    } else {
        Place::Elsewhere
    }
}
