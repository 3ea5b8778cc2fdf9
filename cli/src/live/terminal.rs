//! The terminal while `top --pid` owns it: keys come one by one, the screen is drawn over in place; all is as it was
//! afterwards, whichever way this ends.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Read, Write, stdin, stdout};
use std::time::Duration;

/// What was pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// The end is asked for, or there is nobody to ask.
    Quit,
    /// Sort by something else.
    Sort,
    /// Anything else, or nothing.
    Other,
}

/// A terminal under control.
pub struct Terminal {
    before: Termios,
}

impl Terminal {
    /// `None`: stdin or stdout is no terminal.
    pub fn take() -> Option<Self> {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return None;
        }
        let before = tcgetattr(stdio::stdin()).ok()?;
        let mut raw = before.clone();
        // Ctrl-C and Ctrl-Z come as keys, so that nothing ends with the terminal in this state.
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdio::stdin(), OptionalActions::Now, &raw).ok()?;
        let _ = write!(stdout(), "\x1b[?1049h\x1b[?25l").and_then(|()| stdout().flush());
        Some(Self { before })
    }

    /// Draws over what was there.
    pub fn draw(&self, text: &str) {
        let lines: String = text.lines().map(|line| format!("{line}\x1b[K\r\n")).collect();
        let _ = write!(stdout(), "\x1b[H{lines}\x1b[J").and_then(|()| stdout().flush());
    }

    /// Waits for a key, not longer than this.
    pub fn key(&self, patience: Duration) -> Key {
        let (input, limit) =
            (stdio::stdin(), Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() });
        let mut waiting = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut waiting, Some(&limit)) {
            Ok(count) if count > 0 => {}
            _ => return Key::Other,
        }
        let mut bytes = [0; 16];
        match stdin().lock().read(&mut bytes) {
            // Readable without anything to read: the terminal is gone.
            Ok(0) | Err(_) => Key::Quit,
            // 3 and 4 are Ctrl-C and Ctrl-D.
            Ok(count) if bytes[..count].iter().any(|byte| matches!(byte, b'q' | b'Q' | 3 | 4)) => Key::Quit,
            Ok(count) if bytes[..count].contains(&b's') => Key::Sort,
            Ok(_) => Key::Other,
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = write!(stdout(), "\x1b[?25h\x1b[?1049l").and_then(|()| stdout().flush());
        let _ = tcsetattr(stdio::stdin(), OptionalActions::Now, &self.before);
    }
}
