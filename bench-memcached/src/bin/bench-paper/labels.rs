//! Heat by label: what a report says of the objects that the program itself has named.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// Accesses of all objects with one label, dead and alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heat {
    /// Objects.
    pub objects: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl Display for Heat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { objects, reads, writes, read_bytes, write_bytes } = self;
        write!(
            f,
            "{objects} objects, {reads} reads of {read_bytes} bytes, {writes} writes of {write_bytes} bytes"
        )
    }
}

impl Heat {
    /// All but the bytes.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.objects, self.reads, self.writes)
    }

    /// Reads and writes.
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }
}

/// Heat by label.
pub type ByLabel = BTreeMap<String, Heat>;

/// Sums up the named objects. A report that left objects out would make the sums wrong, so that it is refused.
pub fn sum(report: &Value) -> Result<ByLabel, String> {
    let omitted = report["objects_omitted"].as_u64().unwrap_or(0);
    if omitted > 0 {
        return Err(format!("the report leaves out {omitted} objects"));
    }
    let mut all = ByLabel::new();
    for object in report["objects"].as_array().into_iter().flatten() {
        let Some(label) = object["label"].as_str() else { continue };
        let number = |name: &str| object[name].as_u64().unwrap_or(0);
        let heat = all.entry(label.to_owned()).or_default();
        heat.objects += 1;
        heat.reads += number("reads");
        heat.writes += number("writes");
        heat.read_bytes += number("read_bytes");
        heat.write_bytes += number("write_bytes");
    }
    Ok(all)
}

/// The labels whose heat differs in what `part` takes of it, or that only one side has.
pub fn differing<'a, P: PartialEq>(
    left: &'a ByLabel,
    right: &'a ByLabel,
    part: impl Fn(&Heat) -> P,
) -> Vec<&'a str> {
    let only_right = right.keys().filter(|label| !left.contains_key(*label));
    let same = |label: &String, heat: &Heat| right.get(label).is_some_and(|other| part(other) == part(heat));
    let differs = left.iter().filter(|(label, heat)| !same(label, heat)).map(|(label, _)| label);
    differs.chain(only_right).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(reads: u64) -> Value {
        json!({"objects_omitted": 0, "objects": [
            {"size": 1},
            {"label": "a", "reads": reads, "writes": 2, "read_bytes": 3, "write_bytes": 4},
            {"label": "a", "reads": 10, "writes": 20, "read_bytes": 30, "write_bytes": 40},
            {"label": "b", "reads": 1, "writes": 0, "read_bytes": 8, "write_bytes": 0},
        ]})
    }

    #[test]
    fn objects_with_the_same_label_add_up() {
        let all = sum(&report(1)).unwrap();
        assert_eq!(all["a"], Heat { objects: 2, reads: 11, writes: 22, read_bytes: 33, write_bytes: 44 });
        assert_eq!((all.len(), all["b"].accesses()), (2, 1));
    }

    #[test]
    fn incomplete_reports_are_refused() {
        let mut report = report(1);
        report["objects_omitted"] = 3.into();
        assert!(sum(&report).unwrap_err().contains("3 objects"));
    }

    #[test]
    fn differences_are_found_on_both_sides() {
        let (left, mut right) = (sum(&report(1)).unwrap(), sum(&report(2)).unwrap());
        right.insert("c".into(), Heat::default());
        assert_eq!(differing(&left, &right, |heat| *heat), ["a", "c"]);
        assert_eq!(differing(&right, &left, |heat| *heat), ["a", "c"]);
        assert_eq!(differing(&left, &right, |heat| heat.writes), ["c"]);
        assert!(differing(&left, &left, |heat| *heat).is_empty());
    }
}
