//! Runs a program so that nothing but the mode differs from run to run: no address space randomisation, and an
//! environment of the same bytes, since programs copy it to the stack and the heap.
//!
//! The mode's name is a variable itself. A constructor (`victims/oracle/steady.c`) removes it before the program sees it,
//! together with padding that makes up for its length; there random numbers are made constant too.

use crate::modes::Mode;
use crate::places::{self, SEARCH_PATH};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

const LONGEST_MODE: usize = 8;

/// Prepares `program` with the monitor in `mode`, or without it; it is killed after `limit`. `report` should be the same path
/// in all runs.
pub fn command(
    mode: Option<Mode>,
    program: &Path,
    report: &Path,
    settings: &[(&str, &str)],
    limit: Duration,
) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "-s", "KILL", &limit.as_secs().to_string()]);
    if fixed_addresses() {
        command.args(["setarch", "x86_64", "-R"]);
    }
    command.args(["env", "-i"]);
    command.args(["LC_ALL=C", "TZ=UTC", "PYTHONHASHSEED=0", "PERL_HASH_SEED=0", "HOME=/nonexistent"]);
    command.arg(format!("PATH={SEARCH_PATH}"));
    if let Some(mode) = mode {
        let library = places::release("libthermalloc.so");
        assert!(library.is_file(), "{} is missing: run `make build` first", library.display());
        let padding = LONGEST_MODE - mode.name().len();
        command.arg(format!("THERMALLOC_MODE={}", mode.name()));
        command.arg(format!("ORACLE_PADDING={}", "x".repeat(padding)));
        command.arg(format!("THERMALLOC_OUT={}", report.display()));
        command.args(settings.iter().map(|(name, value)| format!("{name}={value}")));
        command.arg(format!("LD_PRELOAD={}:{}", library.display(), steady().display()));
    }
    command.arg(program).env_clear().env("PATH", SEARCH_PATH).stdin(Stdio::null());
    command
}

/// Whether address space randomisation can be turned off: some sandboxes refuse it. Random programs do without.
pub fn fixed_addresses() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let output = Command::new("setarch").args(["x86_64", "-R", "/bin/true"]).output();
        output.is_ok_and(|output| output.status.success())
    })
}

fn steady() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = places::root().join("tests/victims/oracle/steady.c");
        let library = places::victims().join("oracle-steady.so");
        // Renamed when it is whole: another test process may be about to use it.
        let unfinished = places::victims().join(format!(".oracle-steady.{}.so", std::process::id()));
        std::fs::create_dir_all(places::victims()).expect("target/victims");
        let mut compiler = Command::new("gcc");
        let status = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&unfinished).arg(source).status();
        assert!(status.is_ok_and(|status| status.success()), "{compiler:?} failed");
        std::fs::rename(&unfinished, &library).expect("a compiled library");
        library
    })
}
