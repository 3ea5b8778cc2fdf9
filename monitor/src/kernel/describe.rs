//! Argument descriptors: the words in which the tables say what the kernel does with a pointer.
//!
//! Numbers of arguments count from 0. A null pointer is never touched, whatever the descriptor says.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::walk::{PATH_MAX, Walk};

/// What one argument of a call (or several together) points to.
#[derive(Clone, Copy)]
pub enum Arg {
    /// A file name at `.0`: NUL-terminated, at most 4096 bytes.
    Path(u8),
    /// Another string at `.0`, of which at most `.1` bytes are read.
    Text(u8, u64),
    /// A structure at `.0` of `.1` bytes, read.
    In(u8, usize),
    /// A structure at `.0` of `.1` bytes, written on success.
    Out(u8, usize),
    /// A structure at `.0` of `.1` bytes, read, and written on success.
    InOut(u8, usize),
    /// A buffer at `.0`, of as many bytes as argument `.1` says, read whole.
    InBytes(u8, u8),
    /// A buffer at `.0`, of as many bytes as argument `.1` says, written whole.
    OutBytes(u8, u8),
    /// A buffer at `.0`, of as many bytes as argument `.1` says; the result tells how many were read.
    Sent(u8, u8),
    /// A buffer at `.0`, of as many bytes as argument `.1` says; the result tells how many were written.
    Filled(u8, u8),
    /// An array at `.0`, of as many elements as argument `.1` says, each `.2` bytes, read whole.
    InArray(u8, u8, usize),
    /// An array at `.0`, of as many elements as argument `.1` says, each `.2` bytes, written whole.
    OutArray(u8, u8, usize),
    /// An array at `.0`, of as many elements as argument `.1` says, each `.2` bytes; the result tells how many
    /// elements were written.
    FilledArray(u8, u8, usize),
    /// An array of iovecs at `.0`, as many as argument `.1` says; the result tells how many bytes were read.
    SentVec(u8, u8),
    /// An array of iovecs at `.0`, as many as argument `.1` says; the result tells how many bytes were written.
    FilledVec(u8, u8),
    /// Memory besides what the other descriptors of the call say.
    More,
    /// Anything: the call is not understood.
    Anything,
    /// A function tells.
    Special(fn(&mut Walk<'_>)),
}

/// A call and its pointers.
pub type Call = (i64, &'static [Arg]);

impl Arg {
    /// Tells what this descriptor says about the call under examination.
    pub fn tell(self, walk: &mut Walk<'_>) {
        match self {
            Self::Path(at) => walk.string(walk.arg(at), PATH_MAX),
            Self::Text(at, max) => walk.string(walk.arg(at), max),
            Self::In(at, size) => walk.reads(walk.arg(at), size as u64),
            Self::Out(at, size) => walk.writes(walk.arg(at), size as u64),
            Self::InOut(at, size) => walk.updates(walk.arg(at), size as u64),
            Self::InBytes(at, len) => walk.reads(walk.arg(at), walk.arg(len)),
            Self::OutBytes(at, len) => walk.writes(walk.arg(at), walk.arg(len)),
            Self::Sent(at, len) => walk.moves(walk.arg(at), walk.arg(len), Kind::Read),
            Self::Filled(at, len) => walk.moves(walk.arg(at), walk.arg(len), Kind::Write),
            Self::InArray(at, count, size) => walk.reads(walk.arg(at), array(walk, count, size)),
            Self::OutArray(at, count, size) => walk.writes(walk.arg(at), array(walk, count, size)),
            Self::FilledArray(at, count, size) => {
                let full = array(walk, count, size);
                let len = walk.result().map_or(full, |n| full.min(n.saturating_mul(size as u64)));
                walk.writes(walk.arg(at), len);
            }
            Self::SentVec(at, count) => walk.iovecs(walk.arg(at), walk.arg(count), Kind::Read),
            Self::FilledVec(at, count) => walk.iovecs(walk.arg(at), walk.arg(count), Kind::Write),
            Self::More => walk.partial(),
            Self::Anything => walk.unknown(),
            Self::Special(function) => function(walk),
        }
    }
}

/// Bytes of an array whose number of elements is argument `count`, a 32-bit number.
fn array(walk: &Walk<'_>, count: u8, size: usize) -> u64 {
    u64::from(walk.uint(count)) * size as u64
}
