//! One client's conversation: bytes in, bytes out, no socket.

use crate::command::{Command, Condition, Line, parse};
use crate::counters::Counters;
use crate::store::{Store, Stored, Sum};
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Largest value, in bytes.
const MAX_VALUE: usize = 1 << 20;
/// Longest line; only `get` with many keys comes near.
const MAX_LINE: usize = 64 << 10;
/// Output that is sent before more input is looked at.
const MAX_OUTPUT: usize = 256 << 10;

/// What the connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the output, then read more input.
    Read,
    /// Send the output, then go on with the input at hand.
    Continue,
    /// Send the output, then close.
    Close,
    /// Close, and end the service.
    Shutdown,
}

/// A storage command whose data block is awaited.
struct Pending {
    condition: Condition,
    key: Box<[u8]>,
    flags: u32,
    expiry: i64,
    size: usize,
    noreply: bool,
}

/// A client's conversation with the store.
pub struct Session<'a> {
    store: &'a Store,
    counters: &'a Counters,
    pending: Option<Pending>,
    /// Bytes of a refused data block still to be skipped.
    skip: usize,
}

impl<'a> Session<'a> {
    pub fn new(store: &'a Store, counters: &'a Counters) -> Self {
        Self { store, counters, pending: None, skip: 0 }
    }

    /// Takes complete commands off the front of `input` and appends their answers to `output`.
    pub fn feed(&mut self, input: &mut Vec<u8>, output: &mut Vec<u8>) -> Next {
        let now = now();
        let mut at = 0;
        let next = loop {
            if output.len() >= MAX_OUTPUT {
                break Next::Continue;
            }
            match self.step(&input[at..], output, now) {
                Ok(0) => break Next::Read,
                Ok(used) => at += used,
                Err(next) => break next,
            }
        };
        input.drain(..at);
        next
    }

    /// Handles one command or data block and returns its length; 0 if it is not complete.
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>, now: i64) -> Result<usize, Next> {
        if self.skip > 0 {
            let skipped = self.skip.min(input.len());
            self.skip -= skipped;
            return Ok(skipped);
        }
        if let Some(pending) = &self.pending {
            let Some(block) = input.get(..pending.size + 2) else { return Ok(0) };
            self.finish_store(block, output, now);
            return Ok(block.len());
        }
        let Some(end) = memchr::memchr(b'\n', input) else {
            if input.len() <= MAX_LINE {
                return Ok(0);
            }
            output.extend_from_slice(b"CLIENT_ERROR line too long\r\n");
            return Err(Next::Close);
        };
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        self.execute(parse(line), output, now)?;
        Ok(end + 1)
    }

    fn execute(&mut self, line: Line, output: &mut Vec<u8>, now: i64) -> Result<(), Next> {
        let before = output.len();
        match line.command {
            Err(words) => answer(output, words),
            Ok(Command::Get { keys, with_cas }) => self.get(&keys, with_cas, output, now),
            Ok(Command::Store { condition, key, flags, expiry, size }) => {
                let pending =
                    Pending { condition, key: key.into(), flags, expiry, size, noreply: line.noreply };
                self.begin_store(pending, output, now);
            }
            Ok(Command::Stats { topic }) => self.stats(topic, output),
            Ok(Command::Version) => answer(output, concat!("VERSION ", env!("CARGO_PKG_VERSION"))),
            Ok(Command::Verbosity) => answer(output, "OK"),
            Ok(Command::Quit) => return Err(Next::Close),
            Ok(Command::Shutdown) => return Err(Next::Shutdown),
            Ok(command) => self.change(command, output, now),
        }
        if line.noreply {
            output.truncate(before);
        }
        Ok(())
    }

    fn change(&self, command: Command, output: &mut Vec<u8>, now: i64) {
        match command {
            Command::Delete { key } => {
                answer(output, if self.store.delete(key, now) { "DELETED" } else { "NOT_FOUND" });
            }
            Command::Touch { key, expiry } => {
                answer(output, if self.store.touch(key, now, expiry) { "TOUCHED" } else { "NOT_FOUND" });
            }
            Command::Add { key, delta, negative } => match self.store.add(key, now, delta, negative) {
                Sum::Is(sum) => answer(output, &sum.to_string()),
                Sum::NotFound => answer(output, "NOT_FOUND"),
                Sum::NotANumber => {
                    answer(output, "CLIENT_ERROR cannot increment or decrement non-numeric value");
                }
            },
            Command::FlushAll { delay } => {
                self.store.flush(now, delay);
                answer(output, "OK");
            }
            _ => unreachable!("execute handles the commands that change nothing"),
        }
    }

    fn get(&self, keys: &[&[u8]], with_cas: bool, output: &mut Vec<u8>, now: i64) {
        for key in keys {
            let found = self.store.read(key, now, |item| {
                output.extend_from_slice(b"VALUE ");
                output.extend_from_slice(key);
                let _ = write!(output, " {} {}", item.flags, item.value.len());
                if with_cas {
                    let _ = write!(output, " {}", item.cas);
                }
                output.extend_from_slice(b"\r\n");
                output.extend_from_slice(&item.value);
                output.extend_from_slice(b"\r\n");
            });
            self.counters.get(found.is_some());
        }
        answer(output, "END");
    }

    fn begin_store(&mut self, pending: Pending, output: &mut Vec<u8>, now: i64) {
        if pending.size <= MAX_VALUE {
            self.pending = Some(pending);
            return;
        }
        // As in memcached: what a set could not replace must not stay either.
        if pending.condition == Condition::Always {
            self.store.delete(&pending.key, now);
        }
        self.skip = pending.size + 2;
        answer(output, "SERVER_ERROR object too large for cache");
    }

    fn finish_store(&mut self, block: &[u8], output: &mut Vec<u8>, now: i64) {
        let Some(pending) = self.pending.take() else { return };
        self.counters.set();
        let words = match block.strip_suffix(b"\r\n") {
            None => "CLIENT_ERROR bad data chunk",
            Some(value) => {
                let new = (pending.flags, pending.expiry, value.into());
                match self.store.store(&pending.key, now, pending.condition, new) {
                    Stored::Yes => "STORED",
                    Stored::No => "NOT_STORED",
                    Stored::Changed => "EXISTS",
                    Stored::NotFound => "NOT_FOUND",
                }
            }
        };
        if !pending.noreply {
            answer(output, words);
        }
    }

    fn stats(&self, topic: Option<&[u8]>, output: &mut Vec<u8>) {
        match topic {
            None => {
                let (items, bytes) = self.store.size();
                for (name, value) in self.counters.list(items, bytes) {
                    let _ = write!(output, "STAT {name} {value}\r\n");
                }
                answer(output, "END");
            }
            Some(b"reset") => {
                self.counters.reset();
                answer(output, "RESET");
            }
            Some(_) => answer(output, "ERROR"),
        }
    }
}

fn answer(output: &mut Vec<u8>, words: &str) {
    output.extend_from_slice(words.as_bytes());
    output.extend_from_slice(b"\r\n");
}

/// Seconds since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All answers to `input` handed over in the given pieces, and what comes next.
    fn converse<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Next) {
        let (store, counters) = (Store::new(), Counters::new());
        let mut session = Session::new(&store, &counters);
        let (mut input, mut output, mut next) = (Vec::new(), Vec::new(), Next::Read);
        for piece in pieces {
            input.extend_from_slice(piece);
            next = session.feed(&mut input, &mut output);
            if next != Next::Read {
                break;
            }
        }
        (output, next)
    }

    const TALK: &[u8] = b"set a 7 0 4\r\nx\r\ny\r\nget a b\r\nset big 0 0 2000000\r\n";

    #[test]
    fn values_may_hold_line_ends_and_large_ones_are_skipped() {
        let rest = [&[b'x'; 2_000_000][..], b"\r\nquit\r\n"].concat();
        let (output, next) = converse([TALK, &rest].into_iter());
        let expected =
            "STORED\r\nVALUE a 7 4\r\nx\r\ny\r\nEND\r\nSERVER_ERROR object too large for cache\r\n";
        assert_eq!((String::from_utf8(output).unwrap(), next), (expected.to_string(), Next::Close));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let (output, next) = converse([&[b'x'; MAX_LINE + 1][..]].into_iter());
        assert_eq!((&output[..], next), (&b"CLIENT_ERROR line too long\r\n"[..], Next::Close));
    }

    proptest! {
        #[test]
        fn answers_do_not_depend_on_how_the_input_is_cut(cuts in proptest::collection::vec(1usize..20, 1..60)) {
            let mut rest = TALK;
            let mut pieces = Vec::new();
            for cut in cuts {
                let (piece, more) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = more;
            }
            pieces.push(rest);
            prop_assert_eq!(converse(pieces.into_iter()), converse([TALK].into_iter()));
        }

        #[test]
        fn no_input_panics(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
            converse([&noise[..]].into_iter());
        }
    }
}
