//! Heat by class, site and object, and over time.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A size class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Class {
    /// What `objects[].class` names.
    pub id: u32,
    /// Bytes of a chunk; 0 for the class of objects that have pages of their own.
    pub chunk_size: u64,
    /// Chunks in a slab page.
    pub per_slab: u64,
    /// Slab pages in use.
    pub slabs: u64,
    /// Objects allocated.
    pub allocs: u64,
    /// Objects freed.
    pub frees: u64,
    /// Read accesses.
    pub reads: u64,
    /// Write accesses.
    pub writes: u64,
    /// Reads plus writes of each object, dead or alive.
    pub accesses_per_object: Distribution,
}

/// An allocation site: one call stack. Site 0 stands for stacks that are unknown or found no room.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Site {
    /// What `objects[].site` and `timeline.sites[].site` name.
    pub id: u32,
    /// Indices into `frames`, innermost caller first.
    pub frames: Vec<u32>,
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
    /// Most threads that accessed one object; 64 stands for 64 or more.
    pub max_threads: u32,
    /// Reads plus writes of each object, dead or alive.
    pub accesses_per_object: Distribution,
    /// From allocation to free, in ns; freed objects only.
    pub lifetime_ns: Distribution,
}

/// How a quantity is distributed over objects. `count`, `min`, `mean` and `max` are exact; the percentiles are exact
/// to one (sites) or two (classes) significant decimal digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distribution {
    /// Objects.
    pub count: u64,
    /// Smallest value; 0 if there is none.
    pub min: u64,
    /// Arithmetic mean; 0 if there is none.
    pub mean: f64,
    /// Half of the objects have at most this value.
    pub p50: u64,
    /// 90 % of the objects have at most this value.
    pub p90: u64,
    /// 99 % of the objects have at most this value.
    pub p99: u64,
    /// Largest value.
    pub max: u64,
    /// The HdrHistogram in its V2 encoding, then Base64 (standard alphabet); empty if `count` is 0.
    pub hdr_v2_base64: String,
}

/// One successful allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Object<H = Heat> {
    /// Where it begins.
    pub addr: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Id of its size class.
    pub class: u32,
    /// Id of its allocation site.
    pub site: u32,
    /// When it was allocated.
    pub alloc_ns: u64,
    /// When it was freed; null: alive.
    pub free_ns: Option<u64>,
    /// Read accesses.
    pub reads: u64,
    /// Write accesses.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Threads that accessed it; 64 stands for 64 or more.
    pub threads: u32,
    /// Time of the first access; null: none.
    pub first_access_ns: Option<u64>,
    /// Time of the last access; null: none.
    pub last_access_ns: Option<u64>,
    /// What the program itself calls the object, where it has an allocator of its own; empty: nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Heat by offset.
    pub heat: H,
}

/// Heat by offset within an object: `reads[i]` and `writes[i]` belong to the bytes from `i * granule` on. An access
/// of n bytes at offset a counts where a, a + g, a + 2g, ... below a + n lie (g: the configured granule), so one that
/// spans granules counts in each of them. Both arrays are empty for an object that was never accessed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heat {
    /// Bytes that an entry stands for: the configured granule, or a power of two times it where the
    /// object is so large that entries were summed.
    pub granule: u64,
    /// Counts of reads.
    pub reads: Vec<u64>,
    /// Counts of writes.
    pub writes: Vec<u64>,
}

/// Heat arrays that were not read from the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl Serialize for Skipped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Heat::default().serialize(serializer)
    }
}

/// Accesses by site over time. Interval i lasts from `t_ns[i]` to `t_ns[i] + interval_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeline {
    /// Length of an interval; it doubles as the program runs, so that at most 64 are needed.
    pub interval_ns: u64,
    /// Start of each interval.
    pub t_ns: Vec<u64>,
    /// Sites that were accessed, hottest first.
    pub sites: Vec<SiteTimeline>,
}

/// Accesses to one site's objects, one entry for each of `t_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SiteTimeline {
    /// Id of the site.
    pub site: u32,
    /// Read accesses.
    pub reads: Vec<u64>,
    /// Write accesses.
    pub writes: Vec<u64>,
}
