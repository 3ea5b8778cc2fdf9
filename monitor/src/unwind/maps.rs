//! /proc/self/maps, read in pieces through the gate: no allocation, little stack.
//!
//! # Safety
//! System calls on a descriptor and a buffer of this file's own.
//!
//! # Signal context
//! System calls only.
#![allow(unsafe_code)]

use std::ops::Range;
use thermalloc_sys::gate;

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Addresses.
    pub range: Range<u64>,
    /// True for the stack that the kernel gave to the main thread.
    pub is_main_stack: bool,
}

/// The mapping that holds `address`.
pub fn holding(address: u64) -> Option<Mapping> {
    // SAFETY: the kernel reads a static C string.
    let fd = unsafe {
        gate::syscall(
            libc::SYS_openat,
            &[
                libc::AT_FDCWD as usize,
                c"/proc/self/maps".as_ptr() as usize,
                (libc::O_RDONLY | libc::O_CLOEXEC) as usize,
            ],
        )
    };
    let fd = usize::try_from(fd).ok()?;
    let mut scan = Scan::new(address);
    let mut buffer = [0u8; 512];
    let found = loop {
        // SAFETY: the kernel writes at most the buffer's length.
        let len = unsafe { gate::syscall(libc::SYS_read, &[fd, buffer.as_mut_ptr() as usize, buffer.len()]) };
        match usize::try_from(len) {
            Err(_) if len == -(libc::EINTR as isize) => {}
            Err(_) | Ok(0) => break None,
            Ok(len) => {
                if let Some(mapping) = buffer[..len].iter().find_map(|byte| scan.feed(*byte)) {
                    break Some(mapping);
                }
            }
        }
    };
    // SAFETY: the descriptor was opened above.
    unsafe { gate::syscall(libc::SYS_close, &[fd]) };
    found
}

const MAIN_STACK: [u8; 7] = *b"[stack]";

/// Looks for an address in lines of the form `start-end perms ... name`, byte by byte.
struct Scan {
    address: u64,
    start: u64,
    number: u64,
    in_numbers: bool,
    tail: [u8; MAIN_STACK.len()],
}

impl Scan {
    fn new(address: u64) -> Self {
        Self { address, start: 0, number: 0, in_numbers: true, tail: [0; MAIN_STACK.len()] }
    }

    /// The mapping, once its line has been seen to the end.
    fn feed(&mut self, byte: u8) -> Option<Mapping> {
        if byte == b'\n' {
            let range = self.start..self.number;
            let is_main_stack = self.tail == MAIN_STACK;
            *self = Self::new(self.address);
            return range.contains(&self.address).then_some(Mapping { range, is_main_stack });
        }
        match byte {
            b'-' if self.in_numbers => self.start = std::mem::take(&mut self.number),
            _ if self.in_numbers => match char::from(byte).to_digit(16) {
                Some(digit) => self.number = self.number << 4 | u64::from(digit),
                None => self.in_numbers = false,
            },
            _ => {
                self.tail.rotate_left(1);
                self.tail[MAIN_STACK.len() - 1] = byte;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/a-b\n\
        7f00a000-7f00b000 rw-p 00000000 00:00 0 \n\
        7ffd1000-7ffd3000 rw-p 00000000 00:00 0                          [stack]\n";

    fn find(address: u64) -> Option<Mapping> {
        let mut scan = Scan::new(address);
        TEXT.iter().find_map(|byte| scan.feed(*byte))
    }

    #[test]
    fn lines_are_understood() {
        let plain = |range| Some(Mapping { range, is_main_stack: false });
        assert_eq!(find(0x400000), plain(0x400000..0x452000));
        assert_eq!(find(0x7f00afff), plain(0x7f00a000..0x7f00b000));
        assert_eq!(find(0x7f00b000), None);
        assert_eq!(find(0x7ffd2000), Some(Mapping { range: 0x7ffd1000..0x7ffd3000, is_main_stack: true }));
    }

    #[test]
    fn a_local_variable_lies_in_a_mapping() {
        let local = 0u8;
        let at = &raw const local as u64;
        assert!(holding(at).expect("a mapping").range.contains(&at));
        assert_eq!(holding(8), None);
    }
}
