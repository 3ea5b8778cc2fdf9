//! The meta commands (memcached's doc/protocol.txt): `ms` and `mg`, which return the key (`k`), the client
//! flags (`f`) and a request number (`O`).

use super::text::refusal;
use super::{Decoded, Malformed, Outcome, Reply, block, checked_size, line, malformed, number};
use crate::pattern::Kind;
use std::io::Write;

pub fn encode_set(key: &[u8], flags: u32, value: &[u8], opaque: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ms ");
    out.extend_from_slice(key);
    let _ = write!(out, " {} F{flags} k O{opaque}\r\n", value.len());
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

pub fn encode_get(key: &[u8], opaque: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(b"mg ");
    out.extend_from_slice(key);
    let _ = write!(out, " k f v O{opaque}\r\n");
}

/// The flags that a reply line may carry.
#[derive(Default)]
struct Tokens<'a> {
    key: Option<&'a [u8]>,
    flags: Option<u32>,
    opaque: Option<u32>,
}

impl<'a> Tokens<'a> {
    fn parse(words: &[&'a [u8]], head: &[u8]) -> Result<Self, Malformed> {
        let mut tokens = Self::default();
        for word in words {
            let known = match word.split_first() {
                Some((b'k', key)) => tokens.key.replace(key).is_none(),
                Some((b'f', n)) => number(n).is_some_and(|n| tokens.flags.replace(n).is_none()),
                Some((b'O', n)) => number(n).is_some_and(|n| tokens.opaque.replace(n).is_none()),
                _ => false,
            };
            if !known {
                return Err(malformed("unexpected flag in", head));
            }
        }
        Ok(tokens)
    }
}

pub fn decode(kind: Kind, input: &[u8], max_value: usize) -> Decoded<'_> {
    let Some((head, used)) = line(input)? else { return Ok(None) };
    let words: Vec<&[u8]> = head.split(|c| *c == b' ').collect();
    match (kind, &words[..]) {
        (Kind::Set, [b"HD", rest @ ..]) => finish(Outcome::Stored, rest, head, used),
        (Kind::Set, [b"NS" | b"EX" | b"NF", rest @ ..]) => {
            finish(Outcome::Refused(head.escape_ascii().to_string()), rest, head, used)
        }
        (Kind::Get, [b"EN", rest @ ..]) => finish(Outcome::Miss, rest, head, used),
        (Kind::Get, [b"VA", size, rest @ ..]) => {
            let size = number(size).ok_or_else(|| malformed("bad VA line", head))?;
            let Some((value, used)) = block(input, used, checked_size(size, max_value)?)? else {
                return Ok(None);
            };
            let flags = Tokens::parse(rest, head)?.flags.ok_or_else(|| malformed("no flags in", head))?;
            finish(Outcome::Hit { flags, value }, rest, head, used)
        }
        _ if refusal(head) => finish(Outcome::Refused(head.escape_ascii().to_string()), &[], head, used),
        _ => Err(malformed("unexpected line", head)),
    }
}

fn finish<'a>(outcome: Outcome<'a>, rest: &[&'a [u8]], head: &[u8], used: usize) -> Decoded<'a> {
    let tokens = Tokens::parse(rest, head)?;
    Ok(Some((Reply { outcome, key: tokens.key, opaque: tokens.opaque }, used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_documented_form() {
        let mut out = Vec::new();
        encode_set(b"a", 5, b"xyz", 8, &mut out);
        encode_get(b"b", 9, &mut out);
        assert_eq!(out, b"ms a 3 F5 k O8\r\nxyz\r\nmg b k f v O9\r\n");
    }

    #[test]
    fn stored_and_miss() {
        let stored = decode(Kind::Set, b"HD ka O8\r\n", 9).unwrap().unwrap().0;
        assert_eq!(stored, Reply { outcome: Outcome::Stored, key: Some(b"a"), opaque: Some(8) });
        let miss = decode(Kind::Get, b"EN\r\n", 9).unwrap().unwrap().0;
        assert_eq!(miss, Reply { outcome: Outcome::Miss, key: None, opaque: None });
    }

    #[test]
    fn broken_replies_are_malformed() {
        let cases: [&[u8]; 5] = [
            b"VA 3 ka\r\nxyz\r\n",
            b"VA 3 ka f1 f1\r\nxyz\r\n",
            b"VA x ka f1\r\nxyz\r\n",
            b"VA 3 ka f1 z\r\nxyz\r\n",
            b"HD\r\n",
        ];
        for case in cases {
            assert!(decode(Kind::Get, case, 9).is_err(), "{}", case.escape_ascii());
        }
    }
}
