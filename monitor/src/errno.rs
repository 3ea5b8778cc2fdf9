//! errno across code of the runtime.
//!
//! # Safety
//! libc keeps an errno for each thread.
//!
//! # Signal context
//! Touches thread-local storage, which may lie in the watched heap: only where such an access is let through.
#![allow(unsafe_code)]

/// Puts errno back when it is dropped.
pub struct KeptErrno(i32);

impl KeptErrno {
    /// Remembers errno.
    #[inline]
    pub fn keep() -> Self {
        // SAFETY: the address of the calling thread's errno.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeptErrno {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `keep`.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
