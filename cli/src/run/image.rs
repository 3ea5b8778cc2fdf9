//! Whether a file can be monitored: LD_PRELOAD must have an effect on it, and this runtime must be able to live in it.

use object::elf::{self, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many `#!` lines the kernel follows.
const MAX_SCRIPTS: u32 = 4;
/// How much of a file the kernel looks at for its `#!` line.
const SCRIPT_LINE: usize = 256;

/// What the examination says.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// LD_PRELOAD will work.
    Monitored,
    /// It can run, not be monitored: why.
    Unmonitored(String),
    /// It cannot even run: why, and what to do.
    Broken(String),
}

/// Looks at a program, and at the interpreter if it is a script.
pub fn examine(path: &Path) -> Verdict {
    let mut path = path.to_owned();
    for _ in 0..=MAX_SCRIPTS {
        match examine_file(&path) {
            Step::Settled(verdict) => return verdict,
            Step::Interpreter(next) => path = next,
        }
    }
    // The kernel refuses; let exec say so.
    Verdict::Monitored
}

enum Step {
    Settled(Verdict),
    Interpreter(PathBuf),
}

fn examine_file(path: &Path) -> Step {
    // What may be executed but not read cannot be judged; most programs are dynamically linked.
    let Ok(mut file) = File::open(path) else { return Step::Settled(Verdict::Monitored) };
    let mut head = Vec::new();
    if file.by_ref().take(SCRIPT_LINE as u64).read_to_end(&mut head).is_err() {
        return Step::Settled(Verdict::Monitored);
    }
    if let Some(line) = head.strip_prefix(b"#!") {
        return match interpreter_of_script(line) {
            Some(interpreter) => Step::Interpreter(interpreter),
            None => Step::Settled(Verdict::Monitored),
        };
    }
    if !head.starts_with(&elf::ELFMAG) {
        return examine_text(path, &head);
    }
    if let Some(reason) = privileged(path, &file) {
        return Step::Settled(Verdict::Unmonitored(reason));
    }
    Step::Settled(examine_elf(path, &head, file))
}

/// A file that is neither ELF nor `#!`: a shell runs it if its first line is text.
fn examine_text(path: &Path, head: &[u8]) -> Step {
    let first_line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if first_line.contains(&0) {
        let why = "is neither an ELF program nor a script; check what it is with 'file'";
        return Step::Settled(Verdict::Broken(format!("{}: {why}", path.display())));
    }
    Step::Interpreter("/bin/sh".into())
}

fn interpreter_of_script(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|&byte| byte == b'\n').next()?;
    let word = line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty())?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(word)))
}

fn examine_elf(path: &Path, head: &[u8], file: File) -> Verdict {
    let unmonitored = |reason: &str| Verdict::Unmonitored(reason.to_owned());
    if head.get(4) != Some(&elf::ELFCLASS64.0) {
        return unmonitored("it is a 32-bit program, and the runtime is for x86-64");
    }
    let cache = ReadCache::new(file);
    let Ok(header) = FileHeader64::<Endianness>::parse(&cache) else {
        return unmonitored("its ELF header is damaged");
    };
    let Ok(endian) = header.endian() else { return unmonitored("its ELF header is damaged") };
    if header.e_machine(endian) != elf::EM_X86_64 {
        return unmonitored("it is built for another architecture, and the runtime is for x86-64");
    }
    match interpreter_of_elf(header, endian, &cache) {
        Err(()) => unmonitored("its program headers are damaged"),
        Ok(Some(loader)) => judge_loader(&loader),
        // The loader itself, called with a program as its argument, obeys LD_PRELOAD.
        Ok(None) if is_glibc_loader(&path.canonicalize().unwrap_or_default()) => Verdict::Monitored,
        Ok(None) => unmonitored("it is statically linked, so LD_PRELOAD has no effect"),
    }
}

fn interpreter_of_elf<'a, R: ReadRef<'a>>(
    header: &'a FileHeader64<Endianness>,
    endian: Endianness,
    data: R,
) -> Result<Option<PathBuf>, ()> {
    let segments = header.program_headers(endian, data).map_err(drop)?;
    let Some(segment) = segments.iter().find(|segment| segment.p_type(endian) == PT_INTERP) else {
        return Ok(None);
    };
    let path = segment.data(endian, data).map_err(drop)?;
    let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(path))))
}

fn judge_loader(loader: &Path) -> Verdict {
    if is_glibc_loader(loader) {
        return Verdict::Monitored;
    }
    let name = loader.file_name().unwrap_or_default().to_string_lossy();
    let libc = match name {
        name if name.starts_with("ld-musl") => "musl".to_owned(),
        name if name.starts_with("linker") => "bionic".to_owned(),
        name => format!("the one of {name}"),
    };
    Verdict::Unmonitored(format!("its C library is {libc}, and the runtime is for glibc"))
}

fn is_glibc_loader(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.starts_with(b"ld-linux-x86-64") || name.starts_with(b"ld-2.")
}

/// The loader ignores LD_PRELOAD when execution raises privileges. The rules are those of execve(2) and capabilities(7).
fn privileged(path: &Path, file: &File) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let caller = super::child::Credentials::current();
    if caller.no_new_privileges || super::child::on_nosuid_mount(path) {
        return None;
    }
    if let Some(kind) = raised_ids(&metadata, caller.user, caller.group) {
        return Some(format!("it is {kind}, so the loader ignores LD_PRELOAD"));
    }
    if caller.user != 0 && super::child::has_file_capabilities(path) {
        return Some("it has file capabilities, so the loader ignores LD_PRELOAD".into());
    }
    None
}

fn raised_ids(metadata: &Metadata, user: u32, group: u32) -> Option<&'static str> {
    let mode = metadata.mode();
    let setuid = mode & libc::S_ISUID != 0 && metadata.uid() != user;
    // setgid without group execution means mandatory locking, not privilege.
    let setgid_bits = libc::S_ISGID | libc::S_IXGRP;
    let setgid = mode & setgid_bits == setgid_bits && metadata.gid() != group;
    match (setuid, setgid) {
        (true, _) => Some("setuid"),
        (_, true) => Some("setgid"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_lines() {
        let of = |line: &[u8]| interpreter_of_script(line);
        assert_eq!(of(b"/bin/sh\n"), Some("/bin/sh".into()));
        assert_eq!(of(b" \t/usr/bin/env python3\nx"), Some("/usr/bin/env".into()));
        assert_eq!(of(b"  \n/bin/sh"), None);
        assert_eq!(of(b""), None);
    }

    #[test]
    fn loaders() {
        assert_eq!(judge_loader("/lib64/ld-linux-x86-64.so.2".as_ref()), Verdict::Monitored);
        for other in ["/lib/ld-musl-x86_64.so.1", "/system/bin/linker64", "/lib/ld-uClibc.so.0"] {
            assert!(matches!(judge_loader(other.as_ref()), Verdict::Unmonitored(_)), "{other}");
        }
    }

    #[test]
    fn this_test_program_is_dynamically_linked() {
        assert_eq!(examine(&std::env::current_exe().unwrap()), Verdict::Monitored);
    }
}
