//! One system call under examination: its arguments, how it ended, the program's memory, and who wants to know.
//!
//! # Signal context
//! No allocation, locks or panics. Every nested read costs a unit of a budget, so that hostile arguments end early.

use super::{Coverage, KernelRange, Kind, Memory, Phase};

/// End of the user half of the address space with four page-table levels, and of what plain calls can address.
const USER_END: u64 = 0x7fff_ffff_f000;
/// The kernel takes no more than this many iovecs (`UIO_MAXIOV`).
const MAX_IOVECS: u64 = 1024;
/// Nested reads for each question. `recvmmsg` with full vectors, or an argument list of several megabytes, are the
/// longest of honest calls.
const BUDGET: u32 = 1 << 17;
/// Strings are looked through in steps of at most this many bytes, none of which crosses a page.
const STEP: usize = 256;
/// Longest path, with its NUL.
pub const PATH_MAX: u64 = 4096;

/// How far the call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not made yet.
    Before,
    /// Succeeded with this result.
    Done(u64),
    /// Failed with an error that the kernel returns only once it has read paths and structures.
    Tried(i32),
    /// Failed, perhaps before anything was read.
    Failed(i32),
}

impl Outcome {
    /// Classifies the answer of the kernel.
    pub fn of(phase: Phase) -> Self {
        match phase {
            Phase::Before => Self::Before,
            Phase::After { result } if !(-4095..0).contains(&result) => Self::Done(result as u64),
            Phase::After { result } => {
                let errno = -result as i32;
                if tried(errno) { Self::Tried(errno) } else { Self::Failed(errno) }
            }
        }
    }
}

/// Errors from the object that a call is about (a file, a socket, a queue), not from its arguments.
fn tried(errno: i32) -> bool {
    matches!(
        errno,
        libc::EINTR
            | libc::EAGAIN
            | libc::ETIMEDOUT
            | libc::EINPROGRESS
            | libc::EALREADY
            | libc::ENOENT
            | libc::EEXIST
            | libc::ENOTDIR
            | libc::EISDIR
            | libc::ENOTEMPTY
            | libc::ELOOP
            | libc::EACCES
            | libc::EROFS
            | libc::EXDEV
            | libc::EBUSY
            | libc::ETXTBSY
            | libc::ENODATA
            | libc::ENOMSG
            | libc::EOVERFLOW
            | libc::EISCONN
            | libc::ECONNREFUSED
            | libc::ECONNRESET
            | libc::ENETUNREACH
            | libc::EHOSTUNREACH
            | libc::EADDRINUSE
            | libc::EADDRNOTAVAIL
    )
}

/// See the module's description.
pub struct Walk<'a> {
    args: &'a [u64; 6],
    outcome: Outcome,
    memory: &'a dyn Memory,
    visit: &'a mut dyn FnMut(KernelRange),
    coverage: Coverage,
    budget: u32,
}

impl<'a> Walk<'a> {
    pub fn new(
        args: &'a [u64; 6],
        outcome: Outcome,
        memory: &'a dyn Memory,
        visit: &'a mut dyn FnMut(KernelRange),
    ) -> Self {
        Self { args, outcome, memory, visit, coverage: Coverage::Complete, budget: BUDGET }
    }

    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether the call is still to be made.
    pub fn before(&self) -> bool {
        self.outcome == Outcome::Before
    }

    /// The result, if the call was made and succeeded.
    pub fn result(&self) -> Option<u64> {
        if let Outcome::Done(result) = self.outcome { Some(result) } else { None }
    }

    /// The error, if the call was made and failed.
    pub fn errno(&self) -> Option<i32> {
        match self.outcome {
            Outcome::Tried(errno) | Outcome::Failed(errno) => Some(errno),
            Outcome::Before | Outcome::Done(_) => None,
        }
    }

    /// Argument `n`, a pointer or a 64-bit number.
    pub fn arg(&self, n: u8) -> u64 {
        self.args.get(usize::from(n)).copied().unwrap_or(0)
    }

    /// Argument `n` where the kernel looks at its lower half only.
    pub fn int(&self, n: u8) -> i32 {
        self.arg(n) as i32
    }

    /// Argument `n` where the kernel looks at its lower half only, as an unsigned number.
    pub fn uint(&self, n: u8) -> u32 {
        self.arg(n) as u32
    }

    /// Process id of the program, 0 if not known.
    pub fn own_pid(&self) -> i32 {
        self.memory.own_pid()
    }

    /// The kernel may touch more than is told here.
    pub fn partial(&mut self) {
        self.coverage = self.coverage.max(Coverage::Partial);
    }

    /// Nothing is known about what this call touches.
    pub fn unknown(&mut self) {
        self.coverage = Coverage::Unknown;
    }

    /// Tells a range without regard to how the call ended.
    pub fn tell(&mut self, addr: u64, len: u64, kind: Kind) {
        let len = len.min(USER_END.saturating_sub(addr));
        if addr != 0 && len != 0 {
            (self.visit)(KernelRange { addr, len, kind });
        }
    }

    /// The kernel reads these bytes at the start of the call.
    pub fn reads(&mut self, addr: u64, len: u64) {
        if !matches!(self.outcome, Outcome::Failed(_)) {
            self.tell(addr, len, Kind::Read);
        }
    }

    /// The kernel writes these bytes if the call succeeds.
    pub fn writes(&mut self, addr: u64, len: u64) {
        if matches!(self.outcome, Outcome::Before | Outcome::Done(_)) {
            self.tell(addr, len, Kind::Write);
        }
    }

    /// [`Walk::reads`], then [`Walk::writes`].
    pub fn updates(&mut self, addr: u64, len: u64) {
        self.reads(addr, len);
        self.writes(addr, len);
    }

    /// The kernel may need these bytes, but what it does to them is told elsewhere or is no access.
    pub fn prepares(&mut self, addr: u64, len: u64, kind: Kind) {
        if self.before() {
            self.tell(addr, len, kind);
        }
    }

    /// A buffer of which the call's result says how many bytes were moved.
    pub fn moves(&mut self, addr: u64, len: u64, kind: Kind) {
        match self.outcome {
            Outcome::Before => self.tell(addr, len, kind),
            Outcome::Done(moved) => self.tell(addr, len.min(moved), kind),
            Outcome::Tried(_) | Outcome::Failed(_) => {}
        }
    }

    /// `N` bytes of the program's memory. Where they cannot be had, what hangs off them stays untold.
    pub fn bytes<const N: usize>(&mut self, addr: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.fetch(addr, &mut bytes).then_some(bytes)
    }

    fn fetch(&mut self, addr: u64, into: &mut [u8]) -> bool {
        if addr == 0 {
            return false;
        }
        let in_reach = addr.checked_add(into.len() as u64).is_some_and(|end| end <= USER_END);
        if self.budget == 0 || !in_reach || !self.memory.read(addr, into) {
            self.partial();
            return false;
        }
        self.budget -= 1;
        true
    }

    pub fn u32_at(&mut self, addr: u64) -> Option<u32> {
        self.bytes(addr).map(u32::from_ne_bytes)
    }

    pub fn u64_at(&mut self, addr: u64) -> Option<u64> {
        self.bytes(addr).map(u64::from_ne_bytes)
    }

    /// A string that the kernel reads up to and with its NUL, at most `max` bytes.
    pub fn string(&mut self, addr: u64, max: u64) {
        if !matches!(self.outcome, Outcome::Failed(_)) {
            let len = self.string_len(addr, max);
            self.tell(addr, len, Kind::Read);
        }
    }

    /// Bytes up to and with the NUL, at most `max`; those before the first that cannot be read.
    pub fn string_len(&mut self, addr: u64, max: u64) -> u64 {
        let mut len = 0;
        while len < max && addr != 0 {
            let at = addr.saturating_add(len);
            let to_page_end = 4096 - at % 4096;
            let step = to_page_end.min(max - len).min(STEP as u64);
            let mut chunk = [0; STEP];
            let Some(chunk) = chunk.get_mut(..step as usize) else { break };
            if !self.fetch(at, chunk) {
                break;
            }
            if let Some(nul) = chunk.iter().position(|&byte| byte == 0) {
                return len + nul as u64 + 1;
            }
            len += step;
        }
        len
    }

    /// An array of `count` iovecs, and the buffers in it, of which the call's result says how many bytes were moved.
    pub fn iovecs(&mut self, addr: u64, count: u64, kind: Kind) {
        let moved = match self.outcome {
            Outcome::Before => u64::MAX,
            Outcome::Done(moved) => moved,
            Outcome::Tried(_) | Outcome::Failed(_) => 0,
        };
        self.spread(addr, count, kind, moved);
    }

    /// An array of `count` iovecs, and the first `moved` bytes of the buffers in it.
    pub fn spread(&mut self, addr: u64, count: u64, kind: Kind, moved: u64) {
        if count > MAX_IOVECS {
            return;
        }
        self.reads(addr, count * 16);
        let mut left = moved;
        for i in 0..count {
            if left == 0 {
                return;
            }
            let Some((base, len)) = self.pair_at(addr.saturating_add(i * 16)) else { return };
            let here = len.min(left);
            self.tell(base, here, kind);
            left -= here;
        }
    }

    /// Two words that lie side by side, such as an iovec.
    pub fn pair_at(&mut self, addr: u64) -> Option<(u64, u64)> {
        let bytes = self.bytes::<16>(addr)?;
        let word = |at| word_in(&bytes, at);
        Some((word(0), word(8)))
    }

    /// A `sock_fprog`: a count, and a pointer to as many BPF instructions of eight bytes.
    pub fn filter_program(&mut self, addr: u64) {
        self.reads(addr, 16);
        if let Some((count, filter)) = self.pair_at(addr) {
            self.reads(filter, (count & 0xffff) * 8);
        }
    }
}

/// The word at `at` of a structure; 0 beyond its end.
pub fn word_in(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    word.map_or(0, |word| u64::from_ne_bytes(*word))
}

/// The 32-bit number at `at` of a structure; 0 beyond its end.
pub fn half_in(bytes: &[u8], at: usize) -> u32 {
    let half = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    half.map_or(0, |half| u32::from_ne_bytes(*half))
}
