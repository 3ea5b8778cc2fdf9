//! Where a module's symbols and line numbers are: in the file itself, or in a separate debug file, found by
//! build id (/usr/lib/debug/.build-id/ab/cdef.debug) or by the file's `.gnu_debuglink`. What duplicates were moved to a
//! common file (dwz) is found by `.gnu_debugaltlink`.

use object::{Object, ReadCache};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const ROOT: &str = "/usr/lib/debug";

/// A debug file, and the common file that it refers to.
pub struct DebugFile {
    /// The file.
    pub path: PathBuf,
    /// The common file.
    pub common: Option<PathBuf>,
}

/// The build id of an ELF file in lower-case hexadecimal; empty if it has none. `None`: it is no such file.
pub fn build_id(path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    with_object(path, |file| Some(file.build_id().ok()?.map(hexadecimal).unwrap_or_default()))
}

/// The separate debug file of a module.
pub fn separate(path: &Path) -> Option<DebugFile> {
    let id = build_id(path)?;
    let found = by_build_id(&id).or_else(|| by_link(path, &id))?;
    Some(DebugFile { common: common(&found), path: found })
}

/// Another copy of a file, told by its build id: in one of these directories under its own name or with `.debug` behind it, or
/// as a separate debug file.
pub fn elsewhere(path: &Path, id: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    if id.is_empty() {
        return None;
    }
    let name = path.file_name()?;
    let mut debug = name.to_owned();
    debug.push(".debug");
    let named = directories.iter().flat_map(|directory| [directory.join(name), directory.join(&debug)]);
    named
        .into_iter()
        .find(|candidate| build_id(candidate).is_some_and(|found| found == id))
        .or_else(|| by_build_id(id))
}

/// The common file that a file's own debug information refers to.
pub fn common(path: &Path) -> Option<PathBuf> {
    let link = with_object(path, |file| {
        let (name, _) = file.gnu_debugaltlink().ok()??;
        Some(PathBuf::from(OsStr::from_bytes(name)))
    })?;
    let target = path.canonicalize().ok()?.parent()?.join(link);
    target.is_file().then_some(target)
}

fn by_build_id(id: &str) -> Option<PathBuf> {
    // An id may come from a report, and is about to be part of a path.
    if !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let (first, rest) = id.split_at_checked(2)?;
    let path = Path::new(ROOT).join(".build-id").join(first).join(format!("{rest}.debug"));
    path.is_file().then_some(path)
}

fn by_link(path: &Path, id: &str) -> Option<PathBuf> {
    let (name, checksum) = with_object(path, |file| {
        let (name, checksum) = file.gnu_debuglink().ok()??;
        Some((PathBuf::from(OsStr::from_bytes(name)), checksum))
    })?;
    let path = path.canonicalize().ok()?;
    let directory = path.parent()?;
    let below_root = Path::new(ROOT).join(directory.strip_prefix("/").ok()?);
    let candidates = [directory.join(&name), directory.join(".debug").join(&name), below_root.join(&name)];
    candidates.into_iter().find(|candidate| *candidate != path && belongs(candidate, id, checksum))
}

/// By build id where both have one, else by the checksum that the link states.
fn belongs(candidate: &Path, id: &str, checksum: u32) -> bool {
    match build_id(candidate) {
        None => false,
        Some(other) if !other.is_empty() && !id.is_empty() => other == id,
        Some(_) => fs::read(candidate).is_ok_and(|bytes| crc32fast::hash(&bytes) == checksum),
    }
}

fn with_object<T>(
    path: &Path,
    ask: impl FnOnce(&object::File<'_, &ReadCache<File>>) -> Option<T>,
) -> Option<T> {
    let cache = ReadCache::new(File::open(path).ok()?);
    ask(&object::File::parse(&cache).ok()?)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
