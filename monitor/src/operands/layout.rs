//! Where the parts of an xsave area lie, and how long the area is.
//! Source: Intel SDM volume 1, chapter 13; CPUID leaf 0xD.
//!
//! # Safety
//! Runs CPUID and XGETBV, which read no memory.
//!
//! # Signal context
//! [`XsaveLayout::detect`] is for start-up (virtual machines trap CPUID, which is slow); the value it returns may
//! be used in a handler.
#![allow(unsafe_code)]

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

/// Bytes of the legacy (fxsave) region and the xsave header.
const LEGACY_AND_HEADER: u32 = 576;

/// Numbers of state components, which are also their bits in XCR0 and XSTATE_BV.
pub mod component {
    /// x87 and MMX registers.
    pub const X87: usize = 0;
    /// xmm0 to xmm15.
    pub const SSE: usize = 1;
    /// Upper halves of ymm0 to ymm15.
    pub const YMM: usize = 2;
    /// k0 to k7.
    pub const MASKS: usize = 5;
    /// Upper halves of zmm0 to zmm15.
    pub const ZMM_UPPER: usize = 6;
    /// zmm16 to zmm31.
    pub const ZMM_HIGH: usize = 7;
}

/// One state component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// In the standard format, bytes from the start of the area; 0 if this processor lacks the component.
    offset: u32,
    size: u32,
    /// In the compacted format, starts on a multiple of 64.
    aligned: bool,
}

/// The layout of this processor's xsave areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XsaveLayout {
    enabled: u64,
    parts: [Part; 32],
}

impl XsaveLayout {
    /// The legacy region and the header alone.
    pub const EMPTY: Self = Self { enabled: 0, parts: [Part { offset: 0, size: 0, aligned: false }; 32] };

    /// Asks the processor. Without XSAVE, or where the system has not enabled it, the layout has no components
    /// beyond the legacy region.
    pub fn detect() -> Self {
        const OSXSAVE: u32 = 1 << 27;
        if __cpuid(0).eax < 0xD || __cpuid(1).ecx & OSXSAVE == 0 {
            return Self::EMPTY;
        }
        let mut layout = Self { enabled: read_xcr0(), ..Self::EMPTY };
        for (number, part) in layout.parts.iter_mut().enumerate().skip(2) {
            if layout.enabled & (1 << number) != 0 {
                let leaf = __cpuid_count(0xD, number as u32);
                *part = Part { offset: leaf.ebx, size: leaf.eax, aligned: leaf.ecx & 2 != 0 };
            }
        }
        layout
    }

    /// Offset of a component in the standard format, in bytes from the start of the area.
    pub fn offset(&self, component: usize) -> Option<usize> {
        self.parts.get(component).filter(|part| part.offset != 0).map(|part| part.offset as usize)
    }

    /// Bytes up to the end of the last of the requested components, standard format.
    pub fn standard_len(&self, requested: u64) -> u64 {
        let ends = self.requested(requested).map(|part| part.offset + part.size);
        ends.fold(LEGACY_AND_HEADER, u32::max).into()
    }

    /// Bytes up to the end of the last of the requested components, compacted format.
    pub fn compacted_len(&self, requested: u64) -> u64 {
        self.requested(requested)
            .fold(LEGACY_AND_HEADER, |end, part| {
                let start = if part.aligned { end.next_multiple_of(64) } else { end };
                start + part.size
            })
            .into()
    }

    fn requested(&self, requested: u64) -> impl Iterator<Item = &Part> {
        let bits = requested & self.enabled;
        self.parts
            .iter()
            .enumerate()
            .filter(move |(number, _)| bits & (1 << number) != 0)
            .map(|(_, part)| part)
    }
}

fn read_xcr0() -> u64 {
    #[target_feature(enable = "xsave")]
    fn xcr0() -> u64 {
        // SAFETY: register 0 exists wherever XSAVE is enabled.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: the caller has seen the OSXSAVE bit.
    unsafe { xcr0() }
}
