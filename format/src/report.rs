//! heat.json as a whole: the process, its configuration and machine, its totals, its code addresses.

use crate::heat::{Class, Heat, Object, Site, Skipped, Timeline};
use serde::{Deserialize, Serialize};

/// Value of the key `format`.
pub const FORMAT: &str = "thermalloc-heat";

/// Value of the key `version`.
pub const VERSION: u64 = 1;

/// One heat.json. `H` is what becomes of each object's heat arrays; see [`Summary`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "H: Default + Deserialize<'de>"))]
pub struct Report<H = Heat> {
    /// Always [`FORMAT`].
    pub format: String,
    /// Always [`VERSION`].
    pub version: u64,
    /// The process that was watched.
    pub program: Program,
    /// A report that was made from others: where they came from, in their order. The number of a part is in the bits from
    /// 48 on of its objects' addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// How it was watched.
    pub config: Config,
    /// The machine.
    pub host: Host,
    /// Sums over the whole process.
    pub totals: Totals,
    /// What had to be cut or counted less exactly, as numbers.
    pub limits: Limits,
    /// The same for people, one sentence each; empty when nothing was cut.
    pub warnings: Vec<String>,
    /// Size classes that were used.
    pub classes: Vec<Class>,
    /// Call stacks that allocated.
    pub sites: Vec<Site>,
    /// Live objects and the hottest dead ones, hottest first.
    pub objects: Vec<Object<H>>,
    /// Objects that are counted in `sites` and `classes` but not listed in `objects`.
    pub objects_omitted: u64,
    /// Accesses by site over time.
    pub timeline: Timeline,
    /// Code addresses that the sites' stacks consist of.
    pub frames: Vec<Frame>,
    /// Files that these addresses lie in.
    pub modules: Vec<Module>,
    /// The functions that `frames[i]` lies in, innermost first, in a report that was made from others: the files that the
    /// addresses lie in may not be at hand where it is read. Empty: to be looked up in `modules`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Vec<Name>>,
    /// Mode `patch`: sites that were not patched, each of whose accesses took a fault. The most frequent first.
    pub unpatched: Vec<Unpatched>,
}

/// A report without the objects' heat arrays: much smaller in memory, quicker to read.
pub type Summary = Report<Skipped>;

impl<H> Default for Report<H> {
    /// A report of nothing; `format` and `version` are empty, as when a file does not state them.
    fn default() -> Self {
        Self {
            format: String::new(),
            version: 0,
            program: Program::default(),
            parts: Vec::new(),
            config: Config::default(),
            host: Host::default(),
            totals: Totals::default(),
            limits: Limits::default(),
            warnings: Vec::new(),
            classes: Vec::new(),
            sites: Vec::new(),
            objects: Vec::new(),
            objects_omitted: 0,
            timeline: Timeline::default(),
            frames: Vec::new(),
            modules: Vec::new(),
            names: Vec::new(),
            unpatched: Vec::new(),
        }
    }
}

/// The process that was watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// Its arguments, the program's name first; bytes that are not UTF-8 are replaced.
    pub cmdline: Vec<String>,
    /// Path of the executable.
    pub exe: String,
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub ppid: u32,
    /// Start of the measurement, in ns since 1970 (UTC): zero of all other times in the report.
    pub start_unix_ns: u64,
    /// From start to report.
    pub elapsed_ns: u64,
    /// Why the report was written.
    pub end: End,
    /// Exit status for `exit`, signal number for `signal`, else 0.
    pub status: i32,
}

/// What a part of a merged report says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// The process.
    pub program: Program,
    /// How it was watched.
    pub config: Config,
    /// Its machine.
    pub host: Host,
}

/// Why a report was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The program ended by itself.
    Exit,
    /// A signal is about to end it.
    Signal,
    /// It is about to execute another program.
    Exec,
    /// It goes on; this is a periodic report or a snapshot.
    Interval,
    /// A reason that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// How the process was watched; the values are those of the command line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The mode that ran (`auto` is resolved): `pp`, `mpk`, ...
    pub mode: String,
    /// `rw` or `w`.
    pub access: String,
    /// Which objects are watched; empty: all.
    pub watch: String,
    /// Bytes of an object that share a pair of counters.
    pub granule: u64,
    /// Frames of a call stack at most; 0: the immediate caller alone.
    pub depth: u32,
    /// Period of reports in ms; 0: none.
    pub interval_ms: u64,
    /// `alias` or `private`.
    pub view: String,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Model name.
    pub cpu: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Whether protection keys could be used.
    pub pku: bool,
    /// Protection keys that could be allocated, 0 to 15.
    pub pkeys: u32,
    /// Whether Syscall User Dispatch could be used.
    pub sud: bool,
}

/// Sums over the process. Watched objects only.
///
/// An access that spans several objects is one access of each, here too, so that
/// `reads + writes` is the sum of all sites' `reads + writes` and `unattributed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Objects allocated.
    pub allocs: u64,
    /// Objects freed.
    pub frees: u64,
    /// Bytes asked for by all allocations.
    pub bytes: u64,
    /// Bytes of the objects that are alive.
    pub live_bytes: u64,
    /// Highest value of `live_bytes`.
    pub peak_live_bytes: u64,
    /// Read accesses.
    pub reads: u64,
    /// Write accesses.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Of `reads`, those that the kernel made for the program.
    pub kernel_reads: u64,
    /// Of `writes`, those that the kernel made for the program.
    pub kernel_writes: u64,
    /// Of `reads` and `writes`, those that no live object owns (use after free, beyond the last chunk).
    pub unattributed: u64,
    /// Bytes of the `unattributed` accesses.
    pub unattributed_bytes: u64,
    /// Protection faults taken.
    pub faults: u64,
    /// Instructions single-stepped.
    pub steps: u64,
    /// Instructions emulated.
    pub emulated: u64,
    /// Instruction sites rewritten.
    pub patched_sites: u64,
    /// System calls seen.
    pub syscalls: u64,
}

/// What had to be cut or counted less exactly. All zero: the report is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Allocations whose call stack found no room and are counted at site 0.
    pub stacks_unnamed: u64,
    /// Objects in `objects` whose heat arrays are coarser than the granule.
    pub objects_coarsened: u64,
    /// Of `objects_omitted`, those that are alive.
    pub live_objects_omitted: u64,
    /// Sites with accesses that have no row in the timeline.
    pub timeline_sites_omitted: u64,
}

/// A site that mode `patch` could not patch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unpatched {
    /// Index in `modules`; null: no file's code.
    pub module: Option<u32>,
    /// Offset in the module, or the address.
    pub offset: u64,
    /// The code from there on, in hexadecimal.
    pub bytes: String,
    /// Why.
    pub reason: String,
    /// How often it has faulted.
    pub faults: u64,
}

/// A code address of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// The address in the process: where the call returns to.
    pub ip: u64,
    /// Index into `modules`; null where the address lies in no known file.
    pub module: Option<u32>,
    /// The address in the file's own terms (virtual address of its ELF headers).
    pub offset: u64,
}

/// A function that a code address lies in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Name {
    /// Its readable name.
    pub function: String,
    /// Path of its source file; empty if unknown.
    pub file: String,
    /// Line of the call in that file; 0 if unknown.
    pub line: u32,
}

/// A file that code was mapped from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    /// Path of the file.
    pub path: String,
    /// What has to be added to an `offset` to get an `ip`.
    pub base: u64,
    /// Contents of the GNU build-id note in lower-case hexadecimal; empty where there is none.
    pub build_id: String,
}
