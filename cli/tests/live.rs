//! `thermalloc top --pid`: what it shows of a process whose reports come one by one.

mod common;

use common::{PROGRAM, Sandbox, lines, run, terminal};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

/// Stands for a watched program: its environment says where its reports are, and the test writes them.
struct Watched {
    child: Child,
    sandbox: Sandbox,
    reports: u64,
}

impl Watched {
    fn start(interval: &str) -> Self {
        let sandbox = Sandbox::new();
        let child = Command::new("sleep")
            .arg("1000")
            .current_dir(sandbox.root())
            .env("THERMALLOC_OUT", "heat.json")
            .env("THERMALLOC_INTERVAL_MS", interval)
            .spawn()
            .unwrap();
        Self { child, sandbox, reports: 0 }
    }

    /// Writes a report a second after the last, in which the sites have been read so many times in all.
    fn write(&mut self, reads: [u64; 2]) {
        self.reports += 1;
        let site = |id: usize| json!({"id": id, "frames": [id], "peak_live_bytes": 100, "reads": reads[id], "allocs": 1});
        let object = |id: usize| json!({"addr": 4096 * (id + 1), "size": 50, "site": id, "reads": reads[id]});
        let report = json!({"format": "thermalloc-heat", "version": 1, "frames": [{"ip": 0xa0}, {"ip": 0xb0}],
            "program": {"pid": self.child.id(), "cmdline": ["victim"], "elapsed_ns": self.reports * 1_000_000_000, "end": "interval"},
            "totals": {"reads": reads[0] + reads[1]}, "sites": [site(0), site(1)], "objects": [object(0), object(1)]});
        fs::write(self.sandbox.path("new"), report.to_string()).unwrap();
        fs::rename(self.sandbox.path("new"), self.sandbox.path("heat.json")).unwrap();
    }

    fn top(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["top", "--pid", &self.child.id().to_string()]);
        command
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines up to the end of a block.
fn block(output: &mut impl BufRead) -> Vec<String> {
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.is_empty()) || lines.len() < 9 {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended after {lines:?}");
        lines.push(line.trim_end().to_owned());
    }
    lines
}

#[test]
fn each_report_is_compared_with_the_one_before() {
    let mut watched = Watched::start("100");
    watched.write([1000, 1]);
    let mut top = watched.top().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(top.stdout.take().unwrap());
    let first = block(&mut output);
    assert!(first[0].contains("victim") && first[2].starts_with("1001 reads/s"), "{first:?}");
    assert!(first[5].contains("1000") && first[5].contains("0xa0"), "{first:?}");
    watched.write([1000, 301]);
    let second = block(&mut output);
    assert!(second[2].starts_with("300 reads/s"), "{second:?}");
    assert!(second[5].contains(" 300 ") && second[5].contains("0xb0"), "{second:?}");
    assert!(second[6].is_empty(), "what is cold now is not shown: {second:?}");
    assert!(second[8].contains("0x2000"), "{second:?}");
    watched.child.kill().unwrap();
    watched.child.wait().unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    let end = top.wait_with_output().unwrap();
    assert!(end.status.success(), "{end:?}");
    assert!(String::from_utf8_lossy(&end.stderr).contains("has ended"), "{end:?}");
}

#[test]
fn a_key_ends_it_and_the_terminal_is_as_before() {
    let mut watched = Watched::start("100");
    watched.write([5, 6]);
    let (mut keyboard, screen) = terminal();
    let settings = |screen: &fs::File| {
        let stty = Command::new("stty").arg("-g").stdin(screen.try_clone().unwrap()).output().unwrap();
        String::from_utf8(stty.stdout).unwrap()
    };
    let before = settings(&screen);
    let mut top = watched
        .top()
        .stdin(screen.try_clone().unwrap())
        .stdout(screen.try_clone().unwrap())
        .stderr(screen.try_clone().unwrap())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while !seen.contains("q quits") {
        let count = keyboard.read(&mut buffer).unwrap();
        seen += &String::from_utf8_lossy(&buffer[..count]);
    }
    assert!(seen.contains("by accesses"), "{seen}");
    keyboard.write_all(b"s").unwrap();
    while !seen.contains("by reads") {
        let count = keyboard.read(&mut buffer).unwrap();
        seen += &String::from_utf8_lossy(&buffer[..count]);
    }
    keyboard.write_all(b"q").unwrap();
    assert!(top.wait().unwrap().success());
    assert_eq!(settings(&screen), before);
}

#[test]
fn what_cannot_be_followed_is_one_line_and_status_2() {
    let silent = Watched::start("0");
    let mut none = Command::new(PROGRAM);
    none.args(["top", "--pid", "4294967295"]);
    for (mut command, word) in [(silent.top(), "--interval"), (none, "no process")] {
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let lines = lines(&output.stderr);
        assert!(lines.len() == 1 && lines[0].contains(word), "{lines:?}");
    }
    let foreign = Watched::start("0");
    fs::write(
        foreign.sandbox.path("heat.json"),
        r#"{"format": "thermalloc-heat", "version": 1, "program": {"pid": 1}}"#,
    )
    .unwrap();
    assert_eq!(run(foreign.top()).status.code(), Some(2), "another process's report");
}
