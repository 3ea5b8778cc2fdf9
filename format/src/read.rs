//! Reading a heat.json, whatever it turns out to be.

use crate::report::{FORMAT, Report, Summary, VERSION};
use serde::Deserialize;
use serde_json::error::Category;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Files above this size are refused rather than read into memory.
const LARGEST: u64 = 8 << 30;

/// Why a file could not be read as a report. Displays as one line that names the file.
#[derive(Debug)]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum Problem {
    /// It cannot be opened or read.
    Io(io::Error),
    /// It is larger than any report.
    TooLarge,
    /// It has no contents.
    Empty,
    /// It ends in the middle of JSON.
    Truncated,
    /// It is not JSON; what the parser said.
    NotJson(String),
    /// It is JSON, but not a heat.json.
    NotReport,
    /// It is a heat.json of another version (null: none stated).
    Version(Option<u64>),
    /// It says that it is a heat.json of this version, but some value has the wrong type; what the parser said.
    Malformed(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.problem {
            Problem::Io(error) => write!(f, "cannot be read: {error}"),
            Problem::TooLarge => write!(f, "is larger than {} GiB, too large for a heat.json", LARGEST >> 30),
            Problem::Empty => write!(f, "is empty, not a heat.json"),
            Problem::Truncated => write!(f, "is truncated: it ends in the middle of the JSON text"),
            Problem::NotJson(message) => write!(f, "is not a heat.json: not JSON ({message})"),
            Problem::NotReport => write!(f, "is not a heat.json: it lacks \"format\": \"{FORMAT}\""),
            Problem::Version(Some(version)) => {
                write!(f, "is a heat.json of version {version}; this program reads version {VERSION}")
            }
            Problem::Version(None) => {
                write!(f, "is a heat.json that states no version; this program reads version {VERSION}")
            }
            Problem::Malformed(message) => write!(f, "is a damaged heat.json: {message}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Reads a whole report.
pub fn read(path: impl AsRef<Path>) -> Result<Report, ReadError> {
    load(path.as_ref())
}

/// Reads a report without its objects' heat arrays.
pub fn read_summary(path: impl AsRef<Path>) -> Result<Summary, ReadError> {
    load(path.as_ref())
}

fn load<H: Default + for<'de> Deserialize<'de>>(path: &Path) -> Result<Report<H>, ReadError> {
    contents(path)
        .and_then(|bytes| parse(&bytes))
        .map_err(|problem| ReadError { path: path.to_path_buf(), problem })
}

fn contents(path: &Path) -> Result<Vec<u8>, Problem> {
    let file = File::open(path).map_err(Problem::Io)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(Problem::Io)?;
    if bytes.len() as u64 > LARGEST { Err(Problem::TooLarge) } else { Ok(bytes) }
}

/// Parses the contents of a file.
pub fn parse<H: Default + for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<Report<H>, Problem> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Problem::Empty);
    }
    match serde_json::from_slice::<Report<H>>(bytes) {
        Ok(report) => match (report.format.as_str(), report.version) {
            (FORMAT, VERSION) => Ok(report),
            (FORMAT, _) => Err(identify(bytes).unwrap_or(Problem::NotReport)),
            _ => Err(Problem::NotReport),
        },
        Err(error) => Err(identify(bytes).unwrap_or_else(|| Problem::Malformed(error.to_string()))),
    }
}

/// The two keys that say what a file is, whatever type they have.
#[derive(Deserialize)]
struct Identity {
    #[serde(default)]
    format: serde_json::Value,
    #[serde(default)]
    version: serde_json::Value,
}

/// What keeps the file from being a report of this version, if anything does.
fn identify(bytes: &[u8]) -> Option<Problem> {
    match serde_json::from_slice::<Identity>(bytes) {
        Ok(identity) if identity.format != FORMAT => Some(Problem::NotReport),
        Ok(identity) if identity.version != VERSION => Some(Problem::Version(identity.version.as_u64())),
        Ok(_) => None,
        Err(error) => Some(match error.classify() {
            Category::Eof => Problem::Truncated,
            // The parser takes a number that is cut after its point for a wrong one.
            Category::Syntax if bytes.ends_with(b".") && at_end(&error, bytes) => Problem::Truncated,
            // A sequence or a scalar is good JSON, but no report.
            Category::Data => Problem::NotReport,
            Category::Syntax | Category::Io => Problem::NotJson(error.to_string()),
        }),
    }
}

/// Whether an error concerns the last byte.
fn at_end(error: &serde_json::Error, bytes: &[u8]) -> bool {
    let lines = bytes.split(|&byte| byte == b'\n');
    let (count, last) = lines.fold((0, 0), |(count, _), line| (count + 1, line.len()));
    (error.line(), error.column()) == (count, last)
}
