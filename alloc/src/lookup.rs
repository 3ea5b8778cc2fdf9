//! From any address of the arena to the object that owns it.
//!
//! # Signal context
//! Everything but [`for_each_live`] may be used in a handler: a few loads, no lock. While another thread
//! changes what the address belongs to, the answer is what it was, what it will be, or none.

use crate::arena;
use crate::central::class_of;
use crate::classes::ClassId;
use crate::config::Watch;
use crate::meta::{HEAP, Kind, LIVE, NO_BIN, SLOT_BYTES, SLOT_SHIFT};
use crate::pool;
use crate::shape::table;

/// A chunk or span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// First address, in the program view.
    pub base: usize,
    /// Usable bytes.
    pub capacity: usize,
    /// Size class, or [`ClassId::SPAN`].
    pub class: ClassId,
    /// Slot of the first byte.
    pub slot: u32,
    /// Which chunk of its slab page; 0 for a span.
    pub index: u32,
    /// Does it lie in a watched slot?
    pub watched: bool,
    /// Is it in the program's hands? If not, it is a chunk that may become an object.
    pub live: bool,
}

/// The chunk or span that an address belongs to; `None` outside the arena, in free slots, and behind the end
/// of a span or of the last chunk of a slab page.
#[inline]
pub fn object_at(addr: usize) -> Option<Object> {
    if !arena::contains(addr) {
        return None;
    }
    let slot = HEAP.slot_of(addr);
    let entry = HEAP.slot(slot);
    match entry.kind() {
        Kind::Slab => chunk_at(addr, slot),
        Kind::Span => span_at(addr, slot),
        Kind::Tail => span_at(addr, entry.head.get()),
        Kind::Free | Kind::Retained => None,
    }
}

fn chunk_at(addr: usize, slot: u32) -> Option<Object> {
    let bin = HEAP.bin((slot as usize) << SLOT_SHIFT).get();
    if bin == NO_BIN {
        return None;
    }
    let id = class_of(bin as usize);
    let class = table().class(id);
    let index = class.index_of(addr & (SLOT_BYTES - 1));
    if index >= class.per_slab {
        return None;
    }
    let base = HEAP.slot_addr(slot) + index as usize * class.chunk_size as usize;
    Some(Object {
        base,
        capacity: class.chunk_size as usize,
        class: ClassId(id as u16),
        slot,
        index,
        watched: HEAP.slot(slot).watch() == Watch::Watched,
        live: HEAP.state_of(base).get() == LIVE,
    })
}

fn span_at(addr: usize, slot: u32) -> Option<Object> {
    let entry = HEAP.slot(slot);
    let base = HEAP.slot_addr(slot);
    let capacity = entry.bytes.get();
    let inside = entry.kind() == Kind::Span && addr.wrapping_sub(base) < capacity;
    inside.then(|| Object {
        base,
        capacity,
        class: ClassId::SPAN,
        slot,
        index: 0,
        watched: entry.watch() == Watch::Watched,
        live: HEAP.state_of(base).get() == LIVE,
    })
}

/// Is a slot in the watched part, and used?
#[inline]
pub fn slot_is_watched(slot: u32) -> bool {
    slot < HEAP.slots() && {
        let entry = HEAP.slot(slot);
        entry.kind() != Kind::Free && entry.watch() == Watch::Watched
    }
}

/// Does an address lie in a watched slot?
#[inline]
pub fn is_watched(addr: usize) -> bool {
    arena::contains(addr) && slot_is_watched(HEAP.slot_of(addr))
}

/// Calls `visit` with every live object, watched or not. Objects that other threads allocate or free
/// meanwhile may be missed or seen. Takes no lock.
pub fn for_each_live(mut visit: impl FnMut(Object)) {
    for region in pool::used_slots() {
        for slot in region {
            visit_slot(slot, &mut visit);
        }
    }
}

fn visit_slot(slot: u32, visit: &mut impl FnMut(Object)) {
    let start = HEAP.slot_addr(slot);
    match HEAP.slot(slot).kind() {
        Kind::Span => object_at(start).filter(|span| span.live).into_iter().for_each(visit),
        Kind::Slab => {
            for offset in HEAP.live_offsets(slot) {
                if let Some(object) =
                    chunk_at(start + offset, slot).filter(|object| object.base == start + offset)
                {
                    visit(object);
                }
            }
        }
        Kind::Free | Kind::Retained | Kind::Tail => {}
    }
}
