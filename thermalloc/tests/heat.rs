//! The heat of a service's values: the objects of the report are found by their size, one size for each key, and
//! must be as hot as their keys were asked for.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use support::Server;

const KEYS: usize = 12;

/// Sizes differ by so little that a read of one value costs as many loads as a read of another, give or take two.
fn size(key: usize) -> usize {
    701 + key
}

/// Different for each key, and not in the order of the sizes.
fn gets(key: usize) -> usize {
    3 + 5 * (key * 7 % KEYS)
}

/// Stores every key once, then asks for them in turns.
fn skewed_load(stream: &mut TcpStream) {
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    for key in 0..KEYS {
        write!(stream, "set key-{key} 0 0 {}\r\n{}\r\n", size(key), "v".repeat(size(key))).unwrap();
        replies.read_line(&mut line).unwrap();
    }
    assert_eq!(line, "STORED\r\n".repeat(KEYS));
    let rounds = (0..KEYS).map(gets).max().unwrap();
    for round in 0..rounds {
        for key in (0..KEYS).filter(|key| round < gets(*key)) {
            write!(stream, "get key-{key}\r\n").unwrap();
            let expected = format!("VALUE key-{key} 0 {}\r\n{}\r\nEND\r\n", size(key), "v".repeat(size(key)));
            let mut reply = vec![0; expected.len()];
            replies.read_exact(&mut reply).unwrap();
            assert_eq!(String::from_utf8(reply).unwrap(), expected);
        }
    }
}

/// The number under `name`.
fn number(object: &Value, name: &str) -> usize {
    object[name].as_u64().unwrap_or_else(|| panic!("{name} in {object}")) as usize
}

/// The live object that holds the key's value: the hottest of its size, for others may have that size by chance.
fn object(report: &Value, key: usize) -> &Value {
    let objects = report["objects"].as_array().expect("objects");
    let of_size = objects.iter().filter(|o| number(o, "size") == size(key) && o["free_ns"].is_null());
    of_size.max_by_key(|o| number(o, "reads")).unwrap_or_else(|| panic!("no object of {} bytes", size(key)))
}

fn values_are_as_hot_as_their_keys(mode: &str) {
    let mut server = Server::service(mode);
    skewed_load(&mut server.connect());
    server.signal("TERM");
    let (status, _) = server.end();
    assert!(status.success(), "{status}");
    let report = std::fs::read(server.directory.path().join("heat.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["config"]["mode"], mode);
    for key in 0..KEYS {
        let object = object(&report, key);
        assert!(number(object, "read_bytes") >= gets(key) * size(key), "key {key}: {object}");
        assert!(number(object, "write_bytes") >= size(key), "key {key}: {object}");
    }
    let mut by_gets: Vec<usize> = (0..KEYS).collect();
    let mut by_reads = by_gets.clone();
    by_gets.sort_by_key(|key| gets(*key));
    by_reads.sort_by_key(|key| number(object(&report, *key), "reads"));
    assert_eq!(by_reads, by_gets);
}

#[test]
fn pp_finds_the_hot_values() {
    values_are_as_hot_as_their_keys("pp");
}

#[test]
fn mpk_finds_the_hot_values() {
    if !support::has_keys() {
        return;
    }
    values_are_as_hot_as_their_keys("mpk");
}
