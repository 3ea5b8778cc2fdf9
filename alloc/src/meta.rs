//! Where the metadata lies: side tables that are reserved once, found by address arithmetic, and cost memory
//! only where touched. None of it is inside the slots.
//!
//! | table | entry for each | says |
//! |---|---|---|
//! | states | 16 bytes of arena | is an object's first byte here ([`LIVE`]), was there ever one ([`DEAD`]) |
//! | bins | slot | size class and watched bit of a slab page, [`NO_BIN`] for everything else |
//! | slots | slot | a [`Slot`] |
//! | free bits | 16 bytes of arena | bit n of a slab page: chunk n is free and in no thread's cache |
//!
//! # Safety
//! The references given out are into tables that are mapped once, before `HEAP.len` is set, and never
//! unmapped; every entry is an atomic, so shared references are always sound. States and free bits of a slot
//! may be written only once it is committed.
//!
//! # Signal context
//! Everything here may be read in a handler.
#![allow(unsafe_code)]

use crate::cell::{Byte, Word, Word32, Word64};
use crate::config::Watch;

/// log2 of the bytes of a slot.
pub(crate) const SLOT_SHIFT: u32 = 20;
/// Bytes of a slot: a slab page, or part of a span.
pub const SLOT_BYTES: usize = 1 << SLOT_SHIFT;
/// Chunks of the smallest class (16 bytes) in a slab page.
pub const MAX_CHUNKS_PER_SLAB: usize = SLOT_BYTES / GRANULE;
/// log2 of the arena bytes that share a state byte.
pub(crate) const GRANULE_SHIFT: u32 = 4;
pub(crate) const GRANULE: usize = 1 << GRANULE_SHIFT;
/// Words of free bits of one slot.
pub(crate) const BIT_WORDS: usize = MAX_CHUNKS_PER_SLAB / 64;

/// State: an object was never here since the memory came from the system.
pub(crate) const VIRGIN: u8 = 0;
/// State: a live object's first byte is here.
pub(crate) const LIVE: u8 = 1;
/// State: a freed object's first byte was here.
pub(crate) const DEAD: u8 = 2;

/// Bit of a bin that says watched; the rest is the class.
pub(crate) const WATCHED_BIN: usize = 0x80;
/// In the bins table: not a slab page. No thread's cache has room in this bin.
pub(crate) const NO_BIN: u8 = 0xff;
/// Bins: two for each class, and unused ones.
pub(crate) const BINS: usize = 256;

/// The bin of a class.
#[inline(always)]
pub(crate) fn bin(class: usize, watch: Watch) -> u8 {
    (class | (watch.index() * WATCHED_BIN)) as u8
}

/// What a slot is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Never used, or its memory was given back.
    Free = 0,
    /// First slot of a free run whose memory was kept.
    Retained = 1,
    /// Slab page.
    Slab = 2,
    /// First slot of a span.
    Span = 3,
    /// Further slot of a run.
    Tail = 4,
}

/// No slot, in links.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Flag: the monitor was told that this run is committed.
pub(crate) const ANNOUNCED: u8 = 1;
/// Flag: the memory is not fresh, whatever the states say.
pub(crate) const STALE: u8 = 2;
/// Flag: the mapping differs from its neighbours' (pages were moved here by mremap, or huge pages were asked
/// for), so that it must be replaced when its memory is given back.
pub(crate) const ODD: u8 = 4;
/// Flag: the slot was a slab page since its memory came from the system, so its states say what chunks are
/// virgin.
pub(crate) const SLABBED: u8 = 8;

/// A slot's entry. Fields of a run are those of its first slot.
#[repr(C, align(64))]
pub(crate) struct Slot {
    kind: Byte,
    watched: Byte,
    flags: Byte,
    /// Slab: whether it is in its bin's list of pages with free chunks.
    pub(crate) listed: Byte,
    /// Slots of the run.
    pub(crate) run: Word32,
    /// Tail: the first slot of the run.
    pub(crate) head: Word32,
    /// Slab: chunks that are live or in a thread's cache.
    pub(crate) used: Word32,
    /// Slab: chunks from this one on were never handed out.
    pub(crate) fresh: Word32,
    /// Slab: set free bits.
    pub(crate) bits: Word32,
    /// Slab: no free bit is set below this word.
    pub(crate) scan: Word32,
    pub(crate) next: Word32,
    pub(crate) previous: Word32,
    /// Span: bytes of the object, whole pages.
    pub(crate) bytes: Word,
    /// Bytes from the start of the run that may hold memory.
    pub(crate) touched: Word,
    /// Span: bytes behind its end that it inherited with the run, as the pool accounts for them.
    pub(crate) tail: Word,
}

impl Slot {
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match self.kind.get() {
            1 => Kind::Retained,
            2 => Kind::Slab,
            3 => Kind::Span,
            4 => Kind::Tail,
            _ => Kind::Free,
        }
    }

    pub(crate) fn set_kind(&self, kind: Kind) {
        self.kind.set(kind as u8);
    }

    #[inline]
    pub(crate) fn watch(&self) -> Watch {
        Watch::from_bool(self.watched.get() != 0)
    }

    pub(crate) fn set_watch(&self, watch: Watch) {
        self.watched.set(watch as u8);
    }

    #[inline]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags.get() & flag != 0
    }

    pub(crate) fn raise(&self, flag: u8) {
        self.flags.set(self.flags.get() | flag);
    }

    pub(crate) fn lower(&self, flag: u8) {
        self.flags.set(self.flags.get() & !flag);
    }
}

/// Addresses of arena and tables; zero before the heap is set up.
#[repr(C, align(64))]
pub(crate) struct Heap {
    /// First address of the program view.
    pub(crate) base: Word,
    /// Bytes of the program view. Zero: nothing is ours, and no table may be read.
    pub(crate) len: Word,
    /// From program view to alias view; zero in the private view.
    pub(crate) displacement: Word,
    pub(crate) states: Word,
    /// The states less the base's granule number: the state of an address lies at `its granule number +
    /// this`.
    pub(crate) state_bias: Word,
    pub(crate) bins: Word,
    pub(crate) slots: Word,
    pub(crate) bits: Word,
}

pub(crate) static HEAP: Heap = Heap {
    base: Word::new(0),
    len: Word::new(0),
    displacement: Word::new(0),
    states: Word::new(0),
    state_bias: Word::new(0),
    bins: Word::new(0),
    slots: Word::new(0),
    bits: Word::new(0),
};

impl Heap {
    /// Offset of an address in the arena; beyond `len` for every other address.
    #[inline(always)]
    pub(crate) fn offset(&self, addr: usize) -> usize {
        addr.wrapping_sub(self.base.get())
    }

    /// Address of a slot's first byte in the program view.
    #[inline]
    pub(crate) fn slot_addr(&self, slot: u32) -> usize {
        self.base.get() + ((slot as usize) << SLOT_SHIFT)
    }

    /// Slots in the arena.
    #[inline]
    pub(crate) fn slots(&self) -> u32 {
        (self.len.get() >> SLOT_SHIFT) as u32
    }

    /// The slot of an address in the arena.
    #[inline]
    pub(crate) fn slot_of(&self, addr: usize) -> u32 {
        (self.offset(addr) >> SLOT_SHIFT) as u32
    }

    /// The state byte of the granule at an offset.
    #[inline(always)]
    pub(crate) fn state(&self, offset: usize) -> &'static Byte {
        debug_assert!(offset < self.len.get());
        // SAFETY: the table has a byte for each granule of the arena, and the offset is inside.
        unsafe { &*((self.states.get() + (offset >> GRANULE_SHIFT)) as *const Byte) }
    }

    /// Offsets within a slot where live objects start, low ones first.
    pub(crate) fn live_offsets(&self, slot: u32) -> impl Iterator<Item = usize> {
        const EACH: u64 = 0x0101_0101_0101_0101;
        const _: () = assert!(LIVE & 1 == 1 && VIRGIN & 1 == 0 && DEAD & 1 == 0);
        let first = core::ptr::from_ref(self.state((slot as usize) << SLOT_SHIFT)).cast::<Word64>();
        // SAFETY: the states of a slot are whole aligned words.
        let words = unsafe { core::slice::from_raw_parts(first, MAX_CHUNKS_PER_SLAB / 8) };
        words.iter().enumerate().flat_map(|(at, word)| {
            let mut live = word.get() & EACH;
            core::iter::from_fn(move || {
                let byte = (live != 0).then(|| live.trailing_zeros() as usize / 8)?;
                live &= live - 1;
                Some((at * 8 + byte) * GRANULE)
            })
        })
    }

    /// The state byte of an address in the arena.
    #[inline(always)]
    pub(crate) fn state_of(&self, addr: usize) -> &'static Byte {
        debug_assert!(self.offset(addr) < self.len.get());
        // SAFETY: the table has a byte for each granule of the arena, and the address is inside.
        unsafe { &*(self.state_bias.get().wrapping_add(addr >> GRANULE_SHIFT) as *const Byte) }
    }

    /// The bins entry of the slot at an offset.
    #[inline(always)]
    pub(crate) fn bin(&self, offset: usize) -> &'static Byte {
        debug_assert!(offset < self.len.get());
        // SAFETY: the table has a byte for each slot of the arena, and the offset is inside.
        unsafe { &*((self.bins.get() + (offset >> SLOT_SHIFT)) as *const Byte) }
    }

    /// A slot's entry.
    #[inline]
    pub(crate) fn slot(&self, slot: u32) -> &'static Slot {
        debug_assert!(slot < self.slots());
        // SAFETY: the table has an entry for each slot of the arena.
        unsafe { &*((self.slots.get() as *const Slot).add(slot as usize)) }
    }

    /// The free bits of a slab page.
    #[inline]
    pub(crate) fn free_bits(&self, slot: u32) -> &'static [Word64; BIT_WORDS] {
        debug_assert!(slot < self.slots());
        // SAFETY: the table has this many words for each slot of the arena.
        unsafe { &*((self.bits.get() as *const [Word64; BIT_WORDS]).add(slot as usize)) }
    }
}
