//! The classic text protocol (memcached's doc/protocol.txt).

use super::{Decoded, Outcome, Reply, block, checked_size, line, malformed, number};
use crate::pattern::Kind;
use std::io::Write;

pub fn encode_set(key: &[u8], flags: u32, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"set ");
    out.extend_from_slice(key);
    let _ = write!(out, " {flags} 0 {}\r\n", value.len());
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

pub fn encode_get(key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"get ");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

pub fn decode(kind: Kind, input: &[u8], max_value: usize) -> Decoded<'_> {
    let Some((head, used)) = line(input)? else { return Ok(None) };
    let outcome = match (kind, head) {
        (Kind::Set, b"STORED") => Outcome::Stored,
        (Kind::Get, b"END") => Outcome::Miss,
        (Kind::Get, _) if head.starts_with(b"VALUE ") => return hit(input, head, used, max_value),
        _ if refusal(head) => Outcome::Refused(head.escape_ascii().to_string()),
        _ => return Err(malformed("unexpected line", head)),
    };
    Ok(Some((Reply { outcome, key: None, opaque: None }, used)))
}

fn hit<'a>(input: &'a [u8], head: &'a [u8], at: usize, max_value: usize) -> Decoded<'a> {
    let words: Vec<&[u8]> = head.split(|c| *c == b' ').collect();
    let (key, flags, size) = match words[..] {
        [_, key, flags, size] => (key, number(flags), number(size)),
        _ => return Err(malformed("bad VALUE line", head)),
    };
    let (Some(flags), Some(size)) = (flags, size) else { return Err(malformed("bad VALUE line", head)) };
    let Some((value, at)) = block(input, at, checked_size(size, max_value)?)? else { return Ok(None) };
    match line(&input[at..])? {
        None => Ok(None),
        Some((b"END", end)) => Ok(Some((
            Reply { outcome: Outcome::Hit { flags, value }, key: Some(key), opaque: None },
            at + end,
        ))),
        Some((other, _)) => Err(malformed("END expected", other)),
    }
}

/// Lines that answer any command without breaking the conversation.
pub fn refusal(head: &[u8]) -> bool {
    let word = head.split(|c| *c == b' ').next().unwrap_or_default();
    matches!(word, b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR" | b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_documented_form() {
        let mut out = Vec::new();
        encode_set(b"a", 5, b"xyz", &mut out);
        encode_get(b"b", &mut out);
        assert_eq!(out, b"set a 5 0 3\r\nxyz\r\nget b\r\n");
    }

    #[test]
    fn answers_to_the_other_kind_are_malformed() {
        assert!(decode(Kind::Get, b"STORED\r\n", 9).is_err());
        assert!(decode(Kind::Set, b"END\r\n", 9).is_err());
        assert!(decode(Kind::Set, b"VALUE a 0 1\r\nx\r\nEND\r\n", 9).is_err());
    }

    #[test]
    fn refusals_keep_their_words() {
        let (reply, used) = decode(Kind::Set, b"SERVER_ERROR out of memory\r\nEND", 9).unwrap().unwrap();
        assert_eq!(reply.outcome, Outcome::Refused("SERVER_ERROR out of memory".into()));
        assert_eq!(used, 28);
    }

    #[test]
    fn broken_hits_are_malformed() {
        let cases: [&[u8]; 6] = [
            b"VALUE a 0 3\r\nxyzw\r\nEND\r\n",
            b"VALUE a 0 3\r\nxy\r\nEND\r\n",
            b"VALUE a 0 3\r\nxyz\r\nSTORED\r\n",
            b"VALUE a -1 3\r\nxyz\r\nEND\r\n",
            b"VALUE a 4294967296 3\r\nxyz\r\nEND\r\n",
            b"VALUE a 3\r\nxyz\r\nEND\r\n",
        ];
        for case in cases {
            assert!(decode(Kind::Get, case, 9).is_err(), "{}", case.escape_ascii());
        }
    }
}
