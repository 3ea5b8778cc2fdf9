//! The address space, as far as calls about it take pointers to structures, or need the pages they are about.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::Walk;
use libc::*;

pub const CALLS: &[Call] = &[
    (SYS_mincore, &[Special(mincore)]),
    (SYS_madvise, &[Special(madvise)]),
    (SYS_mlock, &[Special(populate)]),
    (SYS_mlock2, &[Special(populate)]),
    (SYS_process_madvise, &[InArray(1, 2, size_of::<iovec>())]),
    (SYS_mbind, &[Special(|walk| nodes_in(walk, 3, 4))]),
    (SYS_set_mempolicy, &[Special(|walk| nodes_in(walk, 1, 2))]),
    (SYS_get_mempolicy, &[Out(0, size_of::<c_int>()), Special(get_mempolicy)]),
    (SYS_migrate_pages, &[Special(|walk| nodes_in(walk, 2, 1)), Special(|walk| nodes_in(walk, 3, 1))]),
    (SYS_move_pages, &[InArray(2, 1, size_of::<u64>()), InArray(3, 1, 4), OutArray(4, 1, 4)]),
    (SYS_modify_ldt, &[Special(modify_ldt)]),
];

/// One byte for each page.
fn mincore(walk: &mut Walk<'_>) {
    walk.writes(walk.arg(2), walk.arg(1).div_ceil(4096));
}

/// Pages are faulted in, which protected ones refuse.
fn madvise(walk: &mut Walk<'_>) {
    match walk.int(2) {
        MADV_POPULATE_READ => walk.prepares(walk.arg(0), walk.arg(1), Kind::Read),
        MADV_POPULATE_WRITE => walk.prepares(walk.arg(0), walk.arg(1), Kind::Write),
        _ => {}
    }
}

/// As [`madvise`], for writing where that is allowed.
fn populate(walk: &mut Walk<'_>) {
    walk.prepares(walk.arg(0), walk.arg(1), Kind::Write);
}

/// Bytes of a node mask: `bits` counts one too many, and whole words are moved.
fn mask_bytes(bits: u64) -> u64 {
    /// A mask of more bits than a page holds is refused.
    const MOST: u64 = 4096 * 8;
    if bits > MOST { 0 } else { bits.saturating_sub(1).div_ceil(64) * 8 }
}

fn nodes_in(walk: &mut Walk<'_>, mask: u8, bits: u8) {
    walk.reads(walk.arg(mask), mask_bytes(walk.arg(bits)));
}

fn get_mempolicy(walk: &mut Walk<'_>) {
    walk.writes(walk.arg(1), mask_bytes(walk.arg(2)));
}

/// Functions 0 and 2 read the table out, the others set one entry of 16 bytes.
fn modify_ldt(walk: &mut Walk<'_>) {
    match walk.int(0) {
        0 | 2 => walk.moves(walk.arg(1), walk.arg(2), Kind::Write),
        _ => walk.reads(walk.arg(1), 16),
    }
}
