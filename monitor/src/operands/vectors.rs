//! Vector, mask and MMX registers of a stopped thread, which gathers and masked operands depend on.
//!
//! # Safety
//! [`XsaveArea::from_frame`] trusts that its pointer is the floating-point state of a live signal frame; all
//! other reading is by checked slices.
//!
//! # Signal context
//! Reads the frame and nothing else; may be used in a handler.
#![allow(unsafe_code)]

use super::layout::{XsaveLayout, component};

/// Source of the registers that a signal frame keeps in its xsave area.
pub trait Vectors {
    /// zmm`number`; what the processor lacks reads as zero.
    fn vector(&self, number: usize) -> [u8; 64];
    /// k`number`.
    fn mask(&self, number: usize) -> u64;
    /// mm`number`.
    fn mmx(&self, number: usize) -> [u8; 8];
}

/// All registers zero: for callers that know that the instruction uses none.
#[derive(Clone, Copy, Debug)]
pub struct NoVectors;

impl Vectors for NoVectors {
    fn vector(&self, _: usize) -> [u8; 64] {
        [0; 64]
    }
    fn mask(&self, _: usize) -> u64 {
        0
    }
    fn mmx(&self, _: usize) -> [u8; 8] {
        [0; 8]
    }
}

/// Offsets within the legacy region (Intel SDM volume 1, table 10-2) and the xsave header behind it.
const STATUS_WORD: usize = 2;
const X87_REGISTERS: usize = 32;
const XMM_REGISTERS: usize = 160;
const SOFTWARE_RESERVED: usize = 464;
const XSTATE_BV: usize = 512;
/// `FP_XSTATE_MAGIC1`: the kernel says that an xsave area follows the legacy region.
const MAGIC: u32 = 0x4650_5853;

/// A standard-format xsave area, as the kernel puts one into a signal frame.
#[derive(Clone, Copy)]
pub struct XsaveArea<'a> {
    bytes: &'a [u8],
    layout: &'a XsaveLayout,
}

impl<'a> XsaveArea<'a> {
    /// An area of a known length; what lies beyond its end reads as zero.
    pub fn new(bytes: &'a [u8], layout: &'a XsaveLayout) -> Self {
        Self { bytes, layout }
    }

    /// The area that `uc_mcontext.fpregs` points to; empty if null.
    ///
    /// # Safety
    /// `fpregs` is null, or points to the floating-point state of a signal frame that outlives the result.
    pub unsafe fn from_frame(fpregs: *const u8, layout: &'a XsaveLayout) -> Self {
        if fpregs.is_null() {
            return Self::new(&[], layout);
        }
        // SAFETY: every frame has the 512 bytes of the legacy region.
        let legacy = unsafe { core::slice::from_raw_parts(fpregs, XSTATE_BV) };
        let len = match word(legacy, SOFTWARE_RESERVED) {
            // `xstate_size` of `_fpx_sw_bytes`, behind magic1, extended_size and the feature bits.
            MAGIC => word(legacy, SOFTWARE_RESERVED + 16) as usize,
            _ => XSTATE_BV,
        };
        // SAFETY: the kernel vouches for the length that it wrote into the frame.
        Self::new(unsafe { core::slice::from_raw_parts(fpregs, len) }, layout)
    }

    /// The bytes of the area.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Is the component saved in the area, and not in its initial state (all zero)?
    fn in_use(&self, number: usize) -> bool {
        // A frame without an xsave header has the legacy components.
        let saved = if self.bytes.len() > XSTATE_BV { word(self.bytes, XSTATE_BV) } else { 3 };
        saved & (1 << number) != 0
    }

    fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.bytes.get(offset..).and_then(|tail| tail.first_chunk()).copied().unwrap_or([0; N])
    }

    /// Entry `index` of a component that is an array of `N`-byte registers.
    fn entry<const N: usize>(&self, number: usize, index: usize) -> [u8; N] {
        match self.layout.offset(number) {
            Some(offset) if self.in_use(number) => self.read(offset + index * N),
            _ => [0; N],
        }
    }
}

impl Vectors for XsaveArea<'_> {
    fn vector(&self, number: usize) -> [u8; 64] {
        if number >= 16 {
            return self.entry(component::ZMM_HIGH, number - 16);
        }
        let mut value = [0; 64];
        if self.in_use(component::SSE) {
            value[..16].copy_from_slice(&self.read::<16>(XMM_REGISTERS + 16 * number));
        }
        value[16..32].copy_from_slice(&self.entry::<16>(component::YMM, number));
        value[32..].copy_from_slice(&self.entry::<32>(component::ZMM_UPPER, number));
        value
    }

    fn mask(&self, number: usize) -> u64 {
        u64::from_le_bytes(self.entry(component::MASKS, number))
    }

    fn mmx(&self, number: usize) -> [u8; 8] {
        if !self.in_use(component::X87) {
            return [0; 8];
        }
        // The area holds st(0) first, wherever the stack top is; mm registers are not relative to it.
        let top = usize::from(u16::from_le_bytes(self.read(STATUS_WORD)) >> 11);
        self.read(X87_REGISTERS + 16 * (number.wrapping_sub(top) & 7))
    }
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..).and_then(|tail| tail.first_chunk()).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}
