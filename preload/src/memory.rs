//! Copying, filling and comparing memory for the runtime itself.
//!
//! The compiler turns moves of values into calls of these names. The runtime must not use libc's: their code is the program's too, and
//! may be patched, to jump into translations that trap while a handler holds a lock. The names are hidden, so the program keeps libc's.
//!
//! # Safety
//! As in C: the caller vouches for the ranges.
//!
//! # Signal context
//! A few instructions each, the fast string operations of the processor where ranges are long.
#![allow(unsafe_code)]

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.thermalloc_memory,\"ax\",@progbits",
    ".macro thermalloc_hidden name",
    ".globl \\name",
    ".hidden \\name",
    ".type \\name, @function",
    ".p2align 4",
    "\\name:",
    ".endm",
    // void *memcpy(void *to, const void *from, size_t len), and memmove: backwards where the ranges overlap so.
    "thermalloc_hidden memmove",
    "mov rax, rdi",
    "mov rcx, rdi",
    "sub rcx, rsi",
    "cmp rcx, rdx",
    "jb 2f",
    "thermalloc_hidden memcpy",
    "mov rax, rdi",
    "cmp rdx, 16",
    "jb 3f",
    "cmp rdx, 32",
    "ja 1f",
    "movups xmm0, [rsi]",
    "movups xmm1, [rsi + rdx - 16]",
    "movups [rdi], xmm0",
    "movups [rdi + rdx - 16], xmm1",
    "ret",
    "1:",
    // The string instruction takes its time to begin.
    "cmp rdx, 512",
    "ja 9f",
    "movups xmm1, [rsi + rdx - 16]",
    "lea r8, [rdi + rdx - 16]",
    "8:",
    "movups xmm0, [rsi]",
    "movups [rdi], xmm0",
    "add rsi, 16",
    "add rdi, 16",
    "cmp rdi, r8",
    "jb 8b",
    "movups [r8], xmm1",
    "ret",
    "9:",
    "mov rcx, rdx",
    "rep movsb",
    "ret",
    "2:",
    "lea rsi, [rsi + rdx - 1]",
    "lea rdi, [rdi + rdx - 1]",
    "mov rcx, rdx",
    "std",
    "rep movsb",
    "cld",
    "ret",
    "3:",
    "cmp edx, 8",
    "jb 4f",
    "mov rcx, [rsi]",
    "mov r8, [rsi + rdx - 8]",
    "mov [rdi], rcx",
    "mov [rdi + rdx - 8], r8",
    "ret",
    "4:",
    "cmp edx, 4",
    "jb 5f",
    "mov ecx, [rsi]",
    "mov r8d, [rsi + rdx - 4]",
    "mov [rdi], ecx",
    "mov [rdi + rdx - 4], r8d",
    "ret",
    "5:",
    "test edx, edx",
    "je 6f",
    "movzx ecx, byte ptr [rsi]",
    "movzx r8d, byte ptr [rsi + rdx - 1]",
    "cmp edx, 3",
    "jb 7f",
    "movzx r9d, byte ptr [rsi + 1]",
    "mov [rdi + 1], r9b",
    "7:",
    "mov [rdi], cl",
    "mov [rdi + rdx - 1], r8b",
    "6:",
    "ret",
    // void *memset(void *at, int byte, size_t len)
    "thermalloc_hidden memset",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    // int memcmp(const void *a, const void *b, size_t len), and bcmp
    "thermalloc_hidden bcmp",
    "thermalloc_hidden memcmp",
    "xor eax, eax",
    "8:",
    "cmp rdx, 8",
    "jb 9f",
    "mov rcx, [rdi]",
    "mov r8, [rsi]",
    "cmp rcx, r8",
    "jne 10f",
    "add rdi, 8",
    "add rsi, 8",
    "sub rdx, 8",
    "jmp 8b",
    "10:",
    "bswap rcx",
    "bswap r8",
    "cmp rcx, r8",
    "sbb eax, eax",
    "or eax, 1",
    "ret",
    "9:",
    "test rdx, rdx",
    "je 12f",
    "movzx eax, byte ptr [rdi]",
    "movzx ecx, byte ptr [rsi]",
    "sub eax, ecx",
    "jne 11f",
    "inc rdi",
    "inc rsi",
    "dec rdx",
    "jmp 9b",
    "12:",
    "xor eax, eax",
    "11:",
    "ret",
    // size_t strlen(const char *text)
    "thermalloc_hidden strlen",
    "xor eax, eax",
    "13:",
    "cmp byte ptr [rdi + rax], 0",
    "je 14f",
    "inc rax",
    "jmp 13b",
    "14:",
    "ret",
    ".purgem thermalloc_hidden",
    ".popsection",
);

#[cfg(test)]
mod tests {
    // The test binary is linked with the functions above, so plain slices exercise them.
    #[test]
    fn ranges_of_every_length_and_overlap() {
        for len in (0..100usize).chain([500, 511, 512, 513, 530]) {
            let from: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let mut to = vec![0xee; len + 2];
            to[1..len + 1].copy_from_slice(&from);
            assert_eq!((to[0], to[len + 1]), (0xee, 0xee));
            assert_eq!(to[1..len + 1], from);
            for shift in 0..len {
                let mut moved = from.clone();
                moved.copy_within(0..len - shift, shift);
                assert!(moved[shift..].iter().enumerate().all(|(at, &byte)| byte == at as u8));
                let mut moved = from.clone();
                moved.copy_within(shift..len, 0);
                assert!(
                    moved[..len - shift].iter().enumerate().all(|(at, &byte)| byte == (at + shift) as u8)
                );
                let mut other = from.clone();
                other[shift] ^= 0x80;
                assert_eq!(from.cmp(&other), from[shift].cmp(&other[shift]));
            }
            to.fill(7);
            assert!(to.iter().all(|&byte| byte == 7));
        }
    }
}
