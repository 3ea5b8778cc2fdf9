//! Thread slots: one word for each thread, zero until set.
//!
//! Rust's `thread_local!` in a shared library may call `__tls_get_addr`, which may call malloc; a slot is read
//! by two instructions (the initial-exec model of the ELF TLS specification, Drepper 2013), so malloc and
//! signal handlers can use it.
//!
//! # Safety
//! Slots hold plain words; what a word points to is the owner's concern.
//!
//! # Signal context
//! A slot may be read and written in a handler.
#![allow(unsafe_code)]

/// Defines `mod $name` with `get() -> usize` and `set(usize)`, the calling thread's slot. `$symbol` must be
/// unique in the program.
#[macro_export]
macro_rules! thread_slot {
    ($(#[$doc:meta])* $vis:vis mod $name:ident = $symbol:literal) => {
        $(#[$doc])*
        #[allow(unsafe_code)]
        $vis mod $name {
            core::arch::global_asm!(
                ".pushsection .tbss,\"awT\",@nobits",
                ".p2align 3",
                concat!(".globl ", $symbol),
                concat!(".hidden ", $symbol),
                concat!(".type ", $symbol, ", @object"),
                concat!(".size ", $symbol, ", 8"),
                concat!($symbol, ":"),
                ".zero 8",
                ".popsection",
            );

            /// The calling thread's word.
            #[inline(always)]
            pub fn get() -> usize {
                let value: usize;
                // SAFETY: loads the slot's offset from the GOT and reads the word behind the thread pointer.
                unsafe {
                    core::arch::asm!(
                        concat!("mov {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov {0}, qword ptr fs:[{0}]",
                        out(reg) value,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                value
            }

            /// Sets the calling thread's word.
            #[inline(always)]
            pub fn set(value: usize) {
                // SAFETY: loads the slot's offset from the GOT and writes the word behind the thread pointer.
                unsafe {
                    core::arch::asm!(
                        concat!("mov {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov qword ptr fs:[{0}], {1}",
                        out(reg) _,
                        in(reg) value,
                        options(nostack, preserves_flags),
                    );
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    extern crate std;
    thread_slot!(mod slot = "thermalloc_sys_test_slot");

    #[test]
    fn each_thread_has_its_own_word() {
        slot::set(7);
        let other = std::thread::spawn(|| {
            let before = slot::get();
            slot::set(9);
            (before, slot::get())
        });
        assert_eq!(other.join().unwrap(), (0, 9));
        assert_eq!(slot::get(), 7);
    }
}
