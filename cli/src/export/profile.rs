//! The messages of profile.proto (github.com/google/pprof, proto/profile.proto), field by field. Texts are indices into the
//! string table, whose first entry is empty; ids are not zero.

use prost::Message;

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// What the values of a sample are.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Stacks and their values.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Files that code was mapped from, the program's first.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Code addresses.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// All texts.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// Start, in ns since 1970.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// Duration, in ns.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// What is counted one by one.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// How many of these make a sample.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Free text.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// Which type of value a viewer shows first.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    /// Such as `inuse_space`.
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// Such as `bytes`.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A stack and its values.
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    /// Ids of locations, innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// One for each sample type.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// What else is known.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// A key and a number.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Label {
    /// Its name.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// Its value.
    #[prost(int64, tag = "3")]
    pub num: i64,
}

/// A file that code was mapped from.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Mapping {
    /// Not zero.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// First address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// Behind the last address.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// What of the file lies at the first address.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// Its path.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// In hexadecimal.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Whether locations have functions, and viewers need not look for them.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// Whether functions have files.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// Whether locations have lines.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// Whether locations have inlined functions.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A code address.
#[derive(Clone, PartialEq, Message)]
pub struct Location {
    /// Not zero.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Zero: none.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// In the process.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// Functions, inlined ones first.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Line {
    /// Id of the function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// In its file.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Function {
    /// Not zero.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// As people read it.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// As the linker knows it.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Its source.
    #[prost(int64, tag = "4")]
    pub filename: i64,
}
