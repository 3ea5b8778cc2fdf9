//! Where a command's result goes: stdout, or a file that appears only once it is whole.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

const BUFFER: usize = 1 << 18;

/// Takes what is to be written.
pub type Sink<'a> = dyn Write + Send + 'a;

/// Why writing stopped.
#[derive(Debug)]
pub enum Stop {
    /// The destination takes no more.
    Write(io::Error),
    /// Something else went wrong, such as reading the input.
    Other(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

/// Lets `fill` write to the file, or to stdout (`None`, or `-`). A file of that name is replaced when all has been
/// written, else left as it was. Whoever closes a pipe has seen enough: that is no failure.
pub fn write(
    path: Option<&Path>,
    fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Stop>,
) -> Result<(), Failure> {
    match path.filter(|path| *path != "-") {
        None => match through(io::stdout(), fill) {
            Err(Stop::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            result => explain(result, Path::new("stdout")),
        },
        // A device or a pipe cannot be replaced.
        Some(path) if path.exists() && !path.is_file() => {
            let file = File::options().write(true).open(path).map_err(Stop::Write);
            explain(file.and_then(|file| through(file, fill)), path)
        }
        Some(path) => explain(replace(path, fill), path),
    }
}

fn replace(path: &Path, fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
    // A symbolic link stays, and its target is replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let part = part_of(&target)?;
    let written = File::create_new(&part).map_err(Stop::Write).and_then(|file| through(file, fill));
    let result = written.and_then(|()| Ok(fs::rename(&part, &target)?));
    if result.is_err() {
        let _ = fs::remove_file(&part);
    }
    result
}

/// A name beside the target that nobody else uses.
fn part_of(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
    let mut part = name.to_owned();
    part.push(format!(".{}.part", std::process::id()));
    Ok(target.with_file_name(part))
}

fn through(to: impl Write + Send, fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
    let mut buffer = BufWriter::with_capacity(BUFFER, to);
    let result = fill(&mut buffer);
    match result {
        Ok(()) => Ok(buffer.flush()?),
        Err(stop) => {
            // What is still in the buffer belongs to a result that will not be.
            drop(buffer.into_parts());
            Err(stop)
        }
    }
}

fn explain(result: Result<(), Stop>, path: &Path) -> Result<(), Failure> {
    result.map_err(|stop| match stop {
        Stop::Other(failure) => failure,
        Stop::Write(error) => {
            let path = path.display();
            Failure::own(format!("{path}: cannot be written: {error}; check the path and the free space"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_by_a_whole_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        write(Some(&path), |sink| Ok(sink.write_all(b"first")?)).unwrap();
        let failed = write(Some(&path), |sink| {
            sink.write_all(&vec![b'x'; 2 * BUFFER])?;
            Err(Failure::own("no").into())
        });
        assert_eq!(failed.unwrap_err().message, "no");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        write(Some(&path), |sink| Ok(sink.write_all(b"second")?)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
    }

    #[test]
    fn devices_are_written_to_not_replaced() {
        write(Some(Path::new("/dev/null")), |sink| Ok(sink.write_all(b"x")?)).unwrap();
        let full = write(Some(Path::new("/dev/full")), |sink| Ok(sink.write_all(b"x")?)).unwrap_err();
        assert!(full.message.starts_with("/dev/full: cannot be written"), "{}", full.message);
        assert!(!Path::new("/dev/null").is_file());
    }
}
