//! One access to memory, as whoever observed it hands it on to be charged.
//!
//! # Signal context
//! Plain values.

/// Whether memory was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Read.
    Read,
    /// Written.
    Write,
}

/// Who made an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// An instruction of the program.
    Program,
    /// The kernel, on the program's behalf.
    Kernel,
}

/// One access. A read-modify-write is two: a read and a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// First byte.
    pub addr: usize,
    /// Bytes; an access of none is no access.
    pub len: usize,
    /// Read or written.
    pub kind: Kind,
    /// By the program or by the kernel.
    pub by: By,
}
