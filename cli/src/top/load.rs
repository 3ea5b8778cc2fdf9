//! A report with no more than the objects to be shown.

use super::rank::{First, Measures};
use crate::failure::Failure;
use crate::input::{self, Histograms};
use crate::options::{By, TopOptions};
use std::path::Path;
use thermalloc_format::{Object, Report};

/// The report, with no more than the objects to be shown, in their order.
pub fn load(path: &Path, options: &TopOptions) -> Result<Report, Failure> {
    if options.by != By::Object {
        return input::without_objects(path, Histograms::Drop);
    }
    let mut first = First::new(options.n, options.sort);
    let report = input::read(path, Histograms::Drop, |object| keep(&mut first, object))?;
    Ok(Report { objects: first.into_vec(), ..report })
}

/// As [`load`], from text.
#[cfg(test)]
pub fn parse(text: &[u8], options: &TopOptions) -> serde_json::Result<Report> {
    let mut first = First::new(options.n, options.sort);
    let report = match options.by {
        By::Object => input::parse(text, Histograms::Drop, |object| keep(&mut first, object))?,
        By::Site | By::Class => input::parse_without_objects(text, Histograms::Drop)?,
    };
    Ok(Report { objects: first.into_vec(), ..report })
}

fn keep(first: &mut First<Object>, object: Object) {
    let measures = Measures { reads: object.reads, writes: object.writes, bytes: object.size };
    first.push(measures, object.addr, object);
}
