//! Reads a report as a stream, so that memory is bounded by what is shown, not by the file: objects pass by one at a
//! time and only the first N are kept; timelines and histograms are dropped.

use super::rank::{First, Measures};
use crate::failure::Failure;
use crate::options::{By, Sort, TopOptions};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::marker::PhantomData;
use std::path::Path;
use thermalloc_format::read::Problem;
use thermalloc_format::{Class, FORMAT, Object, ReadError, Report, Site, VERSION};

const BUFFER: usize = 1 << 20;

/// The report, with no more than the objects to be shown, in their order.
pub fn load(options: &TopOptions) -> Result<Report, Failure> {
    let path = options.path.as_path();
    read(path, options).map_err(|problem| {
        let error = ReadError { path: path.to_owned(), problem };
        let message = error.to_string();
        Failure::own(format!("{message}; give a heat.json that 'thermalloc run' has written"))
    })
}

fn read(path: &Path, options: &TopOptions) -> Result<Report, Problem> {
    let mut reader = BufReader::with_capacity(BUFFER, File::open(path).map_err(Problem::Io)?);
    if at_end(&mut reader).map_err(Problem::Io)? {
        return Err(Problem::Empty);
    }
    let report = parse(reader, options).map_err(|error| explain(path, error))?;
    match (report.format.as_str(), report.version) {
        (FORMAT, VERSION) => Ok(report),
        (FORMAT, 0) => Err(Problem::Version(None)),
        (FORMAT, version) => Err(Problem::Version(Some(version))),
        _ => Err(Problem::NotReport),
    }
}

/// Parses one report, and nothing after it.
pub fn parse(reader: impl io::Read, options: &TopOptions) -> serde_json::Result<Report> {
    let mut json = serde_json::Deserializer::from_reader(reader);
    let wanted = Wanted { by: options.by, sort: options.sort, limit: options.n };
    let report = json.deserialize_map(wanted)?;
    json.end()?;
    Ok(report)
}

/// Whether only white space is left.
fn at_end(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(true);
        }
        let blank = buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let more = blank == buffer.len();
        reader.consume(blank);
        if !more {
            return Ok(false);
        }
    }
}

fn explain(path: &Path, error: serde_json::Error) -> Problem {
    match error.classify() {
        Category::Io => Problem::Io(error.into()),
        Category::Eof => Problem::Truncated,
        Category::Syntax => Problem::NotJson(error.to_string()),
        Category::Data => identify(path).unwrap_or_else(|| Problem::Malformed(error.to_string())),
    }
}

/// What a file with unexpected values is, if not a report of this version.
fn identify(path: &Path) -> Option<Problem> {
    #[derive(serde::Deserialize)]
    struct Identity {
        #[serde(default)]
        format: serde_json::Value,
        #[serde(default)]
        version: serde_json::Value,
    }
    let file = BufReader::with_capacity(BUFFER, File::open(path).ok()?);
    match serde_json::from_reader::<_, Identity>(file) {
        Ok(identity) if identity.format != FORMAT => Some(Problem::NotReport),
        Ok(identity) if identity.version != VERSION => Some(Problem::Version(identity.version.as_u64())),
        Ok(_) => None,
        Err(error) if error.is_eof() => Some(Problem::Truncated),
        Err(error) if error.is_data() => Some(Problem::NotReport),
        Err(error) => Some(Problem::NotJson(error.to_string())),
    }
}

/// What is to be kept of a report.
struct Wanted {
    by: By,
    sort: Sort,
    limit: usize,
}

impl<'de> Visitor<'de> for Wanted {
    type Value = Report;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a heat.json object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Report, A::Error> {
        let mut report = Report::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "format" => report.format = map.next_value()?,
                "version" => report.version = map.next_value()?,
                "program" => report.program = map.next_value()?,
                "config" => report.config = map.next_value()?,
                "totals" => report.totals = map.next_value()?,
                "limits" => report.limits = map.next_value()?,
                "warnings" => report.warnings = map.next_value()?,
                "objects_omitted" => report.objects_omitted = map.next_value()?,
                "frames" => report.frames = map.next_value()?,
                "modules" => report.modules = map.next_value()?,
                "classes" => report.classes = map.next_value_seed(each(Vec::new(), keep_class))?,
                "sites" => report.sites = map.next_value_seed(each(Vec::new(), keep_site))?,
                "objects" if self.by == By::Object => {
                    let first = First::new(self.limit, self.sort);
                    report.objects = map.next_value_seed(each(first, keep_object))?.into_vec();
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(report)
    }
}

fn keep_class(classes: &mut Vec<Class>, mut class: Class) {
    class.accesses_per_object.hdr_v2_base64 = String::new();
    classes.push(class);
}

fn keep_site(sites: &mut Vec<Site>, mut site: Site) {
    site.accesses_per_object.hdr_v2_base64 = String::new();
    site.lifetime_ns.hdr_v2_base64 = String::new();
    sites.push(site);
}

fn keep_object(first: &mut First<Object>, object: Object) {
    let measures = Measures { reads: object.reads, writes: object.writes, bytes: object.size };
    first.push(measures, object.addr, object);
}

/// Hands each element of a sequence to a function.
struct Each<S, T, F> {
    state: S,
    keep: F,
    element: PhantomData<T>,
}

fn each<S, T, F: Fn(&mut S, T)>(state: S, keep: F) -> Each<S, T, F> {
    Each { state, keep, element: PhantomData }
}

impl<'de, S, T: serde::Deserialize<'de>, F: Fn(&mut S, T)> DeserializeSeed<'de> for Each<S, T, F> {
    type Value = S;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S, T: serde::Deserialize<'de>, F: Fn(&mut S, T)> Visitor<'de> for Each<S, T, F> {
    type Value = S;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<S, A::Error> {
        while let Some(element) = sequence.next_element()? {
            (self.keep)(&mut self.state, element);
        }
        Ok(self.state)
    }
}
