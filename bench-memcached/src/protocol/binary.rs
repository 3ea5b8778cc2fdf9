//! The binary protocol (memcached's BinaryProtocolRevamped): SET and GETK, whose hit repeats the key.

use super::{Decoded, Malformed, Outcome, Reply, checked_size};
use crate::pattern::Kind;

const REQUEST: u8 = 0x80;
const RESPONSE: u8 = 0x81;
const SET: u8 = 0x01;
const GETK: u8 = 0x0c;
const HEADER: usize = 24;
const OK: u16 = 0;
const NOT_FOUND: u16 = 1;
/// Longest error text that a server may send, in bytes.
const MAX_MESSAGE: usize = 2048;

pub fn encode_set(key: &[u8], flags: u32, value: &[u8], opaque: u32, out: &mut Vec<u8>) {
    header(SET, key.len(), 8, value.len(), opaque, out);
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&0u32.to_be_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

pub fn encode_get(key: &[u8], opaque: u32, out: &mut Vec<u8>) {
    header(GETK, key.len(), 0, 0, opaque, out);
    out.extend_from_slice(key);
}

fn header(opcode: u8, key: usize, extras: usize, value: usize, opaque: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[REQUEST, opcode]);
    out.extend_from_slice(&(key as u16).to_be_bytes());
    out.extend_from_slice(&[extras as u8, 0, 0, 0]);
    out.extend_from_slice(&((key + extras + value) as u32).to_be_bytes());
    out.extend_from_slice(&opaque.to_be_bytes());
    out.extend_from_slice(&[0; 8]);
}

/// The fields of a reply's header that matter here.
struct Header {
    opcode: u8,
    key: usize,
    extras: usize,
    status: u16,
    body: usize,
    opaque: u32,
}

impl Header {
    fn parse(bytes: &[u8; HEADER]) -> Result<Self, Malformed> {
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let header = Self {
            opcode: bytes[1],
            key: short(2).into(),
            extras: bytes[4].into(),
            status: short(6),
            body: long(8) as usize,
            opaque: long(12),
        };
        if bytes[0] != RESPONSE || bytes[5] != 0 || header.key + header.extras > header.body {
            return Err(Malformed(format!("bad header: \"{}\"", bytes.escape_ascii())));
        }
        Ok(header)
    }
}

pub fn decode(kind: Kind, input: &[u8], max_value: usize) -> Decoded<'_> {
    let Some(bytes) = input.first_chunk::<HEADER>() else { return Ok(None) };
    let header = Header::parse(bytes)?;
    let expected = if kind == Kind::Set { SET } else { GETK };
    if header.opcode != expected {
        let opcode = header.opcode;
        return Err(Malformed(format!("reply to opcode {opcode:#04x} instead of {expected:#04x}")));
    }
    let limit = if header.status == OK { max_value } else { MAX_MESSAGE };
    checked_size(header.body - header.key - header.extras, limit)?;
    let used = HEADER + header.body;
    let Some(body) = input.get(HEADER..used) else { return Ok(None) };
    let (extras, rest) = body.split_at(header.extras);
    let (key, value) = rest.split_at(header.key);
    let outcome = outcome(kind, header.status, extras, value)?;
    let key = (!key.is_empty()).then_some(key);
    Ok(Some((Reply { outcome, key, opaque: Some(header.opaque) }, used)))
}

fn outcome<'a>(kind: Kind, status: u16, extras: &[u8], value: &'a [u8]) -> Result<Outcome<'a>, Malformed> {
    match (kind, status) {
        (Kind::Set, OK) if extras.is_empty() && value.is_empty() => Ok(Outcome::Stored),
        (Kind::Get, OK) => match extras.try_into() {
            Ok(flags) => Ok(Outcome::Hit { flags: u32::from_be_bytes(flags), value }),
            Err(_) => Err(Malformed(format!("hit with {} bytes of extras instead of 4", extras.len()))),
        },
        (Kind::Set, OK) => Err(Malformed("stored, with unexpected data".into())),
        (Kind::Get, NOT_FOUND) => Ok(Outcome::Miss),
        _ => Ok(Outcome::Refused(format!("status {status:#06x} {}", value.escape_ascii()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_request_has_the_documented_form() {
        let mut out = Vec::new();
        encode_set(b"Hello", 0xdead_beef, b"World", 0x0102_0304, &mut out);
        let expected = [
            0x80, 0x01, 0x00, 0x05, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x01, 0x02, 0x03, 0x04,
            0, 0, 0, 0, 0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0,
        ];
        assert_eq!(out, [&expected[..], b"HelloWorld"].concat());
    }

    fn reply(opcode: u8, status: u16, extras: &[u8], value: &[u8]) -> Vec<u8> {
        let mut out = vec![RESPONSE, opcode, 0, 0, extras.len() as u8, 0];
        out.extend(status.to_be_bytes());
        out.extend(((extras.len() + value.len()) as u32).to_be_bytes());
        out.extend([0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1]);
        [&out[..], extras, value].concat()
    }

    #[test]
    fn stored_missed_refused() {
        let stored = reply(SET, OK, &[], &[]);
        let miss = reply(GETK, NOT_FOUND, &[], b"Not found");
        let full = reply(SET, 0x82, &[], b"Out of memory");
        assert_eq!(decode(Kind::Set, &stored, 9).unwrap().unwrap().0.outcome, Outcome::Stored);
        assert_eq!(decode(Kind::Get, &miss, 0).unwrap().unwrap().0.outcome, Outcome::Miss);
        let refused = Outcome::Refused("status 0x0082 Out of memory".into());
        assert_eq!(decode(Kind::Set, &full, 0).unwrap().unwrap().0.outcome, refused);
    }

    #[test]
    fn broken_replies_are_malformed() {
        let wrong_magic = [&[REQUEST], &reply(SET, OK, &[], &[])[1..]].concat();
        assert!(decode(Kind::Set, &wrong_magic, 9).is_err());
        assert!(decode(Kind::Get, &reply(SET, OK, &[], &[]), 9).is_err());
        assert!(decode(Kind::Get, &reply(GETK, OK, &[0; 3], b"x"), 9).is_err());
        assert!(decode(Kind::Set, &reply(SET, OK, &[], b"x"), 9).is_err());
    }
}
