//! Where the built programs and the runtime are.

use std::path::{Path, PathBuf};

/// Of a benchmark that has been built.
#[derive(Clone, Debug)]
pub struct Places {
    /// The programs that were built beside this one.
    pub programs: PathBuf,
    /// libthermalloc.so.
    pub library: PathBuf,
    /// The directory of the results.
    pub results: PathBuf,
}

impl Places {
    /// With the runtime where `library` says, else beside this program.
    pub fn new(library: Option<&Path>, results: &Path) -> Result<Self, String> {
        let this = std::env::current_exe().map_err(|e| format!("no path of this program: {e}"))?;
        let programs = this.parent().ok_or("this program has no directory")?.to_owned();
        let library = library.map_or_else(|| programs.join("libthermalloc.so"), Path::to_owned);
        let library =
            library.canonicalize().map_err(|e| format!("no runtime in {}: {e}", library.display()))?;
        Ok(Self { programs, library, results: results.to_owned() })
    }
}
