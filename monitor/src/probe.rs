//! What this machine and this process are: for the report's host part and for decisions at start.
//!
//! # Safety
//! Questions to the kernel that take no pointers.
#![allow(unsafe_code)]

use std::fs;

/// Threads of this process, by `/proc`; 1 if it cannot be read.
pub fn threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(1, |entries| entries.count())
}

/// Processor model, as `/proc/cpuinfo` names it.
pub fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map_or_else(String::new, |(_, name)| name.trim().to_owned())
}

/// Kernel release.
pub fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// The arguments of this process.
pub fn cmdline() -> Vec<String> {
    let bytes = fs::read("/proc/self/cmdline").unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    bytes.split(|&byte| byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// Path of the executable.
pub fn exe() -> String {
    fs::read_link("/proc/self/exe").map_or_else(|_| String::new(), |path| path.to_string_lossy().into_owned())
}

/// Parent's process id.
pub fn parent() -> u32 {
    // SAFETY: takes no pointers.
    unsafe { thermalloc_sys::gate::syscall(libc::SYS_getppid, &[]) as u32 }
}
