//! Which file a program's name means, as a shell finds it: a name with a slash is a path, any other is looked up on PATH.

use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND};
use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where programs are looked for when PATH is not set, as execvp does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// What stands at a path.
#[derive(PartialEq, Eq, Debug)]
enum Found {
    Executable,
    Directory,
    NotExecutable,
    Unreachable,
    Nothing,
}

/// The path to execute.
pub fn find(program: &OsStr) -> Result<PathBuf, Failure> {
    if program.is_empty() {
        return Err(Failure::new(NOT_FOUND, "the program's name is empty; name a program after '--'"));
    }
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return match look(&path) {
            Found::Executable => Ok(path),
            found => Err(explain(&path, &found)),
        };
    }
    let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    find_on(program, &path)
}

/// A file that exists and cannot be executed is remembered, and reported if no better one follows.
fn find_on(program: &OsStr, path: &OsStr) -> Result<PathBuf, Failure> {
    let mut blocked = None;
    for directory in env::split_paths(path) {
        // An empty element means the working directory.
        let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
        let candidate = directory.join(program);
        match look(&candidate) {
            Found::Executable => return Ok(candidate),
            Found::NotExecutable => blocked = blocked.or(Some(candidate)),
            _ => {}
        }
    }
    match blocked {
        Some(path) => Err(explain(&path, &Found::NotExecutable)),
        None => Err(Failure::new(
            NOT_FOUND,
            format!("{}: not found on PATH; check the name, or give a path", program.display()),
        )),
    }
}

fn look(path: &Path) -> Found {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Found::Directory,
        Ok(metadata) if metadata.permissions().mode() & 0o111 != 0 => Found::Executable,
        Ok(_) => Found::NotExecutable,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Found::Unreachable,
        Err(_) => Found::Nothing,
    }
}

fn explain(path: &Path, found: &Found) -> Failure {
    let path = path.display();
    match found {
        Found::Directory => Failure::new(NOT_EXECUTABLE, format!("{path}: is a directory; name a program")),
        Found::NotExecutable => Failure::new(
            NOT_EXECUTABLE,
            format!("{path}: is not executable; chmod +x it, or name another program"),
        ),
        Found::Unreachable => Failure::new(
            NOT_EXECUTABLE,
            format!("{path}: permission denied; check the directories that lead to it"),
        ),
        _ => Failure::new(NOT_FOUND, format!("{path}: no such file; check the path")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    fn file(path: &Path, mode: u32) {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_first_executable_wins_over_an_earlier_plain_file() {
        let root = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| root.path().join(name));
        fs::create_dir(&first).unwrap();
        fs::create_dir(&second).unwrap();
        file(&first.join("tool"), 0o644);
        let path = env::join_paths([&first, &second]).unwrap();
        assert_eq!(find_on("tool".as_ref(), &path).unwrap_err().status, NOT_EXECUTABLE);
        file(&second.join("tool"), 0o755);
        assert_eq!(find_on("tool".as_ref(), &path).unwrap(), second.join("tool"));
        assert_eq!(find_on("other".as_ref(), &path).unwrap_err().status, NOT_FOUND);
    }

    #[test]
    fn directories_are_passed_over_on_path_and_refused_as_paths() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("tool")).unwrap();
        assert_eq!(find_on("tool".as_ref(), root.path().as_os_str()).unwrap_err().status, NOT_FOUND);
        assert_eq!(find(root.path().join("tool").as_os_str()).unwrap_err().status, NOT_EXECUTABLE);
    }
}
