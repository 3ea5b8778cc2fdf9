//! Builds victims with the wrapper and runs them against the mock runtime.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

pub const SHAPES: [&str; 3] = ["alias", "wrpkru", "pair-only"];

/// A folder of this test's own that holds the wrappers, the mock runtime and what is built.
pub struct Workshop {
    folder: TempDir,
}

/// The plugin that belongs to the build under test.
pub fn plugin() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_thermalloc-cc")).parent().expect("the binary has a folder");
    let name = "libthermalloc_instrument.so";
    [folder.join("deps").join(name), folder.join(name)]
        .into_iter()
        .find(|path| path.exists())
        .expect("cargo built the plugin with the tests")
}

pub fn victim(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/victims").join(name)
}

/// Runs to the end and returns what was printed; the program must succeed.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    check(command, &output);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn check(command: &Command, output: &Output) {
    let (status, error) = (output.status, String::from_utf8_lossy(&output.stderr));
    assert!(status.success(), "{command:?}: {status}\n{error}");
}

impl Workshop {
    pub fn new() -> Workshop {
        let workshop = Workshop { folder: tempfile::tempdir().expect("a temporary folder") };
        let link =
            |name| std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_thermalloc-cc"), workshop.path(name));
        link("thermalloc-cc").and_then(|()| link("thermalloc-c++")).expect("links can be made");
        workshop
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `thermalloc-cc` or `thermalloc-c++` in this folder.
    pub fn wrapper(&self, name: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(self.path(name));
        command.env("THERMALLOC_CC_PLUGIN", plugin()).current_dir(self.folder.path()).args(arguments);
        command.env_remove("THERMALLOC_CC_SHAPE").env_remove("THERMALLOC_CC_ONLY");
        command
    }

    /// Compiles a victim, linked with the mock runtime, under the name `out`.
    pub fn build(&self, shape: &str, flags: &str, source: &Path, out: &str) -> PathBuf {
        self.mock();
        let compiler =
            if source.extension() == Some(OsStr::new("cc")) { "thermalloc-c++" } else { "thermalloc-cc" };
        let mut command = self.wrapper(compiler, flags.split_whitespace());
        command.arg(format!("--thermalloc-shape={shape}")).arg(source).arg("-o").arg(out);
        succeed(command.args(self.link_flags()));
        self.path(out)
    }

    /// The same by plain clang.
    pub fn build_plain(&self, flags: &str, source: &Path, out: &str) -> PathBuf {
        self.mock();
        let is_cxx = source.extension() == Some(OsStr::new("cc"));
        let mut command = Command::new(if is_cxx { "clang++-16" } else { "clang-16" });
        command.current_dir(self.folder.path()).args(flags.split_whitespace());
        succeed(command.arg(source).arg("-o").arg(out).args(self.link_flags()));
        self.path(out)
    }

    fn link_flags(&self) -> Vec<String> {
        let folder = self.folder.path().display();
        let headers = victim("").display().to_string();
        ["-g", "-pthread", "-lmock", "-I", &headers]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("-L{folder}"), format!("-Wl,-rpath,{folder}")])
            .collect()
    }

    /// The mock runtime, and the same with malloc, built once.
    pub fn mock(&self) {
        if self.path("libmock.so").exists() {
            return;
        }
        let build = |sources: &[&str], out: &str| {
            let mut command = Command::new("clang-16");
            command.args([
                "-O2",
                "-fno-builtin",
                "-shared",
                "-fPIC",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pthread",
            ]);
            command.args(sources.iter().map(|source| victim(source)));
            succeed(command.arg("-o").arg(self.path(out)));
        };
        build(&["mock.c", "malloc.c"], "libmockheap.so");
        build(&["mock.c"], "libmock.so");
    }

    /// A run in which malloc gives memory of the arena, which code that is not instrumented may touch too.
    pub fn on_heap(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", self.path("libmockheap.so")).env("MOCK_OPEN", "1");
        command
    }
}

/// Whether this CPU can run code for AVX2.
pub fn has_avx2() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| std::arch::is_x86_feature_detected!("avx2"))
}
