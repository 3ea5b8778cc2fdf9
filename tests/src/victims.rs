//! The victim programs: what the head of each source says about building and running it, and its compilation.
//!
//! A source may say, in lines that begin with `//!`:
//! - `flags: ...`: for the compiler;
//! - `settings: ...`: for `thermalloc run`;
//! - `run: ARGUMENTS => exit N` or `=> signal N`: one run and how it ends; without any, one run that ends with 0;
//! - `helper`: not a test by itself;
//! - `misuse`: wrong use of the allocator, whose end depends on the allocator: never run natively.

use crate::places;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// One run of a victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How it ends, as a shell sees it.
    pub status: i32,
}

/// A victim's source and what it says of itself.
#[derive(Clone, Debug)]
pub struct Victim {
    /// The source's name without its extension, and the program's.
    pub name: String,
    /// The source.
    pub source: PathBuf,
    flags: Vec<String>,
    /// Further settings of `thermalloc run`.
    pub settings: Vec<String>,
    /// The runs to make.
    pub runs: Vec<Run>,
    /// Not a test by itself.
    pub helper: bool,
    /// Ends as the allocator decides.
    pub misuse: bool,
}

impl Victim {
    /// The compiled program.
    pub fn program(&self) -> PathBuf {
        places::victims().join(&self.name)
    }
}

/// All victims, by name.
pub fn all() -> Vec<Victim> {
    let folder = places::root().join("tests/victims");
    let entries = fs::read_dir(&folder).expect("tests/victims");
    let mut all: Vec<Victim> = entries
        .map(|entry| entry.expect("entry of tests/victims").path())
        .filter_map(|source| parse(&source))
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// The victim of that name, compiled, with the helpers that it may start.
pub fn victim(name: &str) -> Victim {
    build();
    all().into_iter().find(|victim| victim.name == name).unwrap_or_else(|| panic!("no victim {name}"))
}

fn parse(source: &Path) -> Option<Victim> {
    let extension = source.extension()?.to_str()?;
    if !["c", "cc", "rs"].contains(&extension) {
        return None;
    }
    let text = fs::read_to_string(source).expect("source of a victim");
    let mut victim = Victim {
        name: source.file_stem()?.to_str()?.to_owned(),
        source: source.to_path_buf(),
        flags: Vec::new(),
        settings: Vec::new(),
        runs: Vec::new(),
        helper: false,
        misuse: false,
    };
    for line in text.lines().map_while(|line| line.strip_prefix("//! ")) {
        match line.split_once(": ").unwrap_or((line, "")) {
            ("flags", flags) => victim.flags = words(flags),
            ("settings", settings) => victim.settings = words(settings),
            ("run", run) => victim.runs.push(parse_run(run)),
            ("helper", _) => victim.helper = true,
            ("misuse", _) => victim.misuse = true,
            _ => panic!("{}: what is `{line}`?", source.display()),
        }
    }
    if victim.runs.is_empty() {
        victim.runs.push(Run { arguments: Vec::new(), status: 0 });
    }
    Some(victim)
}

fn parse_run(run: &str) -> Run {
    let parts = run.split_once("=>").and_then(|(arguments, end)| {
        let (kind, number) = end.trim().split_once(' ')?;
        let number: i32 = number.parse().ok()?;
        let status = if kind == "signal" { 128 + number } else { number };
        Some(Run { arguments: words(arguments), status })
    });
    parts.unwrap_or_else(|| panic!("a run is `ARGUMENTS => exit N` or `=> signal N`, not `{run}`"))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Compiles what is not compiled yet or older than its source. In the emulated machine all of it is.
pub fn build() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        fs::create_dir_all(places::victims()).expect("target/victims");
        for victim in all() {
            if !is_current(&victim) {
                compile(&victim);
            }
        }
    });
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn is_current(victim: &Victim) -> bool {
    let folder = victim.source.parent().expect("folder of a source");
    let headers = ["victim.h", "exact.h"].map(|name| folder.join(name));
    let newest = headers.iter().chain([&victim.source]).filter_map(|path| modified(path)).max();
    modified(&victim.program()) >= newest
}

fn compile(victim: &Victim) {
    let extension = victim.source.extension().and_then(|extension| extension.to_str());
    let mut compiler = match extension {
        Some("rs") => rust_compiler(),
        Some("cc") => c_compiler("g++"),
        _ => c_compiler("gcc"),
    };
    // Compiled beside and then renamed: another test process may be about to run the same victim.
    let unfinished = places::victims().join(format!(".{}.{}", victim.name, std::process::id()));
    compiler.arg("-o").arg(&unfinished).arg(&victim.source).args(&victim.flags);
    let output = compiler.output().unwrap_or_else(|error| panic!("{compiler:?}: {error}"));
    assert!(output.status.success(), "{compiler:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&unfinished, victim.program()).expect("a compiled victim");
}

fn c_compiler(name: &str) -> Command {
    let mut compiler = Command::new(name);
    compiler.args(["-O1", "-g", "-Wall", "-Wno-unused-result", "-Werror"]);
    compiler
}

fn rust_compiler() -> Command {
    let mut compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compiler.args(["-O", "--edition", "2024"]);
    compiler
}
