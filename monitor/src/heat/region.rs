//! Huge tables that cost memory only where they are touched.
//!
//! # Safety
//! A table is a private anonymous mapping, so it reads as zero until written. Elements are handed out by shared
//! reference only, and [`Zeroed`] demands that all-zero bytes are a valid element that changes through atomics alone.
//!
//! # Signal context
//! Access takes no lock; an index out of bounds gives `None` or an empty slice.
#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use thermalloc_sys::mem::{self, Errno, PAGE};

/// Element of a [`Region`].
///
/// # Safety
/// All-zero bytes are a valid value, there is nothing to drop, and all fields are atomics.
pub(super) unsafe trait Zeroed: Sync {
    /// Sets the element to all zero.
    fn zero(&self);
}

// SAFETY: an atomic integer.
unsafe impl Zeroed for AtomicU32 {
    fn zero(&self) {
        self.store(0, Relaxed);
    }
}

// SAFETY: an atomic integer.
unsafe impl Zeroed for AtomicU64 {
    fn zero(&self) {
        self.store(0, Relaxed);
    }
}

/// From this many bytes on, whole pages are given back rather than written.
const GIVE_BACK: usize = 64 << 10;

/// A table of `len` elements.
pub(super) struct Region<T> {
    base: NonNull<T>,
    len: usize,
}

// SAFETY: the mapping belongs to the region; elements are Sync and only shared references are given out.
unsafe impl<T: Zeroed> Send for Region<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed> Sync for Region<T> {}

impl<T: Zeroed> Region<T> {
    /// Reserves a table of `len` zeros.
    pub fn new(len: usize) -> Result<Self, Errno> {
        const { assert!(align_of::<T>() <= PAGE && size_of::<T>() > 0) };
        let bytes = len.max(1).checked_mul(size_of::<T>()).ok_or(Errno(libc::ENOMEM))?;
        let base = mem::map(bytes)?.cast::<T>();
        // Sparse by nature: a huge page for each element touched, or a core dump of it all, would be ruinous. Both
        // are advice: what the kernel thinks of it does not matter.
        for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP] {
            // SAFETY: the advice keeps the contents.
            let _ = unsafe { mem::advise(base.as_ptr() as usize, bytes, advice) };
        }
        Ok(Self { base, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, index: usize) -> Option<&T> {
        // SAFETY: within the mapping, which lives as long as the region and holds valid elements.
        (index < self.len).then(|| unsafe { self.base.add(index).as_ref() })
    }

    /// The elements of a range, as far as they exist.
    pub fn slice(&self, range: Range<usize>) -> &[T] {
        let end = range.end.min(self.len);
        let start = range.start.min(end);
        // SAFETY: as in `get`, for each of the elements.
        unsafe { slice::from_raw_parts(self.base.add(start).as_ptr(), end - start) }
    }

    /// Sets a range to zero and gives whole pages of large ranges back to the system.
    pub fn clear(&self, range: Range<usize>) {
        let elements = self.slice(range);
        let bytes = elements.as_ptr_range();
        let (start, end) = (bytes.start as usize, bytes.end as usize);
        let pages = start.next_multiple_of(PAGE)..end & !(PAGE - 1);
        let given_back = pages.len() >= GIVE_BACK && {
            // SAFETY: the pages belong to the mapping, and zero is a valid value of each element.
            unsafe { mem::advise(pages.start, pages.len(), libc::MADV_DONTNEED) }.is_ok()
        };
        if !given_back {
            elements.iter().for_each(T::zero);
            return;
        }
        // The elements that lie, if only in part, outside the pages.
        let head = (pages.start - start).div_ceil(size_of::<T>());
        let tail = (end - pages.end).div_ceil(size_of::<T>());
        elements.iter().take(head).for_each(T::zero);
        elements.iter().rev().take(tail).for_each(T::zero);
    }
}

impl<T> Drop for Region<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to the region, and every borrow of it has ended.
        let _ = unsafe { mem::unmap(self.base.as_ptr() as usize, self.len.max(1) * size_of::<T>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(len: usize) -> Region<AtomicU64> {
        let region = Region::new(len).unwrap();
        region.slice(0..len).iter().for_each(|element: &AtomicU64| element.store(7, Relaxed));
        region
    }

    #[test]
    fn clear_zeroes_exactly_its_range() {
        for (len, range) in [(100, 3..90), (100_000, 1..99_999), (100_000, 511..100_000), (100_000, 700..700)]
        {
            let region = filled(len);
            region.clear(range.clone());
            for (index, element) in region.slice(0..len).iter().enumerate() {
                let expected = if range.contains(&index) { 0 } else { 7 };
                assert_eq!(element.load(Relaxed), expected, "{index} of {range:?}");
            }
        }
    }

    #[test]
    fn out_of_bounds_is_nothing() {
        let region = filled(8);
        assert!(region.get(8).is_none());
        assert_eq!(region.slice(6..20).len(), 2);
        assert_eq!(region.slice(30..40).len(), 0);
        region.clear(9..1000);
    }
}
