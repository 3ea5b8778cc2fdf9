//! Progress of long work on stderr, where that is a terminal: one line that is overwritten, and cleared at the end. Short
//! work says nothing.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write, stderr};
use std::path::Path;
use std::time::{Duration, Instant};

/// Nothing is said before this time has passed, and nothing more often.
const PATIENCE: Duration = Duration::from_millis(300);

/// A line of progress.
pub struct Progress {
    shown: bool,
    enabled: bool,
    next: Instant,
}

impl Progress {
    /// Says nothing yet.
    pub fn new() -> Self {
        Self { shown: false, enabled: stderr().is_terminal(), next: Instant::now() + PATIENCE }
    }

    /// Says what is being done, if it is time to.
    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        if self.enabled && Instant::now() >= self.next {
            self.next = Instant::now() + PATIENCE;
            self.shown = true;
            let _ = write!(stderr(), "\r\x1b[Kthermalloc: {}", what());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// A file that tells how much of it has been read.
pub struct Watched {
    file: File,
    name: String,
    size: u64,
    done: u64,
    progress: Progress,
}

impl Watched {
    /// Opens the file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.chars().filter(|c| !c.is_control()).collect();
        Ok(Self { file, name, size, done: 0, progress: Progress::new() })
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.done += count as u64;
        let (name, size, done) = (&self.name, self.size, self.done);
        self.progress.tell(|| match (done.min(size) * 100).checked_div(size) {
            Some(percent) => format!("reading {name}: {percent} %"),
            None => format!("reading {name}"),
        });
        Ok(count)
    }
}
