//! The operand decoder: from the code bytes at RIP and the registers of a stopped thread to every memory access
//! that executing this one instruction will make.
//!
//! Modules, lowest first:
//! - [`access`]: what one access is, and a list of them with fixed room.
//! - [`registers`]: general registers and segment bases.
//! - [`layout`]: where the parts of an xsave area lie.
//! - [`vectors`]: vector, mask and MMX registers, by default from a signal frame.
//! - [`address`]: effective addresses.
//! - `suppression`: which masked instructions read lanes that their mask turns off.
//! - [`lanes`]: gathers, scatters and masked operands.
//! - [`string`]: `rep` string instructions as whole ranges.
//! - [`class`]: what a single-stepper must know of an instruction beside its accesses.
//! - [`decode`]: the decoder itself.
//!
//! What counts as an access is what the instruction set says the instruction transfers: a conditional move reads
//! whether or not it moves, `cmpxchg` reads and writes whether or not it succeeds, a lane that a mask turns off
//! is not touched, a prefetch or a cache-line flush is no access.
//!
//! # Signal context
//! Everything here may run in a handler once a [`DecoderState`] exists: nothing allocates, locks or panics, and
//! no memory is read but the code bytes, the registers and the xsave area that the caller hands in.

pub mod access;
pub mod address;
pub mod class;
pub mod decode;
pub(crate) mod lanes;
pub mod layout;
pub mod registers;
pub mod string;
pub(crate) mod suppression;
pub mod vectors;

pub use access::{Access, Accesses, Kind};
pub use class::Class;
pub use decode::{Decoded, DecoderState};
pub use layout::XsaveLayout;
pub use registers::Registers;
pub use string::{RepString, StringOp};
pub use vectors::{NoVectors, Vectors, XsaveArea};
