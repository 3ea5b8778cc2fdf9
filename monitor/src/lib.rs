//! Turns traps into accesses and charges them to heap objects.

pub mod operands;
