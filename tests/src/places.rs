//! Where the built program, the victims and scratch folders lie.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// The top of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository").to_path_buf()
}

/// A program of `target/release`. `THERMALLOC_TEST_BIN` names another folder.
pub fn release(name: &str) -> PathBuf {
    env::var_os("THERMALLOC_TEST_BIN").map_or_else(|| root().join("target/release"), PathBuf::from).join(name)
}

/// The compiled victims.
pub fn victims() -> PathBuf {
    root().join("target/victims")
}

/// A folder of its own for one test, removed when it goes out of scope, unless the test panics.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes an empty folder whose name contains `label`.
    pub fn new(label: &str) -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // ORDERING: Relaxed, a counter that orders nothing.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("thermalloc-{}-{number}-{label}", process::id()));
        fs::create_dir_all(&folder).expect("temporary folder");
        Scratch(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// The search path of the programs under test: the system's own come before what a user installed in front of them.
pub const SEARCH_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin";

/// The full path of an installed program.
pub fn which(program: &str) -> PathBuf {
    let mut candidates = env::split_paths(SEARCH_PATH).map(|folder| folder.join(program));
    candidates
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{program} is not installed: see tests/packages.txt"))
}
