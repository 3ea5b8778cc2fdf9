//! Runs a program to its end, within a time limit, and keeps what it printed.

use crate::places::SEARCH_PATH;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How a program ended and what it printed.
#[derive(Debug)]
pub struct Outcome {
    /// As a shell sees it: the exit status, or 128 + N for signal N.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Outcome {
    /// Standard output, for programs that print text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Panics, with all that was printed, unless the two ended alike with the same output.
    pub fn assert_same(&self, native: &Outcome, what: &str) {
        if self.status != native.status || self.stdout != native.stdout {
            panic!(
                "{what}: status {} instead of {}\n--- stdout natively\n{}\n--- stdout here\n{}\n--- stderr here\n{}",
                self.status,
                native.status,
                shortened(&native.text()),
                shortened(&self.text()),
                shortened(&self.error_text())
            );
        }
    }
}

fn shortened(text: &str) -> String {
    const HEAD: usize = 3000;
    match text.char_indices().nth(HEAD) {
        Some((at, _)) => format!("{}... ({} bytes in all)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

/// The status of a process as a shell sees it.
pub fn shell_status(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Prepares `program` with an environment that does not vary: the C locale, fixed hash seeds, no settings of the
/// monitor but those that the test gives.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("THERMALLOC_") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("TZ", "UTC").env("PYTHONHASHSEED", "0").env("PERL_HASH_SEED", "0");
    command.env("PATH", SEARCH_PATH).env_remove("LD_PRELOAD").stdin(Stdio::null());
    command
}

/// Gives the command a file as its standard input.
pub fn input(command: &mut Command, file: &Path) {
    command.stdin(File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
}

/// Runs the command to its end. After `limit` it and the processes that it started are killed, and this panics.
pub fn run(command: &mut Command, limit: Duration) -> Outcome {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let ended = wait(&mut child, limit);
    if ended.is_none() {
        kill_group(&child);
        let _ = child.wait();
    }
    let outcome = Outcome {
        status: ended.map_or(-1, shell_status),
        stdout: stdout.join().expect("reader of stdout"),
        stderr: stderr.join().expect("reader of stderr"),
    };
    if ended.is_none() {
        panic!("{command:?}: still running after {limit:?}\n{}\n{}", outcome.text(), outcome.error_text());
    }
    outcome
}

/// Waits for the end of a process, at most for `limit`.
pub fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().expect("wait for a child") {
            return Some(status);
        }
        if start.elapsed() > limit {
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Sends a signal (a name as kill(1) knows it) to one process.
pub fn signal(child: &Child, name: &str) {
    kill(name, &child.id().to_string());
}

/// Kills a process that leads a process group, and the group.
pub fn kill_group(child: &Child) {
    kill("KILL", &format!("-{}", child.id()));
}

fn kill(name: &str, target: &str) {
    // Not an error: the process may have ended by itself.
    let _ = Command::new("kill").args(["-s", name, "--", target]).stderr(Stdio::null()).status();
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).expect("read from a child");
        }
        bytes
    })
}
