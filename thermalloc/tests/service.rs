//! The example service as a memcached: under the verifying load generator, against memcached itself, and how it ends.

mod support;

use bench_memcached::options::Options;
use clap::Parser;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::io::Write;
use support::Server;

fn load(server: &Server, args: &[&str]) -> bench_memcached::load::Summary {
    let port = format!("--port={}", server.port);
    let options = Options::try_parse_from([&["bench", &port], args].concat()).expect("good options");
    bench_memcached::load::run(&options).expect("the load runs")
}

#[test]
fn every_reply_passes_verification() {
    let server = Server::service("off");
    for (load_number, args) in [
        &["--threads=2", "--clients=10", "--requests=200", "--key-maximum=300", "--key-pattern=Z:Z"][..],
        &[
            "--threads=1",
            "--clients=3",
            "--requests=100",
            "--key-maximum=9",
            "--pipeline=50",
            "--ratio=1:1",
            "--data-size=100000",
        ],
        &["--threads=1", "--clients=1", "--requests=100", "--key-maximum=99", "--data-size=0"],
    ]
    .into_iter()
    .enumerate()
    {
        let prefix = format!("--key-prefix=load-{load_number}-");
        let summary = load(&server, &[args, &["--populate", &prefix]].concat());
        assert_eq!(summary.tally.deviations.first, Vec::<String>::new(), "{args:?}");
        assert_eq!(summary.tally.misses, 0, "{args:?}");
    }
}

#[test]
fn eight_hundred_connections_are_served() {
    let server = Server::service("off");
    let summary = load(&server, &["--threads=2", "--clients=400", "--requests=5", "--key-maximum=99"]);
    assert_eq!(summary.tally.deviations.first, Vec::<String>::new());
    assert_eq!(summary.tally.sets.count + summary.tally.gets.count, 4000);
}

/// A command of a conversation.
#[derive(Clone, Debug)]
enum Said {
    Plain(Vec<u8>),
    /// `cas` with a number so far above the conversation's base.
    Cas {
        key: String,
        above: u64,
        value: String,
    },
}

impl Said {
    fn bytes(&self, base: u64) -> Vec<u8> {
        match self {
            Self::Plain(bytes) => bytes.clone(),
            Self::Cas { key, above, value } => {
                format!("cas {key} 0 0 {} {}\r\n{value}\r\n", value.len(), base + above).into_bytes()
            }
        }
    }
}

/// What a server answers to the commands, with `gets` numbers above the conversation's base: what went before must
/// not matter.
fn answers(server: &Server, commands: &[Said]) -> String {
    let base = server.converse(b"flush_all\r\nset z 0 0 0\r\n\r\ngets z\r\nquit\r\n");
    let base =
        String::from_utf8(base).unwrap().lines().nth(2).unwrap().split(' ').nth(4).unwrap().parse().unwrap();
    let talk: Vec<u8> = commands.iter().flat_map(|c| c.bytes(base)).chain(*b"quit\r\n").collect();
    let answers = String::from_utf8(server.converse(&talk)).unwrap();
    let lines = answers.split_inclusive("\r\n").map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["VALUE", key, flags, size, cas] => {
                let above = cas.parse::<u64>().unwrap() - base;
                format!("VALUE {key} {flags} {size} base+{above}\r\n")
            }
            _ => line.to_string(),
        }
    });
    lines.collect()
}

/// Few keys and many kinds of command, right ones and wrong ones, so that they meet.
fn command() -> impl Strategy<Value = Said> {
    let key = || prop_oneof![4 => "[abc]", 1 => "k{249,252}"];
    let store = (
        "(set|add|replace)",
        key(),
        prop_oneof![4 => "[0-9]{1,5}", 1 => "-1|x"],
        "0|0|0|-1|100",
        // Not of spaces alone: incr makes memcached look for digits behind such a value's end.
        prop_oneof!["[0-9]{0,21}", "([A-Z][A-Z ]{0,39})?"],
        "|| noreply",
    );
    let store = store.prop_map(|(verb, key, flags, expiry, value, noreply)| {
        format!("{verb} {key} {flags} {expiry} {}{noreply}\r\n{value}\r\n", value.len())
    });
    let plain = |text: String| Said::Plain(text.into_bytes());
    let cas = (key(), 0u64..12, "[0-9]{1,3}").prop_map(|(key, above, value)| Said::Cas { key, above, value });
    let line = move |regex: &'static str| regex.prop_map(move |text: String| plain(format!("{text}\r\n")));
    prop_oneof![
        6 => store.prop_map(plain),
        2 => cas,
        4 => line("(get|gets)( [abcd]){1,5}"),
        3 => line("(incr|decr) [abc] ([0-9]{1,4}|18446744073709551615|x|-1)( noreply)?"),
        2 => line("delete [abcd]( 0| 5| noreply| 0 noreply)?"),
        1 => line("touch [abcd] (0|-1|50|x)( noreply)?"),
        1 => line("flush_all( 0)?( noreply)?"),
        1 => line("verbosity( 0)?"),
        1 => line("(get|set a|set a 0 0|delete|incr a|touch a|nonsense|GET a|set a 0 0 x|set a 0 0 1 2 3 4)"),
        1 => Just(plain("set a 0 0 3\r\ntoo long\r\n".into())),
        1 => Just(plain("set a 0 0 3\r\n1\r\n\r\n".into())),
    ]
}

#[test]
fn answers_are_those_of_memcached() {
    let Some(memcached) = Server::memcached() else { return };
    let service = Server::service("off");
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let commands = proptest::collection::vec(command(), 1..60);
    runner
        .run(&commands, |commands| {
            prop_assert_eq!(answers(&service, &commands), answers(&memcached, &commands));
            Ok(())
        })
        .unwrap();
}

#[test]
fn statistics_count_what_was_asked() {
    let server = Server::service("off");
    let talk = b"set a 0 0 1\r\nx\r\nget a b b\r\nstats\r\nstats reset\r\nstats\r\nversion\r\nquit\r\n";
    let answer = String::from_utf8(server.converse(talk)).unwrap();
    for line in
        ["cmd_get 3", "get_hits 1", "get_misses 2", "cmd_set 1", "curr_items 1", "bytes 1", "cmd_get 0"]
    {
        assert!(answer.contains(&format!("STAT {line}\r\n")), "{line} in {answer}");
    }
    assert!(answer.contains(&format!("STAT pid {}\r\n", server.child.id())), "{answer}");
    assert!(answer.contains("RESET\r\n") && answer.contains("\r\nVERSION "), "{answer}");
}

#[test]
fn signals_and_shutdown_end_it_with_a_report() {
    for how in ["TERM", "INT", "shutdown"] {
        let mut server = Server::service("pp");
        let mut idle = server.connect();
        idle.write_all(b"get half-a-line").unwrap();
        match how {
            "shutdown" => drop(server.converse(b"shutdown\r\n")),
            signal => server.signal(signal),
        }
        let (status, output) = server.end();
        let path = server.directory.path().join("heat.json");
        assert!(status.success(), "{how}: {status}");
        assert_eq!(output, format!("report in {}\n", path.display()), "{how}");
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(report["format"], "thermalloc-heat", "{how}");
        assert!(report["totals"]["reads"].as_u64().unwrap() > 0, "{how}");
    }
}

#[test]
fn without_a_monitor_there_is_no_report_and_no_failure() {
    let mut server = Server::service("off");
    server.signal("TERM");
    let (status, output) = server.end();
    assert!(status.success(), "{status}");
    assert_eq!(output, "no report: nothing is watched in mode off\n");
    assert!(!server.directory.path().join("heat.json").exists());
}
