//! Entry points that know who called: each exported function jumps to its implementation with the caller's return
//! address, stack pointer and frame pointer as arguments four to six.

/// Exports C functions of up to three word-sized arguments that continue in `fn implementation(a, b, c, ip, sp, bp)`.
macro_rules! export {
    ($($(#[$doc:meta])* $name:ident => $implementation:path;)*) => {$(
        $(#[$doc])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(a: usize, b: usize, c: usize) -> usize {
            core::arch::naked_asm!(
                "mov rcx, [rsp]",
                "lea r8, [rsp + 8]",
                "mov r9, rbp",
                "jmp {}",
                sym $implementation,
            )
        }
    )*};
}

pub(crate) use export;
