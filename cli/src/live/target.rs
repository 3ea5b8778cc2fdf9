//! Where a running process writes its reports: what its environment and its working directory say.

use crate::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Where reports go unless THERMALLOC_OUT says otherwise.
const DEFAULT_OUT: &[u8] = b"heat.%p.json";

/// A running process.
pub struct Target {
    pid: u32,
    /// Files that may be its report, likeliest first.
    candidates: Vec<PathBuf>,
    /// Time between its reports in ms, as its environment has it; 0: none.
    pub interval_ms: u64,
}

impl Target {
    /// Looks at the process; `path` overrides where its report is.
    pub fn find(pid: u32, path: Option<&Path>) -> Result<Self, Failure> {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        if !directory.is_dir() {
            return Err(Failure::own(format!("there is no process {pid}; find it with 'pgrep -a NAME'")));
        }
        let environment = fs::read(directory.join("environ")).map_err(|error| {
            Failure::own(format!("process {pid} cannot be looked at ({error}); be its user, or root"))
        })?;
        let working = fs::read_link(directory.join("cwd")).unwrap_or_default();
        let pattern = variable(&environment, b"THERMALLOC_OUT=").unwrap_or(DEFAULT_OUT);
        let interval = variable(&environment, b"THERMALLOC_INTERVAL_MS=");
        let interval_ms = interval.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0);
        let candidates = match path {
            Some(path) => vec![path.to_owned()],
            None => candidates(pattern, pid).into_iter().map(|name| working.join(name)).collect(),
        };
        Ok(Self { pid, candidates, interval_ms })
    }

    /// Files that may be its report.
    pub fn candidates(&self) -> &[PathBuf] {
        &self.candidates
    }

    /// Whether the process is still there, and no mere zombie.
    pub fn is_alive(&self) -> bool {
        let Ok(line) = fs::read_to_string(format!("/proc/{}/stat", self.pid)) else { return false };
        // The name, in parentheses, may have anything in it.
        let state = line.rsplit(')').next().unwrap_or_default().trim_start();
        !state.starts_with(['Z', 'X'])
    }
}

fn variable<'a>(environment: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = environment.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(name))?;
    (!value.is_empty()).then_some(value)
}

/// The names that the runtime may have made of the pattern: `%p` filled in; else the plain name for the first process of a
/// run, and `.PID` before the extension for others.
fn candidates(pattern: &[u8], pid: u32) -> Vec<PathBuf> {
    let plain = PathBuf::from(OsString::from_vec(pattern.to_vec()));
    let pid = pid.to_string();
    let text = OsStr::from_bytes(pattern).to_string_lossy();
    if text.contains("%p") {
        return vec![PathBuf::from(text.replace("%p", &pid))];
    }
    let mut name = plain.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{pid}"));
    if let Some(extension) = plain.extension() {
        name.push(".");
        name.push(extension);
    }
    vec![plain.clone(), plain.with_file_name(name)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_the_runtime_makes_them() {
        let names = |pattern: &str| candidates(pattern.as_bytes(), 7);
        assert_eq!(names("/a/heat.%p.json"), [PathBuf::from("/a/heat.7.json")]);
        assert_eq!(names("/a.x/h.json"), [PathBuf::from("/a.x/h.json"), PathBuf::from("/a.x/h.7.json")]);
        assert_eq!(names("h"), [PathBuf::from("h"), PathBuf::from("h.7")]);
    }

    #[test]
    fn this_process_is_alive_and_no_other_is_found() {
        let own = Target::find(std::process::id(), Some(Path::new("x.json"))).unwrap();
        assert!(own.is_alive());
        assert_eq!(own.candidates(), [PathBuf::from("x.json")]);
        assert!(Target::find(u32::MAX, None).is_err());
    }
}
