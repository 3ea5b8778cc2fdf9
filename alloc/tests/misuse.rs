//! Pointers that are not live objects, sizes that no address space holds.
#![allow(unsafe_code)]

use thermalloc_alloc::*;

/// # Safety
/// As `free`: nobody uses the object afterwards.
unsafe fn release(at: usize) -> Result<(), Misuse> {
    // SAFETY: forwarded to the caller.
    unsafe { free(at as *mut u8) }
}

fn check_object(size: usize, watch: Watch) {
    let at = allocate(size, 16, watch) as usize;
    // SAFETY: only the object's own free succeeds.
    unsafe {
        for inside in [1, 8, 16, size / 2, size - 1] {
            assert_eq!(release(at + inside), Err(Misuse::Interior { base: at }), "{size}, {inside}");
            assert_eq!(usable_size((at + inside) as *const u8), Err(Misuse::Interior { base: at }));
            let grown = reallocate((at + inside) as *mut u8, 10, 16, watch);
            assert_eq!(grown, Err(Misuse::Interior { base: at }));
        }
        assert_eq!(release(at), Ok(()));
        assert_eq!(release(at), Err(Misuse::DoubleFree), "{size}");
        assert_eq!(reallocate(at as *mut u8, 10, 16, watch), Err(Misuse::DoubleFree));
        assert_eq!(usable_size(at as *const u8), Err(Misuse::DoubleFree));
        trim();
        assert_eq!(release(at), Err(Misuse::DoubleFree), "{size}, memory given back");
    }
    check_invariants().unwrap();
}

#[test]
fn misuse_is_told_apart() {
    let local = 0u64;
    // SAFETY: none of these is an object, so nothing is freed.
    unsafe {
        assert_eq!(release(0x1000_0000_0000), Err(Misuse::Foreign), "before the heap exists");
        assert_eq!(free(std::ptr::null_mut()), Ok(()));
    }
    for watch in [Watch::Watched, Watch::Unwatched] {
        for size in [40, 100, 1000, 10_000, 500_000, 600_000, 5 << 20] {
            check_object(size, watch);
        }
    }
    let arena = arena();
    // SAFETY: none of these is an object, so nothing is freed.
    unsafe {
        assert_eq!(release(&raw const local as usize), Err(Misuse::Foreign));
        assert_eq!(release(arena.end), Err(Misuse::Foreign));
        assert_eq!(release(arena.start + arena.len() / 2), Err(Misuse::Foreign), "an address never used");
        assert_eq!(release(arena.start + arena.len() / 2 + 3), Err(Misuse::Foreign));
        assert_eq!(release(usize::MAX), Err(Misuse::Foreign));
        let object = allocate(100, 16, Watch::Unwatched);
        let slot = object as usize & !(SLOT_BYTES - 1);
        assert_eq!(release(slot + SLOT_BYTES - 16), Err(Misuse::Foreign), "a chunk never handed out");
        free(object).unwrap();
    }
    impossible_sizes();
    check_invariants().unwrap();
}

fn impossible_sizes() {
    for size in [usize::MAX, usize::MAX - 15, usize::MAX / 2, isize::MAX as usize, 1 << 46] {
        for align in [1, 16, 4096, 1 << 21] {
            assert!(allocate(size, align, Watch::Unwatched).is_null());
            assert!(allocate_zeroed(size, align, Watch::Watched).is_null());
        }
        let object = allocate(100, 16, Watch::Unwatched);
        // SAFETY: the object is ours; it stays where it is when it cannot grow.
        unsafe {
            assert_eq!(reallocate(object, size, 16, Watch::Unwatched), Ok(std::ptr::null_mut()));
            assert!(!resize_in_place(object, size));
            free(object).unwrap();
        }
    }
    assert!(allocate(100, 1 << 62, Watch::Unwatched).is_null());
}
