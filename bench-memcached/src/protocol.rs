//! The memcached protocols: requests to bytes, bytes to replies. Pure functions; no connection, no state.
//!
//! Replies come in the order of the requests, so the decoder is told which kind of request it decodes for.

mod binary;
mod meta;
mod text;

use crate::pattern::Kind;
use clap::ValueEnum;

/// A dialect of memcached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// The classic text protocol: `set`, `get`.
    #[value(name = "memcache_text")]
    Text,
    /// The binary protocol: SET (0x01), GETK (0x0c).
    #[value(name = "memcache_binary")]
    Binary,
    /// The meta commands of the text protocol: `ms`, `mg`.
    #[value(name = "memcache_meta")]
    Meta,
}

/// A decoded reply. Borrows from the bytes that were received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// What the server says.
    pub outcome: Outcome<'a>,
    /// The key that the reply names, if it names one.
    pub key: Option<&'a [u8]>,
    /// The request number that the reply repeats, if the protocol does so.
    pub opaque: Option<u32>,
}

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The value is stored.
    Stored,
    /// The key's value.
    Hit {
        /// The flags stored with it.
        flags: u32,
        /// Its bytes.
        value: &'a [u8],
    },
    /// No such key.
    Miss,
    /// Any other well-formed answer, in words.
    Refused(String),
}

/// Bytes that are no reply to the request. The connection cannot be used after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

/// `Ok(None)`: more bytes are needed. Otherwise the reply and how many bytes it took.
pub type Decoded<'a> = Result<Option<(Reply<'a>, usize)>, Malformed>;

impl Protocol {
    /// Appends a request that stores `value` with `flags`, without expiry.
    pub fn encode_set(self, key: &[u8], flags: u32, value: &[u8], opaque: u32, out: &mut Vec<u8>) {
        match self {
            Self::Text => text::encode_set(key, flags, value, out),
            Self::Binary => binary::encode_set(key, flags, value, opaque, out),
            Self::Meta => meta::encode_set(key, flags, value, opaque, out),
        }
    }

    /// Appends a request for the value of `key`.
    pub fn encode_get(self, key: &[u8], opaque: u32, out: &mut Vec<u8>) {
        match self {
            Self::Text => text::encode_get(key, out),
            Self::Binary => binary::encode_get(key, opaque, out),
            Self::Meta => meta::encode_get(key, opaque, out),
        }
    }

    /// Decodes the reply to a request of `kind` at the start of `input`. A value above `max_value` bytes is
    /// malformed, so that a wrong length does not make the caller wait for bytes that never come.
    pub fn decode(self, kind: Kind, input: &[u8], max_value: usize) -> Decoded<'_> {
        match self {
            Self::Text => text::decode(kind, input, max_value),
            Self::Binary => binary::decode(kind, input, max_value),
            Self::Meta => meta::decode(kind, input, max_value),
        }
    }
}

/// Longest line of a text reply, in bytes: a key of 250 bytes and three numbers fit several times.
const MAX_LINE: usize = 2048;

/// The line at the start of `input`, without its end, and the bytes it takes with it.
fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, Malformed> {
    let window = &input[..input.len().min(MAX_LINE)];
    match memchr::memchr(b'\n', window) {
        Some(end) if end > 0 && window[end - 1] == b'\r' => Ok(Some((&window[..end - 1], end + 1))),
        Some(end) => Err(malformed("line without \\r", &window[..end])),
        None if input.len() >= MAX_LINE => Err(malformed("line too long", window)),
        None => Ok(None),
    }
}

/// The data block of `size` bytes at `input[at..]` with its line end: its bytes and where the next thing starts.
fn block(input: &[u8], at: usize, size: usize) -> Result<Option<(&[u8], usize)>, Malformed> {
    let end = at + size;
    match input.get(end..end + 2) {
        Some(b"\r\n") => Ok(Some((&input[at..end], end + 2))),
        Some(other) => Err(malformed("data block without line end", other)),
        None => Ok(None),
    }
}

/// A decimal number, digits only.
fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    word.first().filter(|c| c.is_ascii_digit())?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn checked_size(size: usize, max_value: usize) -> Result<usize, Malformed> {
    if size <= max_value {
        Ok(size)
    } else {
        Err(Malformed(format!("value of {size} bytes where at most {max_value} were stored")))
    }
}

fn malformed(what: &str, bytes: &[u8]) -> Malformed {
    Malformed(format!("{what}: \"{}\"", bytes[..bytes.len().min(80)].escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Protocol; 3] = [Protocol::Text, Protocol::Binary, Protocol::Meta];
    const KINDS: [Kind; 2] = [Kind::Set, Kind::Get];

    /// A server's GET hit, written from the protocol's description and not with the encoder.
    fn hit(protocol: Protocol, key: &[u8], flags: u32, value: &[u8], opaque: u32) -> Vec<u8> {
        let text_key = String::from_utf8(key.to_vec()).unwrap();
        match protocol {
            Protocol::Text => {
                let head = format!("VALUE {text_key} {flags} {}\r\n", value.len());
                [head.as_bytes(), value, b"\r\nEND\r\n"].concat()
            }
            Protocol::Meta => {
                let head = format!("VA {} k{text_key} f{flags} O{opaque}\r\n", value.len());
                [head.as_bytes(), value, b"\r\n"].concat()
            }
            Protocol::Binary => {
                let body = (4 + key.len() + value.len()) as u32;
                let mut out = vec![0x81, 0x0c];
                out.extend((key.len() as u16).to_be_bytes());
                out.extend([4, 0, 0, 0]);
                out.extend(body.to_be_bytes());
                out.extend(opaque.to_be_bytes());
                out.extend([0; 8]);
                out.extend(flags.to_be_bytes());
                [&out[..], key, value].concat()
            }
        }
    }

    proptest! {
        #[test]
        fn a_hit_is_decoded_whole_and_only_once_complete(
            key in "[!-~]{1,250}", flags: u32, opaque: u32,
            value in proptest::collection::vec(any::<u8>(), 0..300), tail in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            for protocol in ALL {
                let bytes = hit(protocol, key.as_bytes(), flags, &value, opaque);
                for cut in 0..bytes.len() {
                    prop_assert_eq!(protocol.decode(Kind::Get, &bytes[..cut], 300), Ok(None));
                }
                let with_tail = [&bytes[..], &tail].concat();
                let (reply, used) = protocol.decode(Kind::Get, &with_tail, 300).unwrap().unwrap();
                prop_assert_eq!(used, bytes.len());
                prop_assert_eq!(reply.outcome, Outcome::Hit { flags, value: &value[..] });
                prop_assert_eq!(reply.key, Some(key.as_bytes()));
                prop_assert!(reply.opaque.is_none_or(|o| o == opaque));
            }
        }

        #[test]
        fn noise_never_panics_and_never_takes_more_than_there_is(
            noise in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            for protocol in ALL {
                for kind in KINDS {
                    if let Ok(Some((_, used))) = protocol.decode(kind, &noise, 100) {
                        prop_assert!(used <= noise.len());
                    }
                }
            }
        }

        #[test]
        fn text_like_noise_never_panics(
            noise in "(VALUE|VA|EN|HD|END|STORED|SERVER_ERROR)?( ?[a-zA-Z0-9]{0,9}){0,5}\r\n[a-z]{0,40}\r?\n?(END)?\r?\n?",
        ) {
            for kind in KINDS {
                let _ = Protocol::Text.decode(kind, noise.as_bytes(), 100);
                let _ = Protocol::Meta.decode(kind, noise.as_bytes(), 100);
            }
        }
    }

    #[test]
    fn a_value_longer_than_stored_is_refused_at_once() {
        for protocol in ALL {
            let bytes = hit(protocol, b"key", 1, &[b'x'; 40], 0);
            assert!(protocol.decode(Kind::Get, &bytes[..bytes.len() - 20], 39).is_err(), "{protocol:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let endless = [b'x'; MAX_LINE];
        assert_eq!(Protocol::Text.decode(Kind::Get, &endless[1..], 10), Ok(None));
        assert!(Protocol::Text.decode(Kind::Get, &endless, 10).is_err());
    }
}
