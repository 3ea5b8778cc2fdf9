//! memcached's binaries, by way of the script `memcached-builds`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// Builds on demand, each once.
pub struct Builds {
    script: PathBuf,
    made: HashMap<String, Result<PathBuf, Missing>>,
}

impl Builds {
    /// Nothing built yet; `crate_root` holds the script.
    pub fn new(crate_root: &Path) -> Self {
        Self { script: crate_root.join("memcached-builds"), made: HashMap::new() }
    }

    /// The binary of a build.
    pub fn get(&mut self, name: &str) -> Result<PathBuf, Missing> {
        let script = &self.script;
        self.made.entry(name.to_owned()).or_insert_with(|| make(script, &[name])).clone()
    }

    /// The binary of a build, with what memcached's own tests need beside it.
    pub fn get_with_suite(&self, name: &str) -> Result<PathBuf, Missing> {
        make(&self.script, &["--suite", name])
    }
}

fn make(script: &Path, arguments: &[&str]) -> Result<PathBuf, Missing> {
    let output = Command::new(script).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|e| Missing::Failure(format!("cannot run {}: {e}", script.display())))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let words = errors.lines().last().unwrap_or_default().to_owned();
    match output.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
        Some(NO_COMPILER) => Err(Missing::Compiler(words)),
        _ => Err(Missing::Failure(errors.trim().to_owned())),
    }
}
