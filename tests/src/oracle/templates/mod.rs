//! The instructions that programs are made of, as templates in the assembler's words.
//!
//! `needs | lines`: needs are features of the CPU, registers that the lines write by themselves (`rax`), and `w16`, `w32`:
//! no narrower. Lines are separated by `;`. In braces, for the width W of this instance:
//!
//! | word | stands for |
//! |---|---|
//! | `r`, `r32` | a data register of W or 32 bits, possibly ah..bh |
//! | `a64`, `b64`, `c64`, ... | the first, second, third data register of this instance, all different |
//! | `q` | any register, to be read |
//! | `acc` | al, ax, eax or rax |
//! | `idx64` | the index register |
//! | `rounds64` | the counter of rounds |
//! | `m`, `m4`, `m4a` | memory of W bits or 4 bytes, aligned where it ends in `a`, with its size |
//! | `M4`, `M4a` | the same without its size; `ms`, `Ms`: the last operand once more |
//! | `P64` | memory with 64 valid bytes before and behind |
//! | `i`, `n`, `count`, `o` | a number: of W bits, 0 to 63, 0 to 7, 0 to 7 times 8 |
//! | `x`, `y`, `z` | a vector register below 16; `X`, `Y`, `Z`: below 32; `v0`..`v2`: different numbers |
//! | `k`, `mask`, `zero` | an opmask; one in braces; `z` in braces |
//! | `mixed`, `reindex` | another value for the pointer that varies, for the index |
//! | `base128` | a pointer with 128 valid bytes before and behind |
//! | `table2`, `offsets4` | a jump table of so many labels, named `u` |
//! | `cc`, `alu`, `lalu`, `sh`, `bt` | a condition, an operation |
//! | `l` | a label further on; `u`: a label of this instance |
//! | `s` | a subroutine |
//! | `F` | this line faults: the handler goes on behind it |

mod control;
mod integer;
mod vectors;

pub use control::{CONTROL, FAULTS, POINTERS, SYSTEM};
pub use integer::{INTEGER, STRINGS};
pub use vectors::VECTORS;
