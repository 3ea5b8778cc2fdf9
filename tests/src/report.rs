//! Reading of heat.json by its contract alone.

use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

/// A parsed heat.json.
#[derive(Debug)]
pub struct Report(Value);

/// What a report says of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectHeat {
    /// Bytes that the program asked for.
    pub size: u64,
    /// Accesses and bytes.
    pub counts: Counts,
    /// Number of threads that touched it.
    pub threads: u64,
    /// Bytes of a granule.
    pub granule: u64,
    /// Accesses by granule.
    pub granule_reads: Vec<u64>,
    /// Accesses by granule.
    pub granule_writes: Vec<u64>,
}

/// Accesses and the bytes that they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl Counts {
    /// Adds others.
    pub fn add(&mut self, other: &Counts) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
    }

    /// Takes the four numbers of these names out of a JSON object.
    pub fn of(value: &Value) -> Counts {
        Self {
            reads: number(value, "reads"),
            writes: number(value, "writes"),
            read_bytes: number(value, "read_bytes"),
            write_bytes: number(value, "write_bytes"),
        }
    }
}

/// The unsigned number `key` of a JSON object.
pub fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no number `{key}` in {value}"))
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().into_iter().flatten().map(|entry| entry.as_u64().expect("an array of numbers")).collect()
}

impl Report {
    /// Reads a report; panics where it is missing or not what the contract says.
    pub fn read(path: &Path) -> Report {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("no report {}: {error}", path.display()));
        let value: Value =
            serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(value["format"], "thermalloc-heat", "{}", path.display());
        assert_eq!(value["version"], 1, "{}", path.display());
        Report(value)
    }

    /// All reports of a folder.
    pub fn read_all(folder: &Path) -> Vec<Report> {
        let entries = fs::read_dir(folder).expect("folder of reports");
        let paths = entries.map(|entry| entry.expect("entry of a folder").path());
        paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .map(|path| Report::read(&path))
            .collect()
    }

    /// The object `program`.
    pub fn program(&self) -> &Value {
        &self.0["program"]
    }

    /// How the program ended: `exit`, `signal`, `exec` or `interval`.
    pub fn end(&self) -> &str {
        self.0["program"]["end"].as_str().expect("program.end")
    }

    /// One of the totals.
    pub fn total(&self, key: &str) -> u64 {
        number(&self.0["totals"], key)
    }

    /// The mode that it was made in.
    pub fn mode(&self) -> &str {
        self.0["config"]["mode"].as_str().expect("config.mode")
    }

    /// Whether system calls were seen through Syscall User Dispatch.
    pub fn sud(&self) -> bool {
        self.0["host"]["sud"].as_bool().expect("host.sud")
    }

    /// Why sites have not been patched, one reason a site.
    pub fn unpatched(&self) -> impl Iterator<Item = &str> {
        let sites = self.0["unpatched"].as_array().into_iter().flatten();
        sites.map(|site| site["reason"].as_str().expect("a reason"))
    }

    /// All objects that are listed.
    pub fn objects(&self) -> &[Value] {
        self.0["objects"].as_array().expect("objects")
    }

    /// The live objects by address.
    pub fn live_objects(&self) -> HashMap<u64, ObjectHeat> {
        self.objects()
            .iter()
            .filter(|object| object["free_ns"].is_null())
            .map(|object| (number(object, "addr"), heat_of(object)))
            .collect()
    }
}

/// An object of the list, live or dead.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its address.
    pub address: u64,
    /// When it was born, in nanoseconds since the start.
    pub born: u64,
    /// Its accesses.
    pub heat: ObjectHeat,
    /// Number of its site.
    pub site: u64,
}

impl Report {
    /// All listed objects, by address and then in the order of birth.
    pub fn listed_objects(&self) -> Vec<Listed> {
        let objects = self.0["objects"].as_array().expect("objects");
        let listed = |object| Listed {
            address: number(object, "addr"),
            born: number(object, "alloc_ns"),
            heat: heat_of(object),
            site: number(object, "site"),
        };
        let mut all: Vec<Listed> = objects.iter().map(listed).collect();
        all.sort_by_key(|object| (object.address, object.born));
        all
    }

    /// How many objects are not listed.
    pub fn objects_omitted(&self) -> u64 {
        number(&self.0, "objects_omitted")
    }

    /// Each site by its call stack (modules and offsets): allocations, frees, bytes, and its accesses.
    pub fn sites(&self) -> BTreeMap<String, ([u64; 3], Counts)> {
        let mut sites = BTreeMap::new();
        for site in self.0["sites"].as_array().expect("sites") {
            let numbers = ["allocs", "frees", "bytes"].map(|key| number(site, key));
            let (known, counts) = sites.entry(self.stack(site)).or_insert(([0; 3], Counts::default()));
            *known = std::array::from_fn(|at| known[at] + numbers[at]);
            counts.add(&Counts::of(site));
        }
        sites
    }

    /// The call stack of a site by its number.
    pub fn site(&self, id: u64) -> String {
        let sites = self.0["sites"].as_array().expect("sites");
        sites.iter().find(|site| number(site, "id") == id).map_or_else(String::new, |site| self.stack(site))
    }

    fn stack(&self, site: &Value) -> String {
        let frame = |index: &Value| {
            let frame = &self.0["frames"][index.as_u64().expect("index of a frame") as usize];
            let module = frame["module"].as_u64().map(|module| &self.0["modules"][module as usize]["path"]);
            let path = module.and_then(Value::as_str).unwrap_or("?");
            format!(
                "{}+{:#x}",
                path.rsplit('/').next().unwrap_or(path),
                frame["offset"].as_u64().unwrap_or(0)
            )
        };
        let frames = site["frames"].as_array().expect("frames of a site");
        frames.iter().map(frame).collect::<Vec<_>>().join(" < ")
    }
}

fn heat_of(object: &Value) -> ObjectHeat {
    ObjectHeat {
        size: number(object, "size"),
        counts: Counts::of(object),
        threads: number(object, "threads"),
        granule: number(&object["heat"], "granule"),
        granule_reads: numbers(&object["heat"]["reads"]),
        granule_writes: numbers(&object["heat"]["writes"]),
    }
}
