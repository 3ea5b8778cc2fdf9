//! The program's own errors: an exit status and one line that says what is wrong and what to do.

use std::io::Write;

/// Exit status of the tool's own errors.
pub const OWN_ERROR: u8 = 2;
/// Exit status when PROGRAM exists and cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// Exit status when PROGRAM does not exist.
pub const NOT_FOUND: u8 = 127;

/// Why the tool gave up.
#[derive(Debug)]
pub struct Failure {
    /// Exit status of the tool.
    pub status: u8,
    /// What is wrong; what to do.
    pub message: String,
}

impl Failure {
    /// A failure with the given exit status.
    pub fn new(status: u8, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// A failure with status 2.
    pub fn own(message: impl Into<String>) -> Self {
        Self::new(OWN_ERROR, message)
    }

    /// Prints the one line on stderr.
    pub fn print(&self) {
        say(&self.message);
    }
}

/// Prints one line about the tool's own doings on stderr; a closed stderr is no reason to stop.
pub fn say(message: &str) {
    let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _ = writeln!(std::io::stderr(), "thermalloc: {line}");
}
