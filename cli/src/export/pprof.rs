//! A report as a profile of pprof, compressed: `go tool pprof` and speedscope open it. A sample is a site. Live and peak
//! bytes are at the end of the run. All accesses were counted, so there is no period to scale with.

use super::profile::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use crate::measure::{live, weight};
use crate::options::Weight;
use crate::output::{Sink, Stop};
use crate::symbols::{Stacks, printable};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::collections::HashMap;
use std::io::Write;
use thermalloc_format::{Report, Site};

/// Names as the Go heap profile has them, then what it does not have.
const TYPES: [(&str, &str); 10] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
    ("peak_space", "bytes"),
    ("accesses", "count"),
    ("reads", "count"),
    ("writes", "count"),
    ("read_bytes", "bytes"),
    ("write_bytes", "bytes"),
];
const SHOWN_FIRST: &str = "accesses";

/// Mappings begin and end at multiples of this.
const PAGE: u64 = 4096;

/// Writes the profile.
pub fn write<H>(report: &Report<H>, stacks: &mut Stacks<'_>, sink: &mut Sink<'_>) -> Result<(), Stop> {
    let profile = profile(report, stacks);
    let mut compressed = GzEncoder::new(sink, Compression::default());
    compressed.write_all(&profile.encode_to_vec())?;
    compressed.finish()?;
    Ok(())
}

/// The profile, from whose tables all ids come.
fn profile<H>(report: &Report<H>, stacks: &mut Stacks<'_>) -> Profile {
    let mut build = Builder::new(report, stacks);
    for site in &report.sites {
        build.add_site(site);
    }
    let mut profile = build.profile;
    let program = &report.program;
    profile.time_nanos = number(program.start_unix_ns);
    profile.duration_nanos = number(program.elapsed_ns);
    profile
}

/// The viewers add samples up: what is beyond their numbers is cut.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn values(site: &Site) -> Vec<i64> {
    let of = |what| number(weight(site, what));
    vec![
        of(Weight::Allocs),
        of(Weight::Bytes),
        number(live(site)),
        of(Weight::LiveBytes),
        of(Weight::PeakBytes),
        of(Weight::Accesses),
        of(Weight::Reads),
        of(Weight::Writes),
        of(Weight::ReadBytes),
        of(Weight::WriteBytes),
    ]
}

struct Builder<'a, 's, H> {
    report: &'a Report<H>,
    stacks: &'a mut Stacks<'s>,
    profile: Profile,
    texts: HashMap<String, i64>,
    /// Ids by name and file.
    functions: HashMap<(i64, i64), u64>,
    /// Ids by index of the frame.
    locations: HashMap<u32, u64>,
}

impl<'a, 's, H> Builder<'a, 's, H> {
    fn new(report: &'a Report<H>, stacks: &'a mut Stacks<'s>) -> Self {
        let mut build = Self {
            report,
            stacks,
            profile: Profile::default(),
            texts: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
        };
        build.text("");
        for (name, unit) in TYPES {
            let (r#type, unit) = (build.text(name), build.text(unit));
            build.profile.sample_type.push(ValueType { r#type, unit });
        }
        build.profile.default_sample_type = build.text(SHOWN_FIRST);
        build.add_mappings();
        let config = &report.config;
        let command = report.program.cmdline.join(" ");
        let comment = format!("{command} (thermalloc, mode {}, access {})", config.mode, config.access);
        let comment = build.text(&printable(&comment));
        build.profile.comment.push(comment);
        build
    }

    fn text(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.texts.get(text) {
            return index;
        }
        let index = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.texts.insert(text.to_owned(), index);
        index
    }

    /// Ids are indices plus one. A mapping reaches as far as the highest address that was seen in it.
    fn add_mappings(&mut self) {
        let modules = &self.report.modules;
        let mut last: Vec<u64> = modules.iter().map(|module| module.base).collect();
        for frame in &self.report.frames {
            if let Some(last) = frame.module.and_then(|module| last.get_mut(module as usize)) {
                *last = frame.ip.max(*last);
            }
        }
        for (index, (module, last)) in modules.iter().zip(last).enumerate() {
            let limit = last.saturating_add(1).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
            let (filename, build_id) = (self.text(&module.path), self.text(&module.build_id));
            self.profile.mapping.push(Mapping {
                id: index as u64 + 1,
                memory_start: module.base,
                memory_limit: limit,
                filename,
                build_id,
                ..Mapping::default()
            });
        }
    }

    fn add_site(&mut self, site: &Site) {
        let location_id = site.frames.iter().filter_map(|&frame| self.location(frame)).collect();
        let label = [("site", u64::from(site.id)), ("max_threads", site.max_threads.into())];
        let label = label.map(|(key, num)| Label { key: self.text(key), num: number(num) }).to_vec();
        self.profile.sample.push(Sample { location_id, value: values(site), label });
    }

    fn location(&mut self, index: u32) -> Option<u64> {
        if let Some(&id) = self.locations.get(&index) {
            return Some(id);
        }
        let frame = self.report.frames.get(index as usize)?;
        let functions = self.stacks.frame(index).to_vec();
        let mapping = frame.module.and_then(|module| self.profile.mapping.get_mut(module as usize));
        let mapping_id = mapping.map_or(0, |mapping| {
            mapping.has_functions |= functions.iter().any(|function| function.known);
            mapping.has_filenames |= functions.iter().any(|function| !function.file.is_empty());
            mapping.has_line_numbers |= functions.iter().any(|function| function.line > 0);
            mapping.has_inline_frames |= functions.len() > 1;
            mapping.id
        });
        let line = functions.iter().map(|function| self.line(function)).collect();
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location { id, mapping_id, address: frame.ip, line });
        self.locations.insert(index, id);
        Some(id)
    }

    fn line(&mut self, function: &crate::symbols::Function) -> Line {
        let (name, filename) = (self.text(&function.name), self.text(&function.file));
        let next = self.profile.function.len() as u64 + 1;
        let function_id = *self.functions.entry((name, filename)).or_insert(next);
        if function_id == next {
            self.profile.function.push(Function { id: next, name, system_name: name, filename });
        }
        Line { function_id, line: function.line.into() }
    }
}
