//! Every way in which a server can answer wrongly must be found: a small server of our own misbehaves in one
//! way at a time, and the load generator must name it and exit with 1.

mod support;

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use support::{bench, errors};

/// What the server does wrong, with the answer to the 50th GET hit of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    FlippedBit,
    WrongFlags,
    OtherKey,
    OtherKeysValue,
    LostKey,
    ShortValue,
    LongLength,
    MissingEnd,
    Silence,
    HangUp,
    TwoReplies,
    Refusal,
}

struct Item {
    flags: String,
    value: Vec<u8>,
}

/// Serves connections, one after the other, until the test ends.
fn serve(fault: Fault) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = converse(stream.unwrap(), fault);
        }
    });
    port
}

fn converse(mut stream: TcpStream, fault: Fault) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut items: HashMap<String, Item> = HashMap::new();
    let mut hits = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "set" {
            let mut value = vec![0; words[4].parse::<usize>().unwrap() + 2];
            reader.read_exact(&mut value)?;
            value.truncate(value.len() - 2);
            items.insert(words[1].into(), Item { flags: words[2].into(), value });
            stream.write_all(b"STORED\r\n")?;
            continue;
        }
        hits += 1;
        let fault = if hits == 50 { fault } else { Fault::None };
        match reply(&items, words[1], fault) {
            Some(bytes) => stream.write_all(&bytes)?,
            None if fault == Fault::HangUp => return Ok(()),
            None => {}
        }
    }
}

/// The bytes that answer a GET of a stored key.
fn reply(items: &HashMap<String, Item>, key: &str, fault: Fault) -> Option<Vec<u8>> {
    let item = &items[key];
    let other = items.iter().find(|(other, _)| *other != key).expect("two keys");
    let head = |key: &str, flags: &str, size: usize| format!("VALUE {key} {flags} {size}\r\n").into_bytes();
    let size = item.value.len();
    let plain = [&head(key, &item.flags, size)[..], &item.value, b"\r\nEND\r\n"].concat();
    let mut flipped = item.value.clone();
    flipped[size / 2] ^= 0x10;
    let end = &b"\r\nEND\r\n"[..];
    Some(match fault {
        Fault::None => plain,
        Fault::FlippedBit => [&head(key, &item.flags, size), &flipped[..], end].concat(),
        Fault::WrongFlags => [&head(key, &other.1.flags, size), &item.value[..], end].concat(),
        Fault::OtherKey => [&head(other.0, &item.flags, size), &item.value[..], end].concat(),
        Fault::OtherKeysValue => [&head(key, &item.flags, size), &other.1.value[..], end].concat(),
        Fault::LostKey => b"END\r\n".to_vec(),
        Fault::ShortValue => [&head(key, &item.flags, size - 1), &item.value[1..], end].concat(),
        Fault::LongLength => [&head(key, &item.flags, size + 100), &item.value[..], end].concat(),
        Fault::MissingEnd => [&plain[..plain.len() - 5], b"STORED\r\n"].concat(),
        Fault::TwoReplies => plain.repeat(2),
        Fault::Refusal => b"SERVER_ERROR out of patience\r\n".to_vec(),
        Fault::Silence | Fault::HangUp => return None,
    })
}

fn outcome(fault: Fault, more: &[&str]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let port = format!("--port={}", serve(fault));
    let args = [
        "--threads=1",
        "--clients=1",
        "--requests=200",
        "--key-maximum=9",
        "--populate",
        "--timeout=2",
        &port,
    ];
    let (output, _) = bench(directory.path(), &[&args, more].concat());
    (output.status.code(), errors(&output))
}

#[test]
fn a_right_server_passes() {
    assert_eq!(outcome(Fault::None, &[]), (Some(0), String::new()));
}

#[test]
fn every_wrong_answer_is_found_and_named() {
    for (fault, words) in [
        (Fault::FlippedBit, "byte 16 of the value"),
        (Fault::WrongFlags, "flags "),
        (Fault::OtherKey, "names key"),
        (Fault::OtherKeysValue, " of the value is "),
        (Fault::LostKey, "missed, though it was stored"),
        (Fault::ShortValue, "31 bytes instead of 32"),
        (Fault::LongLength, "132 bytes where at most 32"),
        (Fault::MissingEnd, "END expected"),
        (Fault::Silence, "no reply in time"),
        (Fault::HangUp, "closed the connection"),
        (Fault::Refusal, "out of patience"),
    ] {
        let (status, errors) = outcome(fault, &[]);
        assert_eq!(status, Some(1), "{fault:?}: {errors}");
        assert!(errors.starts_with("error: memtier-") && errors.contains(words), "{fault:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{fault:?}: {errors}");
    }
}

#[test]
fn a_reply_too_many_is_found() {
    let (status, errors) = outcome(Fault::TwoReplies, &[]);
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("error: "), "{errors}");
}

#[test]
fn without_verification_a_wrong_value_passes() {
    assert_eq!(outcome(Fault::FlippedBit, &["--verify=false"]).0, Some(0));
}

#[test]
fn a_server_that_is_not_there_is_status_2() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let directory = tempfile::tempdir().unwrap();
    let (output, _) = bench(directory.path(), &["--threads=2", "--clients=2", &format!("--port={port}")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("cannot connect to 127.0.0.1"), "{}", errors(&output));
}

#[test]
fn a_load_on_stored_keys_is_counted_by_key() {
    let directory = tempfile::tempdir().unwrap();
    let port = format!("--port={}", serve(Fault::None));
    let args = [
        "--threads=1",
        "--clients=1",
        "--requests=30",
        "--ratio=0:1",
        "--key-pattern=S:S",
        "--key-maximum=9",
    ];
    let (output, json) = bench(directory.path(), &[&args[..], &["--populate", &port]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let keys: Vec<_> =
        json["keys"].as_array().unwrap().iter().map(|k| (&k["key"], &k["sets"], &k["gets"])).collect();
    assert_eq!(keys.len(), 10);
    assert_eq!(keys[3], (&"memtier-3".into(), &0.into(), &3.into()));
}
