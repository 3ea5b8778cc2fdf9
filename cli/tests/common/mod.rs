//! What the tests of the whole program share.
#![allow(dead_code)]

use std::borrow::BorrowMut;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_thermalloc");

/// Stands in for the runtime: names its report as the contract says and writes it when the process exits.
const RUNTIME: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((destructor)) static void report(void) {
    const char *out = getenv("THERMALLOC_OUT"), *first = getenv("_THERMALLOC_FIRST");
    if (!out) return;
    char path[4096];
    const char *mark = strstr(out, "%p"), *dot = strrchr(out, '.');
    if (mark)
        snprintf(path, sizeof path, "%.*s%d%s", (int)(mark - out), out, getpid(), mark + 2);
    else if (first && atoi(first) == getpid())
        snprintf(path, sizeof path, "%s", out);
    else
        snprintf(path, sizeof path, "%.*s.%d%s", (int)(dot - out), out, getpid(), dot);
    FILE *file = fopen(path, "w");
    if (!file) return;
    fprintf(file, "{\"format\": \"thermalloc-heat\", \"version\": 1, \"program\": {\"pid\": %d}}\n", getpid());
    fclose(file);
}

/* Shells end this way, without destructors. */
void _exit(int status) {
    report();
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}
"#;

/// Path of the stand-in, compiled once for each test program.
pub fn fake_runtime() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let name = format!("libfake-{}.so", std::process::id());
        compile(RUNTIME, &directory.join(&name), directory, &["-shared", "-fPIC"]);
        directory.join(name)
    })
}

fn compile(source: &str, output: &Path, directory: &Path, options: &[&str]) {
    let name = output.file_name().unwrap().to_string_lossy().into_owned();
    let cxx = options.contains(&"-xc++");
    let file = directory.join(format!("{name}{}", if cxx { ".cc" } else { ".c" }));
    fs::write(&file, source).unwrap();
    let compiler = if cxx { "c++" } else { "cc" };
    let result =
        Command::new(compiler).args(options).arg("-o").arg(output).arg(&file).current_dir(directory).status();
    assert!(result.unwrap().success(), "{compiler} failed");
}

/// A directory of its own for each test.
pub struct Sandbox(TempDir);

impl Sandbox {
    /// An empty one.
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// `thermalloc run ...` in the directory, with the stand-in. Signals that the tests are started with as ignored (a job in
    /// the background ignores SIGINT) have their defaults: a shell cannot trap ignored ones.
    #[allow(unsafe_code)]
    pub fn run<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("run").args(arguments).current_dir(self.root()).stdin(Stdio::null());
        command.env("THERMALLOC_LIB", fake_runtime());
        // SAFETY: only system calls, between fork and exec.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
        command
    }

    /// Compiles a C program, C++ with option `-xc++`.
    pub fn compile(&self, source: &str, name: &str, options: &[&str]) {
        compile(source, &self.path(name), self.root(), options);
    }

    /// Writes an executable file.
    pub fn script(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Runs to the end.
pub fn run(mut command: impl BorrowMut<Command>) -> Output {
    command.borrow_mut().output().unwrap()
}

/// Lines of text.
pub fn lines(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(str::to_owned).collect()
}

/// A pseudo-terminal: where one types, and what programs see.
#[allow(unsafe_code)]
pub fn terminal() -> (File, File) {
    use std::os::fd::AsRawFd;
    let keyboard = OpenOptions::new().read(true).write(true).open("/dev/ptmx").unwrap();
    let (mut unlocked, mut number) = (0i32, 0i32);
    // SAFETY: both calls take the address of a live integer.
    unsafe {
        assert_eq!(libc::ioctl(keyboard.as_raw_fd(), libc::TIOCSPTLCK, &raw mut unlocked), 0);
        assert_eq!(libc::ioctl(keyboard.as_raw_fd(), libc::TIOCGPTN, &raw mut number), 0);
    }
    let terminal = OpenOptions::new().read(true).write(true).open(format!("/dev/pts/{number}")).unwrap();
    (keyboard, terminal)
}
