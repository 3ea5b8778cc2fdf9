//! One memory access, and a list of them that lives on the stack.
//!
//! # Signal context
//! Plain values; may be used in a handler.

/// Direction of an [`Access`]. A read-modify-write is one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Memory to processor.
    Read,
    /// Processor to memory.
    Write,
}

/// `len` bytes from linear address `addr` on; `len` is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Linear address of the lowest byte.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// Direction.
    pub kind: Kind,
}

/// Room in [`Accesses`]. The most that one instruction makes is 62: `enter` with 31 nesting levels.
pub const CAPACITY: usize = 64;

/// The accesses of one instruction, in no particular order.
#[derive(Clone, Copy)]
pub struct Accesses {
    len: u8,
    items: [Access; CAPACITY],
}

impl Accesses {
    /// An empty list.
    pub const fn new() -> Self {
        Self { len: 0, items: [Access { addr: 0, len: 0, kind: Kind::Read }; CAPACITY] }
    }

    /// Appends an access; one of zero bytes is none.
    pub fn push(&mut self, addr: u64, len: u64, kind: Kind) {
        debug_assert!(usize::from(self.len) < CAPACITY, "no instruction makes that many accesses");
        if len != 0
            && let Some(slot) = self.items.get_mut(usize::from(self.len))
        {
            *slot = Access { addr, len, kind };
            self.len += 1;
        }
    }

    /// The accesses.
    pub fn as_slice(&self) -> &[Access] {
        self.items.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

impl Default for Accesses {
    fn default() -> Self {
        Self::new()
    }
}

impl core::ops::Deref for Accesses {
    type Target = [Access];
    fn deref(&self) -> &[Access] {
        self.as_slice()
    }
}

impl core::fmt::Debug for Accesses {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut list = f.debug_list();
        for access in self.iter() {
            list.entry(&format_args!("{:?} {:#x}+{}", access.kind, access.addr, access.len));
        }
        list.finish()
    }
}
