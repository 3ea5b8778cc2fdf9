//! Large objects: growth in place, by moving pages, shrinking, alignment, contents.
#![allow(unsafe_code)]

use thermalloc_alloc::*;

const MIB: usize = 1 << 20;

/// A word at the start of each page, different for each.
fn mark(at: *mut u8, from: usize, to: usize) {
    for offset in (from.next_multiple_of(4096)..to - 8).step_by(4096) {
        // SAFETY: inside the object.
        unsafe { at.add(offset).cast::<usize>().write(offset ^ 0x5a5a) };
    }
}

fn check(at: *mut u8, to: usize) {
    for offset in (0..to - 8).step_by(4096) {
        // SAFETY: inside the object.
        assert_eq!(unsafe { at.add(offset).cast::<usize>().read() }, offset ^ 0x5a5a);
    }
}

fn resize(at: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the object is the test's.
    unsafe { reallocate(at, size, 16, Watch::Unwatched) }.unwrap()
}

fn grow_and_shrink() {
    let mut size = 600_000;
    let mut at = allocate(size, 16, Watch::Unwatched);
    mark(at, 0, size);
    let mut moves = 0;
    while size < 200 * MIB {
        let larger = size + size / 3;
        let before = at;
        at = resize(at, larger);
        moves += usize::from(at != before);
        check(at, size);
        mark(at, size, larger);
        size = larger;
        check_invariants().unwrap();
    }
    assert!(moves < 12, "{moves} moves: most growth is in place");
    let before = at;
    at = resize(at, 3 * MIB);
    assert_eq!(at, before, "shrinks in place");
    check(at, 3 * MIB);
    assert_eq!(usable_size(at), Ok(3 * MIB));
    at = resize(at, 100_000);
    assert!(object_at(at as usize).unwrap().class != ClassId::SPAN, "small again");
    check(at, 100_000);
    // SAFETY: not used again.
    unsafe { free(at) }.unwrap();
    check_invariants().unwrap();
}

/// A span that moved, shrank and came back must be clean when it should be.
fn zeroed_after_moves() {
    for round in 1..6 {
        let at = allocate_zeroed(round * 5 * MIB, 16, Watch::Unwatched);
        // SAFETY: a new object.
        let bytes = unsafe { std::slice::from_raw_parts(at, round * 5 * MIB) };
        assert!(bytes.chunks(4096).all(|page| page.iter().all(|&byte| byte == 0)));
        mark(at, 0, round * 5 * MIB);
        let at = resize(at, round * 12 * MIB);
        check(at, round * 5 * MIB);
        mark(at, 0, round * 12 * MIB);
        // SAFETY: not used again.
        unsafe { free(at) }.unwrap();
    }
}

fn alignments() {
    let mut objects = Vec::new();
    for shift in 0..27 {
        for size in [1, 100, 5000, 700_000, 2_500_000] {
            for watch in [Watch::Watched, Watch::Unwatched] {
                let at = allocate(size, 1 << shift, watch);
                assert!(!at.is_null() && (at as usize).is_multiple_of(1 << shift), "{size} {shift}");
                objects.push(at);
            }
        }
    }
    check_invariants().unwrap();
    // SAFETY: not used again.
    objects.into_iter().for_each(|at| unsafe { free(at) }.unwrap());
    check_invariants().unwrap();
}

fn huge() {
    let at = allocate(64 << 30, 16, Watch::Unwatched);
    assert!(!at.is_null(), "address space alone costs nothing");
    // SAFETY: the object's first and last byte.
    unsafe {
        at.write(1);
        at.add((64 << 30) - 1).write(2);
        assert_eq!(at.add((64 << 30) - 1).read(), 2);
        free(at).unwrap();
    }
    check_invariants().unwrap();
}

#[test]
fn spans() {
    grow_and_shrink();
    zeroed_after_moves();
    alignments();
    huge();
    trim();
    check_invariants().unwrap();
    assert_eq!(stats().in_use, 0);
}
