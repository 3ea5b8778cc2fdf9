//! Where libthermalloc.so is.

use std::env;
use std::path::{Path, PathBuf};

/// File name of the runtime.
pub const NAME: &str = "libthermalloc.so";
/// Environment variable that overrides the search.
pub const OVERRIDE: &str = "THERMALLOC_LIB";
/// Directories to look in, relative to this program's own.
const PLACES: [&str; 3] = [".", "../lib", "../lib/thermalloc"];

/// The absolute path of the runtime, or one line that says what is wrong and what to do.
pub fn find() -> Result<PathBuf, String> {
    let path = match env::var_os(OVERRIDE) {
        Some(path) if !path.is_empty() => chosen(Path::new(&path))?,
        _ => beside_this_program()?,
    };
    check_preloadable(&path)?;
    Ok(path)
}

fn chosen(path: &Path) -> Result<PathBuf, String> {
    match path.canonicalize() {
        Ok(found) if found.is_file() => Ok(found),
        Ok(_) => Err(format!("{OVERRIDE}={} is not a file; set it to the path of {NAME}", path.display())),
        Err(error) => Err(format!(
            "{OVERRIDE}={} cannot be used ({error}); set it to the path of {NAME}",
            path.display()
        )),
    }
}

fn beside_this_program() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("cannot find this program's own path ({error})"))?;
    let directory = own.parent().unwrap_or(Path::new("/"));
    PLACES
        .iter()
        .filter_map(|place| directory.join(place).join(NAME).canonicalize().ok())
        .find(|path| path.is_file())
        .ok_or_else(|| {
            format!(
                "{NAME} is neither in {} nor in ../lib or ../lib/thermalloc from there; set {OVERRIDE} to its path",
                directory.display()
            )
        })
}

/// The loader splits LD_PRELOAD at spaces and colons and knows no escape.
fn check_preloadable(path: &Path) -> Result<(), String> {
    let text = path.as_os_str().as_encoded_bytes();
    if text.iter().any(|byte| matches!(byte, b' ' | b':')) {
        return Err(format!(
            "{} has a space or colon in its path, which LD_PRELOAD cannot hold; move it and set {OVERRIDE}",
            path.display()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_of_the_loader_are_refused() {
        assert!(check_preloadable(Path::new("/a b/libthermalloc.so")).is_err());
        assert!(check_preloadable(Path::new("/a:b/libthermalloc.so")).is_err());
        assert!(check_preloadable(Path::new("/a-b/libthermalloc.so")).is_ok());
    }
}
