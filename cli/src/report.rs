//! `thermalloc report`: reports as one HTML page that needs nothing else.
//!
//! Modules, lowest first:
//! - [`level`]: numbers in two characters.
//! - [`pool`]: heat by offset in few cells.
//! - [`names`]: functions and call stacks.
//! - [`objects`]: what is kept of each object.
//! - [`axis`], [`spread`]: time, and when objects were accessed.
//! - [`maps`], [`curve`], [`flame`], [`classes`]: what the parts of the page show.
//! - [`choice`], [`rows`]: which sites and objects the page lists.
//! - [`notes`] has the sentences.
//! - [`run`]: one report, analysed.
//! - [`page`]: the file.

mod axis;
mod choice;
mod classes;
mod curve;
mod flame;
mod level;
mod maps;
mod names;
mod notes;
mod objects;
mod page;
mod pool;
mod rows;
mod run;
mod spread;

use crate::failure::{Failure, say};
use crate::input::{self, Histograms};
use crate::options::ReportOptions;
use crate::output;
use objects::Objects;
use run::{Analysis, Room};
use serde::Serialize;
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};

/// Reports on one page at most.
const MOST_RUNS: usize = 64;

/// Writes the page.
pub fn report(options: &ReportOptions) -> Result<u8, Failure> {
    let paths = &options.paths;
    if paths.len() > MOST_RUNS {
        return Err(Failure::own(format!(
            "{} reports are too many for one page; give at most {MOST_RUNS}, or 'thermalloc merge' them first",
            paths.len()
        )));
    }
    let room = (page::LARGEST - page::frame()) / paths.len();
    let mut runs = Vec::new();
    for path in paths {
        runs.push(fitted(&analyse(path, &options.symbols)?, room)?);
    }
    let html = page::page(&data(runs)?);
    output::write(Some(&options.output), |sink| Ok(sink.write_all(html.as_bytes())?))?;
    if options.output.as_os_str() != "-" {
        say(&format!("page written to {} ({})", options.output.display(), notes::size(html.len())));
    }
    Ok(0)
}

fn analyse(path: &Path, files: &[PathBuf]) -> Result<Analysis, Failure> {
    let mut objects = Objects::default();
    let report = input::read(path, Histograms::Drop, |object| objects.push(object))?;
    Ok(Analysis::new(path.display().to_string(), report, objects, files))
}

/// As much of a report as fits into so many bytes of a page.
fn fitted(analysis: &Analysis, bytes: usize) -> Result<Box<RawValue>, Failure> {
    let mut room = Room::PLENTY;
    loop {
        let json = serde_json::to_string(&analysis.run(room)).map_err(inexpressible)?;
        let fits = page::escaped(&json).len() <= bytes;
        match room.less() {
            Some(less) if !fits => room = less,
            _ => return RawValue::from_string(json).map_err(inexpressible),
        }
    }
}

fn data(runs: Vec<Box<RawValue>>) -> Result<String, Failure> {
    #[derive(Serialize)]
    struct Data {
        version: &'static str,
        runs: Vec<Box<RawValue>>,
    }
    serde_json::to_string(&Data { version: env!("CARGO_PKG_VERSION"), runs }).map_err(inexpressible)
}

fn inexpressible(error: serde_json::Error) -> Failure {
    Failure::own(format!("the report cannot be put into a page ({error}); tell the authors"))
}

#[cfg(test)]
mod tests;
