//! memcached's binaries, by way of the script `memcached-builds`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thermalloc_bench::places::Places;

/// The script's exit status for a build whose compiler is missing.
const NO_COMPILER: i32 = 3;

/// Why there is no binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The compiler for it is not there.
    Compiler(String),
    /// It should have been built, but was not.
    Failure(String),
}

/// This crate's directory, with its script.
fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds on demand, each once.
pub struct Builds {
    script: PathBuf,
    compiler: PathBuf,
    made: HashMap<String, Result<PathBuf, Missing>>,
}

impl Builds {
    /// Nothing built yet.
    pub fn new(places: &Places) -> Self {
        let compiler = places.programs.join("thermalloc-cc");
        Self { script: crate_root().join("memcached-builds"), compiler, made: HashMap::new() }
    }

    /// The binary of a build.
    pub fn get(&mut self, name: &str) -> Result<PathBuf, Missing> {
        if let Some(made) = self.made.get(name) {
            return made.clone();
        }
        let made = self.make(&[name]);
        self.made.insert(name.to_owned(), made.clone());
        made
    }

    /// The binary of a build, with what memcached's own tests need beside it.
    pub fn get_with_suite(&self, name: &str) -> Result<PathBuf, Missing> {
        self.make(&["--suite", name])
    }

    fn make(&self, arguments: &[&str]) -> Result<PathBuf, Missing> {
        let mut command = Command::new(&self.script);
        let output =
            command.args(arguments).env("THERMALLOC_CC", &self.compiler).stdin(Stdio::null()).output();
        let output =
            output.map_err(|e| Missing::Failure(format!("cannot run {}: {e}", self.script.display())))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let words = errors.lines().last().unwrap_or_default().to_owned();
        match output.status.code() {
            Some(0) => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
            Some(NO_COMPILER) => Err(Missing::Compiler(words)),
            _ => Err(Missing::Failure(errors.trim().to_owned())),
        }
    }
}
