//! Reads a report as a stream, so that memory is bounded by what is kept, not by the file: objects, most of a large
//! report, pass by one at a time. They come before the code addresses, so whoever needs both reads twice.

use crate::failure::Failure;
use crate::progress::Watched;
use serde::Deserialize;
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

/// Whether the encoded histograms of sites and classes are kept: they are long, and few need them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Histograms {
    /// As they are.
    Keep,
    /// Left empty.
    Drop,
}

/// The report without its objects.
pub fn without_objects<H>(path: &Path, histograms: Histograms) -> Result<Report<H>, Failure> {
    from_file(path, |reader| parse_without_objects(reader, histograms))
}

/// The report without its objects, each of which is handed to `keep`: with `H` = `Heat` including its heat by offset, with
/// `Skipped` without. When this fails, some objects may have been handed over.
pub fn read<H>(path: &Path, histograms: Histograms, keep: impl FnMut(Object<H>)) -> Result<Report<H>, Failure>
where
    H: Default + for<'de> Deserialize<'de>,
{
    from_file(path, |reader| parse(reader, histograms, keep))
}

/// As [`without_objects`], from anything.
pub fn parse_without_objects<H>(
    reader: impl io::Read,
    histograms: Histograms,
) -> serde_json::Result<Report<H>> {
    whole(reader, Wanted { histograms, objects: Each::<IgnoredAny, _, H>::new(drop) })
}

/// As [`read`], from anything.
pub fn parse<H>(
    reader: impl io::Read,
    histograms: Histograms,
    keep: impl FnMut(Object<H>),
) -> serde_json::Result<Report<H>>
where
    H: Default + for<'de> Deserialize<'de>,
{
    whole(reader, Wanted { histograms, objects: Each::<Object<H>, _, H>::new(keep) })
}

/// One report, and nothing after it.
fn whole<'de, T: Deserialize<'de>, F: FnMut(T), H>(
    reader: impl io::Read,
    wanted: Wanted<T, F, H>,
) -> serde_json::Result<Report<H>> {
    let mut json = serde_json::Deserializer::from_reader(reader);
    let report = json.deserialize_map(wanted)?;
    json.end()?;
    Ok(report)
}

fn from_file<H>(
    path: &Path,
    parse: impl FnOnce(BufReader<Watched>) -> serde_json::Result<Report<H>>,
) -> Result<Report<H>, Failure> {
    checked(path, parse).map_err(|problem| {
        let error = ReadError { path: path.to_owned(), problem };
        Failure::own(format!("{error}; give a heat.json that 'thermalloc run' has written"))
    })
}

fn checked<H>(
    path: &Path,
    parse: impl FnOnce(BufReader<Watched>) -> serde_json::Result<Report<H>>,
) -> Result<Report<H>, Problem> {
    let mut reader = BufReader::with_capacity(BUFFER, Watched::open(path).map_err(Problem::Io)?);
    if at_end(&mut reader).map_err(Problem::Io)? {
        return Err(Problem::Empty);
    }
    let report = parse(reader).map_err(|error| explain(path, error))?;
    match (report.format.as_str(), report.version) {
        (FORMAT, VERSION) => Ok(report),
        (FORMAT, 0) => Err(Problem::Version(None)),
        (FORMAT, version) => Err(Problem::Version(Some(version))),
        _ => Err(Problem::NotReport),
    }
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
struct Wanted<T, F, H> {
    histograms: Histograms,
    objects: Each<T, F, H>,
}

impl<'de, T: Deserialize<'de>, F: FnMut(T), H> Visitor<'de> for Wanted<T, F, H> {
    type Value = Report<H>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a heat.json object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Report<H>, A::Error> {
        let mut report = Report::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "format" => report.format = map.next_value()?,
                "version" => report.version = map.next_value()?,
                "program" => report.program = map.next_value()?,
                "parts" => report.parts = map.next_value()?,
                "config" => report.config = map.next_value()?,
                "host" => report.host = map.next_value()?,
                "totals" => report.totals = map.next_value()?,
                "limits" => report.limits = map.next_value()?,
                "warnings" => report.warnings = map.next_value()?,
                "objects_omitted" => report.objects_omitted = map.next_value()?,
                "timeline" => report.timeline = map.next_value()?,
                "frames" => report.frames = map.next_value()?,
                "modules" => report.modules = map.next_value()?,
                "names" => report.names = map.next_value()?,
                "unpatched" => report.unpatched = map.next_value()?,
                "classes" => report.classes = kept(&mut map, |class| keep_class(class, self.histograms))?,
                "sites" => report.sites = kept(&mut map, |site| keep_site(site, self.histograms))?,
                "objects" => map.next_value_seed(&mut self.objects)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(report)
    }
}

/// A sequence whose elements are pruned as they arrive.
fn kept<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    map: &mut A,
    prune: impl Fn(T) -> T,
) -> Result<Vec<T>, A::Error> {
    let mut all = Vec::new();
    map.next_value_seed(&mut Each::<T, _, ()>::new(|element| all.push(prune(element))))?;
    Ok(all)
}

fn keep_class(mut class: Class, histograms: Histograms) -> Class {
    if histograms == Histograms::Drop {
        class.accesses_per_object.hdr_v2_base64 = String::new();
    }
    class
}

fn keep_site(mut site: Site, histograms: Histograms) -> Site {
    if histograms == Histograms::Drop {
        site.accesses_per_object.hdr_v2_base64 = String::new();
        site.lifetime_ns.hdr_v2_base64 = String::new();
    }
    site
}

/// Hands each element of a sequence to a function. `H` only says which report it belongs to.
struct Each<T, F, H> {
    keep: F,
    element: PhantomData<(T, H)>,
}

impl<T, F: FnMut(T), H> Each<T, F, H> {
    fn new(keep: F) -> Self {
        Self { keep, element: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T), H> DeserializeSeed<'de> for &mut Each<T, F, H> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T), H> Visitor<'de> for &mut Each<T, F, H> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while let Some(element) = sequence.next_element()? {
            (self.keep)(element);
        }
        Ok(())
    }
}
