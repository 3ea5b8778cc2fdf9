//! Writing a report so that whoever looks finds the old one or the new one, whole.
//!
//! A temporary file in the same directory is renamed when it is complete. What is no regular file (a pipe, /dev/null) is
//! written to directly. All system calls go through the gate, for the program's own are under watch.
//!
//! # Safety
//! System calls read live buffers and C strings that outlast them.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use thermalloc_format::Report;
use thermalloc_sys::gate::syscall;
use thermalloc_sys::mem::{Errno, check};

/// Why a report was not written. Displays as one line.
#[derive(Debug)]
pub struct WriteError {
    /// Where it should have gone.
    pub path: PathBuf,
    /// What the system said.
    pub error: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the report to {}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Writes a report to `path`, all or nothing.
pub fn write_report(report: &Report, path: &Path) -> Result<(), WriteError> {
    write(report, path).map_err(|error| WriteError { path: path.to_path_buf(), error })
}

fn write(report: &Report, path: &Path) -> io::Result<()> {
    let target = c_string(path)?;
    if is_special(&target) {
        // Not to wait for the reader of a pipe.
        return File::open(&target, libc::O_WRONLY | libc::O_NONBLOCK)?.fill(report);
    }
    let temporary = temporary(path)?;
    let file = File::open(&temporary, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NOFOLLOW)?;
    let written = file.fill(report).and_then(|()| rename(&temporary, &target));
    if written.is_err() {
        unlink(&temporary);
    }
    written
}

/// A file in the same directory whose name nobody else uses.
fn temporary(path: &Path) -> io::Result<CString> {
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    // SAFETY: getpid takes no argument.
    let pid = unsafe { syscall(libc::SYS_getpid, &[]) };
    let directory = path.parent().unwrap_or(Path::new(""));
    c_string(&directory.join(format!(".heat.{pid}.{}.tmp", WRITTEN.fetch_add(1, Relaxed))))
}

fn c_string(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the path contains a null byte"))
}

/// Whether something is there that is no regular file. (A directory is left to `rename` to refuse.)
fn is_special(path: &CString) -> bool {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, stat.as_mut_ptr() as usize, 0];
    // SAFETY: the kernel reads a C string and fills a stat structure; both are live.
    let found = unsafe { syscall(libc::SYS_newfstatat, &arguments) } == 0;
    // SAFETY: plain integers, zeroed.
    let kind = unsafe { stat.assume_init() }.st_mode & libc::S_IFMT;
    found && kind != libc::S_IFREG && kind != libc::S_IFDIR
}

fn rename(from: &CString, to: &CString) -> io::Result<()> {
    // SAFETY: two live C strings.
    result(unsafe { syscall(libc::SYS_rename, &[from.as_ptr() as usize, to.as_ptr() as usize]) }).map(drop)
}

fn unlink(path: &CString) {
    // SAFETY: a live C string.
    unsafe { syscall(libc::SYS_unlink, &[path.as_ptr() as usize]) };
}

fn result(value: isize) -> io::Result<usize> {
    check(value).map_err(|Errno(errno)| io::Error::from_raw_os_error(errno))
}

/// An open file.
struct File(usize);

impl File {
    fn open(path: &CString, flags: i32) -> io::Result<Self> {
        let flags = flags | libc::O_CLOEXEC;
        let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0o644];
        // SAFETY: the kernel reads a live C string.
        result(unsafe { syscall(libc::SYS_openat, &arguments) }).map(Self)
    }

    /// Writes the report and a newline, and closes the file: some file systems report errors only then.
    fn fill(mut self, report: &Report) -> io::Result<()> {
        let mut buffer = BufWriter::with_capacity(1 << 16, &mut self);
        serde_json::to_writer(&mut buffer, report)?;
        buffer.write_all(b"\n")?;
        buffer.flush()?;
        drop(buffer);
        let closed = self.close();
        std::mem::forget(self);
        closed
    }

    fn close(&self) -> io::Result<()> {
        // SAFETY: the descriptor is ours.
        result(unsafe { syscall(libc::SYS_close, &[self.0]) }).map(drop)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // After an error that is already on its way to the user.
        let _ = self.close();
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the kernel reads a live slice.
        result(unsafe { syscall(libc::SYS_write, &[self.0, bytes.as_ptr() as usize, bytes.len()]) })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("thermalloc-output-{}-{name}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn report() -> Report {
        Report { format: "thermalloc-heat".into(), version: 1, objects_omitted: 7, ..Report::default() }
    }

    #[test]
    fn a_report_replaces_the_one_before() {
        let scratch = Scratch::new("replace");
        let path = scratch.0.join("heat.json");
        std::fs::write(&path, "old and longer than nothing").unwrap();
        write_report(&report(), &path).unwrap();
        assert_eq!(thermalloc_format::read(&path).unwrap(), report());
        assert_eq!(scratch.names(), ["heat.json"]);
    }

    #[test]
    fn a_failure_leaves_the_old_report_and_no_temporary() {
        let scratch = Scratch::new("fail");
        let path = scratch.0.join("heat.json");
        std::fs::create_dir(&path).unwrap();
        let error = write_report(&report(), &path).unwrap_err();
        assert_eq!(error.error.raw_os_error(), Some(libc::EISDIR));
        assert_eq!(scratch.names(), ["heat.json"]);
        let line = error.to_string();
        assert!(line.contains(path.to_str().unwrap()) && line.contains("directory") && !line.contains('\n'));
    }

    #[test]
    fn bad_paths_are_errors() {
        let missing = Path::new("/nonexistent-directory/heat.json");
        assert_eq!(write_report(&report(), missing).unwrap_err().error.raw_os_error(), Some(libc::ENOENT));
        let null = Path::new("a\0b");
        assert_eq!(write_report(&report(), null).unwrap_err().error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn devices_are_written_to_not_replaced() {
        write_report(&report(), Path::new("/dev/null")).unwrap();
        assert!(!std::fs::symlink_metadata("/dev/null").unwrap().is_file());
        let full = write_report(&report(), Path::new("/dev/full")).unwrap_err();
        assert_eq!(full.error.raw_os_error(), Some(libc::ENOSPC));
    }
}
