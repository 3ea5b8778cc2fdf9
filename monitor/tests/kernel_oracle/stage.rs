//! The buffers and objects that one call is made with.
//!
//! # Safety
//! Blocks are mappings of the stage's own; their contents are touched only while they are open.
#![allow(unsafe_code)]

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use thermalloc_monitor::kernel::Memory;
use thermalloc_sys::{gate, mem};

pub const PAGE: u64 = 4096;

/// Whole pages around one buffer, with a page that is never accessible on either side.
pub struct Block {
    pub start: u64,
    pub pages: u64,
    /// The buffer's contents are filling, so that any byte written to it can be seen.
    pub room: Option<std::ops::Range<u64>>,
}

/// Everything that one call needs. Built anew for each call, and gone after it.
pub struct Stage {
    filling: u8,
    pub blocks: Vec<Block>,
    keep: Vec<OwnedFd>,
    directory: Option<PathBuf>,
    cleanups: Vec<Box<dyn FnOnce()>>,
}

impl Stage {
    pub fn new(filling: u8) -> Self {
        Self { filling, blocks: Vec::new(), keep: Vec::new(), directory: None, cleanups: Vec::new() }
    }

    /// A buffer of `len` bytes for the kernel to write, which ends where a page ends.
    pub fn room(&mut self, len: usize) -> u64 {
        let at = self.block(len);
        self.blocks.last_mut().unwrap().room = Some(at..at + len as u64);
        at
    }

    /// A buffer with these contents, which ends where a page ends.
    pub fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let at = self.block(bytes.len());
        // SAFETY: the block was just mapped, with room for the bytes before its end.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        at
    }

    pub fn words(&mut self, words: &[u64]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.bytes(&bytes)
    }

    pub fn ints(&mut self, ints: &[u32]) -> u64 {
        let bytes: Vec<u8> = ints.iter().flat_map(|int| int.to_ne_bytes()).collect();
        self.bytes(&bytes)
    }

    pub fn zeros(&mut self, len: usize) -> u64 {
        self.bytes(&vec![0; len])
    }

    /// A string with its NUL.
    pub fn text(&mut self, text: &str) -> u64 {
        self.bytes(&[text.as_bytes(), b"\0"].concat())
    }

    /// The path of `name` in a directory that goes away with the stage; it holds `file`, `folder`, and `link` (to `file`).
    pub fn path(&mut self, name: &str) -> u64 {
        let path = self.directory().join(name);
        self.text(path.to_str().unwrap())
    }

    pub fn directory(&mut self) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let make = || {
            let name =
                format!("kernel-oracle-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), b"contents of a file").unwrap();
            fs::create_dir(path.join("folder")).unwrap();
            std::os::unix::fs::symlink("file", path.join("link")).unwrap();
            path
        };
        self.directory.get_or_insert_with(make).clone()
    }

    /// Descriptor of a file in that directory, open for reading and writing.
    pub fn file(&mut self) -> u64 {
        let path = self.directory().join("file");
        let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        self.keep(OwnedFd::from(file))
    }

    /// Keeps a descriptor open for as long as the stage is there.
    pub fn keep(&mut self, fd: OwnedFd) -> u64 {
        let number = fd.as_raw_fd() as u64;
        self.keep.push(fd);
        number
    }

    /// Both ends of a pipe with these bytes in it.
    pub fn pipe(&mut self, contents: &[u8]) -> [u64; 2] {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two descriptors; each is owned by nobody else.
        let [reader, writer] = unsafe {
            assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK), 0);
            ends.map(|fd| OwnedFd::from_raw_fd(fd))
        };
        let (reader, writer) = (self.keep(reader), self.keep(writer));
        gate::write_all(writer as i32, contents);
        [reader, writer]
    }

    /// A word of a block.
    pub fn word(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        assert!(self.read(at, &mut word));
        u64::from_ne_bytes(word)
    }

    /// A call that prepares the one under test; it must succeed.
    pub fn need(&mut self, nr: i64, args: &[u64]) -> u64 {
        let args: Vec<usize> = args.iter().map(|&arg| arg as usize).collect();
        // SAFETY: the cases hand in pointers to blocks of this stage only.
        let result = unsafe { gate::syscall(nr, &args) };
        assert!(result >= 0, "preparing by call {nr}: error {}", -result);
        result as u64
    }

    /// As [`Stage::need`] for calls that return a descriptor.
    pub fn open(&mut self, nr: i64, args: &[u64]) -> u64 {
        let fd = self.need(nr, args) as i32;
        // SAFETY: the call has just returned it.
        self.keep(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// A call to make when the stage goes away; it must succeed.
    pub fn finally(&mut self, nr: i64, args: &[u64]) {
        let args = args.to_vec();
        self.later(move || {
            Stage::new(0).need(nr, &args);
        });
    }

    /// Does this when the stage goes away.
    pub fn later(&mut self, action: impl FnOnce() + 'static) {
        self.cleanups.push(Box::new(action));
    }

    /// Contents of all blocks.
    pub fn contents(&self) -> Vec<(u64, Vec<u8>)> {
        self.blocks
            .iter()
            .map(|block| {
                let mut bytes = vec![0; (block.pages * PAGE) as usize];
                assert!(self.read(block.start, &mut bytes));
                (block.start, bytes)
            })
            .collect()
    }

    /// Whether these bytes lie within one block.
    pub fn holds(&self, addr: u64, len: u64) -> bool {
        let inside = |block: &Block| block.start <= addr && addr + len <= block.start + block.pages * PAGE;
        self.blocks.iter().any(inside)
    }

    pub fn protect(&self, page: u64, protection: i32) {
        // SAFETY: the page belongs to a block of this stage.
        unsafe { mem::protect(page as usize, PAGE as usize, protection) }.unwrap();
    }

    fn block(&mut self, len: usize) -> u64 {
        let pages = (len as u64).div_ceil(PAGE).max(1);
        let whole = ((pages + 2) * PAGE) as usize;
        let start = mem::reserve(0, whole).unwrap().as_ptr() as u64 + PAGE;
        // SAFETY: the pages were just reserved for this block.
        unsafe {
            mem::protect(start as usize, (pages * PAGE) as usize, libc::PROT_READ | libc::PROT_WRITE)
                .unwrap();
            std::ptr::write_bytes(start as *mut u8, self.filling, (pages * PAGE) as usize);
        }
        self.blocks.push(Block { start, pages, room: None });
        start + pages * PAGE - len as u64
    }
}

impl Memory for Stage {
    fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        let found = self.holds(addr, into.len() as u64);
        if found {
            // SAFETY: the bytes lie within a block, which is open whenever it is looked at.
            unsafe { std::ptr::copy_nonoverlapping(addr as *const u8, into.as_mut_ptr(), into.len()) };
        }
        found
    }

    fn own_pid(&self) -> i32 {
        std::process::id() as i32
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for action in self.cleanups.drain(..) {
            action();
        }
        for block in &self.blocks {
            let (start, len) = ((block.start - PAGE) as usize, ((block.pages + 2) * PAGE) as usize);
            // SAFETY: the block's own mapping, which nothing refers to any more.
            let _ = unsafe { mem::unmap(start, len) };
        }
        if let Some(path) = &self.directory {
            let _ = fs::remove_dir_all(path);
        }
    }
}
