//! How reports are named, and which ones a run has written.
//!
//! The runtime replaces `%p` by the process id. Without `%p` the first process writes the plain name, and every other
//! puts `.PID` before the extension. Which reports a run has written is found by comparing the directory before
//! with the directory after.

use crate::failure::Failure;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const PID: &[u8] = b"%p";

/// A report's name before process ids are filled in.
pub struct Naming {
    /// As given by the user, for messages.
    shown: PathBuf,
    /// Absolute, since programs change their working directory.
    absolute: PathBuf,
}

impl Naming {
    /// `shown` may be relative to the working directory.
    pub fn new(shown: PathBuf) -> Result<Self, Failure> {
        if shown.file_name().is_none() || shown.as_os_str().as_bytes().ends_with(b"/") {
            let message = format!("-o '{}' names no file; give a path such as heat.%p.json", shown.display());
            return Err(Failure::own(message));
        }
        let absolute = std::path::absolute(&shown).map_err(|error| {
            Failure::own(format!("the working directory cannot be used ({error}); go to another"))
        })?;
        Ok(Self { shown, absolute })
    }

    /// What THERMALLOC_OUT is set to.
    pub fn absolute(&self) -> &Path {
        &self.absolute
    }

    /// Why no report can have been written there, if it is plain to see.
    pub fn unwritable(&self) -> Option<String> {
        let directory = self.directory();
        if has_pid(directory.as_os_str().as_bytes()) {
            return None;
        }
        match directory.metadata() {
            Err(error) => {
                Some(format!("{} cannot be used ({error}); create it, or use -o", directory.display()))
            }
            Ok(metadata) if !metadata.is_dir() => {
                Some(format!("{} is not a directory; use -o", directory.display()))
            }
            Ok(_) if self.absolute.is_dir() => {
                Some(format!("{} is a directory; use -o", self.shown.display()))
            }
            Ok(_) if !super::child::writable(directory) => {
                Some(format!("{} is not writable; use -o", directory.display()))
            }
            Ok(_) => None,
        }
    }

    /// Whether something is there that keeps nothing to look up: a device, a pipe. The runtime writes to it all the same.
    pub fn is_special(&self) -> bool {
        self.absolute.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    }

    fn directory(&self) -> &Path {
        self.absolute.parent().unwrap_or(Path::new("/"))
    }

    fn name(&self) -> &[u8] {
        self.absolute.file_name().unwrap_or_default().as_bytes()
    }

    /// The file name pattern of processes other than the first; it has `%p` in it.
    fn others(&self) -> Vec<u8> {
        let name = self.name();
        if has_pid(name) {
            return name.to_vec();
        }
        let stem = self.absolute.file_stem().unwrap_or_default().as_bytes();
        [stem, b".", PID, &name[stem.len()..]].concat()
    }

    /// The user's way to write the path of a report in the same directory.
    fn shown_beside(&self, name: &[u8], pid: i32) -> PathBuf {
        let shown = fill(self.shown.as_os_str().as_bytes(), &pid.to_string());
        PathBuf::from(shown).with_file_name(OsString::from_vec(name.to_vec()))
    }
}

fn has_pid(text: &[u8]) -> bool {
    text.windows(PID.len()).any(|window| window == PID)
}

fn fill(pattern: &[u8], pid: &str) -> OsString {
    let mut filled = Vec::with_capacity(pattern.len() + pid.len());
    let mut rest = pattern;
    while let Some(at) = rest.windows(PID.len()).position(|window| window == PID) {
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(pid.as_bytes());
        rest = &rest[at + PID.len()..];
    }
    filled.extend_from_slice(rest);
    OsString::from_vec(filled)
}

/// Whether a file name is the pattern with some process id in the place of `%p`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let Some(at) = pattern.windows(PID.len()).position(|window| window == PID) else { return false };
    let Some(rest) = name.get(at..) else { return false };
    let digits: String =
        rest.iter().take_while(|byte| byte.is_ascii_digit()).map(|&byte| byte as char).collect();
    // Text after `%p` may begin with digits of its own: try every length.
    (1..=digits.len()).any(|length| fill(pattern, &digits[..length]).as_bytes() == name)
}

/// What tells one version of a file from another.
#[derive(PartialEq, Eq)]
struct Version(u64, i64, i64);

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self(metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
    }
}

/// The reports that were there before a run.
pub struct Snapshot(HashMap<Vec<u8>, Version>);

impl Snapshot {
    /// Looks now.
    pub fn take(naming: &Naming) -> Self {
        let (plain, others) = (naming.name(), naming.others());
        let mut found = HashMap::new();
        for entry in naming.directory().read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name().into_vec();
            if (name == plain || matches(&others, &name))
                && let Ok(metadata) = entry.metadata()
                && metadata.is_file()
            {
                found.insert(name, Version::of(&metadata));
            }
        }
        Self(found)
    }

    /// What has been written since, `first` being the process id of the program itself.
    pub fn written_since(&self, naming: &Naming, first: i32) -> Written {
        let first_path = PathBuf::from(fill(naming.absolute.as_os_str().as_bytes(), &first.to_string()));
        let first_name = first_path.file_name().unwrap_or_default().as_bytes().to_vec();
        let mut after = Self::take(naming).0;
        after.retain(|name, version| self.0.get(name) != Some(version));
        // With %p in a directory's name only the first process's report can be looked up.
        let found = after.remove(&first_name).is_some()
            || has_pid(naming.directory().as_os_str().as_bytes()) && first_path.is_file();
        let mut others: Vec<PathBuf> = after.keys().map(|name| naming.shown_beside(name, first)).collect();
        others.sort();
        Written { first: found.then(|| naming.shown_beside(&first_name, first)), others }
    }
}

/// The reports of one run.
pub struct Written {
    first: Option<PathBuf>,
    others: Vec<PathBuf>,
}

impl Written {
    /// One line for the user; `None` when there is no report.
    pub fn describe(&self) -> Option<String> {
        let count = self.others.len();
        match (&self.first, self.others.first()) {
            (Some(path), None) => Some(format!("report written to {}", path.display())),
            (Some(path), Some(_)) => {
                Some(format!("report written to {} (+ {count} of child processes)", path.display()))
            }
            (None, Some(path)) if count == 1 => {
                Some(format!("report of a child process written to {}", path.display()))
            }
            (None, Some(path)) => Some(format!(
                "reports of child processes written to {} (+ {} more)",
                path.display(),
                count - 1
            )),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn naming(path: impl Into<PathBuf>) -> Naming {
        Naming::new(path.into()).unwrap()
    }

    #[test]
    fn pid_goes_before_the_extension() {
        let others = |name| String::from_utf8(naming(name).others()).unwrap();
        assert_eq!(others("heat.json"), "heat.%p.json");
        assert_eq!(others("heat"), "heat.%p");
        assert_eq!(others(".heat"), ".heat.%p");
        assert_eq!(others("a/x.tar.gz"), "x.tar.%p.gz");
        assert_eq!(others("a/%p-heat.json"), "%p-heat.json");
    }

    #[test]
    fn only_process_ids_match() {
        assert!(matches(b"heat.%p.json", b"heat.17.json"));
        assert!(matches(b"%p", b"17"));
        assert!(matches(b"a%p2b%p", b"a172b17"));
        for other in
            ["heat.json", "heat..json", "heat.1x.json", "heat.17.json.tmp", "xheat.17.json", "heat.17.jso"]
        {
            assert!(!matches(b"heat.%p.json", other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn directories_are_no_report_names() {
        for bad in ["", "/", "out/", ".."] {
            assert!(Naming::new(bad.into()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_was_there_before_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let naming = naming(root.path().join("heat.json"));
        for old in ["heat.json", "heat.5.json", "heat.6.json", "unrelated.json"] {
            fs::write(root.path().join(old), "old").unwrap();
        }
        let before = Snapshot::take(&naming);
        assert!(before.written_since(&naming, 4).describe().is_none());
        // The runtime replaces reports atomically, so a rewritten one is another file.
        fs::write(root.path().join("new"), "new").unwrap();
        fs::rename(root.path().join("new"), root.path().join("heat.json")).unwrap();
        fs::write(root.path().join("heat.7.json"), "new").unwrap();
        fs::write(root.path().join("heat.x.json"), "new").unwrap();
        let line = before.written_since(&naming, 4).describe().unwrap();
        assert_eq!(
            line,
            format!("report written to {} (+ 1 of child processes)", root.path().join("heat.json").display())
        );
    }

    proptest! {
        #[test]
        fn a_filled_pattern_matches(prefix in "[a-z0-9.%]{0,8}", suffix in "[a-z0-9.%]{0,8}", pid in 1u32..) {
            let pattern = format!("{prefix}%p{suffix}");
            let name = fill(pattern.as_bytes(), &pid.to_string());
            prop_assert!(matches(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
