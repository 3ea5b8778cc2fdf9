//! `thermalloc merge`: one report of several, of processes or hosts, that all commands read. Totals add up; call stacks that
//! are the same become one site; the functions' names go into the result, for the files may be elsewhere.
//!
//! Modules, lowest first:
//! - [`distributions`]: sums of distributions.
//! - [`heat`]: heat by offset in fewer entries.
//! - [`code`]: frames and modules, each once.
//! - [`sites`]: sites and classes, each once, under new ids.
//! - [`timeline`]: timelines on one axis.
//! - [`objects`]: the hottest objects of all.
//! - [`header`]: programs, settings, machines, totals, and what was cut.

mod code;
mod distributions;
mod header;
mod heat;
mod objects;
mod sites;
mod timeline;

use crate::failure::{Failure, say};
use crate::input::{self, Histograms};
use crate::options::MergeOptions;
use crate::output;
use crate::symbols::Stacks;
use code::Code;
use header::Shifts;
use objects::Objects;
use sites::Sites;
use std::io;
use std::path::PathBuf;
use thermalloc_format::{FORMAT, Heat, Object, Report, VERSION};
use timeline::Axis;

/// Bits of an address; those above have the number of the part.
const ADDRESS_BITS: u32 = 48;

/// Reads all, writes one.
pub fn merge(options: &MergeOptions) -> Result<u8, Failure> {
    let read = |path: &PathBuf| input::without_objects(path, Histograms::Keep);
    let reports: Vec<Report> = options.paths.iter().map(read).collect::<Result<_, _>>()?;
    let (merged, notes) = merged(reports, options, &mut |index, take| {
        input::read::<Heat>(&options.paths[index], Histograms::Drop, take).map(drop)
    })?;
    output::write(Some(&options.output), |sink| {
        serde_json::to_writer(&mut *sink, &merged).map_err(io::Error::from)?;
        Ok(sink.write_all(b"\n")?)
    })?;
    notes.iter().for_each(|note| say(note));
    Ok(0)
}

/// Hands each object of the report of this index to a function.
type EachObject<'a> = dyn FnMut(usize, &mut dyn FnMut(Object)) -> Result<(), Failure> + 'a;

/// The merged report, and what the user should know about names. `reports` have no objects.
fn merged(
    reports: Vec<Report>,
    options: &MergeOptions,
    each_object: &mut EachObject<'_>,
) -> Result<(Report, Vec<String>), Failure> {
    let shifts = Shifts::new(&reports, options.align);
    let mut result = Report { format: FORMAT.into(), version: VERSION, ..Report::default() };
    header::merge(&reports, &shifts, &mut result);
    let mut axis = Axis::new(&reports, &shifts);
    let (mut code, mut sites, mut objects) =
        (Code::new(options.by_name), Sites::default(), Objects::new(options.objects));
    let (mut notes, mut part) = (Vec::new(), 0u64);
    for (index, report) in reports.iter().enumerate() {
        let mut stacks = Stacks::with_files(report, &options.symbols);
        let frames = code.add(report, &mut stacks);
        notes.extend_from_slice(stacks.notes());
        let ids = sites.add(report, &frames);
        axis.add(report, &ids, shifts.of(index));
        each_object(index, &mut |mut object| {
            ids.rename(&mut object);
            shifts.apply(index, &mut object);
            object.addr = object.addr.wrapping_add(part << ADDRESS_BITS);
            objects.add(object);
        })?;
        part += report.parts.len().max(1) as u64;
    }
    code.fill(&mut result);
    sites.fill(&mut result);
    axis.fill(&mut result);
    objects.fill(&mut result);
    Ok((result, notes))
}

#[cfg(test)]
mod tests;
