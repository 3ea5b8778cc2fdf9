//! What to watch and how: parsed from the environment (`THERMALLOC_*`) or filled in by the Rust API.
//!
//! Values are read from `/proc/self/environ`, for the first allocation can come before libc has its `environ`.

use std::fmt;

pub use thermalloc_format::Watch;

/// How an access is made visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The allocator alone: nothing is watched.
    Off,
    /// Page protection and single step.
    Pp,
    /// A memory protection key and single step.
    Mpk,
    /// The instruction that faults runs in a copy that accesses the alias view: one signal an access.
    Emulate,
    /// The instruction that faults is rewritten to jump into translated code that counts its accesses: one signal a site.
    Patch,
    /// The fastest exact mode that this machine can do.
    Auto,
}

/// Which kinds of access are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Loads and stores.
    ReadsAndWrites,
    /// Stores alone.
    Writes,
}

/// How the arena is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Shared memory mapped twice: a protected program view and an open alias.
    Alias,
    /// Private anonymous memory, opened for each access of the runtime.
    Private,
}

impl View {
    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alias => "alias",
            Self::Private => "private",
        }
    }
}

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Config {
    /// How accesses are made visible.
    pub mode: Mode,
    /// Which kinds of access.
    pub access: Watched,
    /// Which objects.
    pub watch: Watch,
    /// How the arena is mapped; `None`: as suits the mode.
    pub view: Option<View>,
    /// Whether SIGUSR2 stops watching, and starts it again. The program never sees the signal then.
    pub toggle: bool,
    /// Milliseconds between periodic reports; 0: none.
    pub interval_ms: u64,
    /// Call-stack frames kept for each allocation site; 0: the immediate caller, without unwinding.
    pub depth: usize,
    /// Bytes that share one heat counter: a power of two from 16 to 4096.
    pub granule: usize,
    /// Where the report goes; `%p` stands for the process id.
    pub out: String,
    /// 0: errors alone; 1: one line at the start and end; 2, 3: what the monitor does.
    pub verbose: u8,
    /// Process id of the first process of a run: the only one whose report has the plain name.
    pub first_pid: Option<i32>,
    /// Program images that this process has had before this one.
    pub images: u32,
}

/// Frames that a call stack may have at most.
pub const MAX_DEPTH: usize = 64;

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            access: Watched::ReadsAndWrites,
            watch: Watch::default(),
            view: None,
            toggle: false,
            interval_ms: 0,
            depth: 8,
            granule: 16,
            out: "heat.%p.json".to_owned(),
            verbose: 0,
            first_pid: None,
            images: 0,
        }
    }
}

/// A variable whose value is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    variable: &'static str,
    value: String,
    expected: String,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}='{}' is not understood: {}", self.variable, self.value, self.expected)
    }
}

impl Config {
    /// Reads the `THERMALLOC_*` variables of the environment that the process was started with.
    pub fn from_env() -> Result<Self, BadValue> {
        let environ = std::fs::read("/proc/self/environ").unwrap_or_default();
        Self::from_variables(environ.split(|&byte| byte == 0).filter_map(|entry| {
            let entry = std::str::from_utf8(entry).ok()?;
            entry.split_once('=')
        }))
    }

    /// Reads settings from `(name, value)` pairs; other variables are passed over.
    pub fn from_variables<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, BadValue> {
        let mut config = Self::default();
        for (name, value) in variables {
            config.set(name, value)?;
        }
        Ok(config)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), BadValue> {
        match name {
            "THERMALLOC_MODE" => {
                self.mode = choose(
                    "THERMALLOC_MODE",
                    value,
                    &[
                        ("auto", Mode::Auto),
                        ("off", Mode::Off),
                        ("pp", Mode::Pp),
                        ("mpk", Mode::Mpk),
                        ("emulate", Mode::Emulate),
                        ("patch", Mode::Patch),
                    ],
                )?;
            }
            "THERMALLOC_ACCESS" => {
                let choices = [("rw", Watched::ReadsAndWrites), ("w", Watched::Writes)];
                self.access = choose("THERMALLOC_ACCESS", value, &choices)?;
            }
            "THERMALLOC_VIEW" => {
                let choices = [("alias", View::Alias), ("private", View::Private)];
                self.view = Some(choose("THERMALLOC_VIEW", value, &choices)?);
            }
            "THERMALLOC_WATCH" => {
                self.watch =
                    Watch::parse(value).map_err(|expected| bad("THERMALLOC_WATCH", value, expected))?;
            }
            "THERMALLOC_REGIONS" => choose("THERMALLOC_REGIONS", value, &[("heap", ())])?,
            "THERMALLOC_CLIENT" => choose("THERMALLOC_CLIENT", value, &[("heat", ())])?,
            "THERMALLOC_TOGGLE" => {
                self.toggle = choose("THERMALLOC_TOGGLE", value, &[("0", false), ("1", true)])?;
            }
            "THERMALLOC_INTERVAL_MS" => {
                self.interval_ms = number("THERMALLOC_INTERVAL_MS", value, 0, 86_400_000)?;
            }
            "THERMALLOC_DEPTH" => {
                self.depth = number("THERMALLOC_DEPTH", value, 0, MAX_DEPTH as u64)? as usize;
            }
            "THERMALLOC_GRANULE" => {
                let granule = number("THERMALLOC_GRANULE", value, 16, 4096)? as usize;
                if !granule.is_power_of_two() {
                    let expected = "a power of two from 16 to 4096".to_owned();
                    return Err(bad("THERMALLOC_GRANULE", value, expected));
                }
                self.granule = granule;
            }
            "THERMALLOC_VERBOSE" => self.verbose = number("THERMALLOC_VERBOSE", value, 0, 3)? as u8,
            "THERMALLOC_OUT" if !value.is_empty() => self.out = value.to_owned(),
            "_THERMALLOC_FIRST" => {
                let (pid, images) = value.split_once(':').unwrap_or((value, "0"));
                self.first_pid = pid.parse().ok();
                self.images = images.parse().unwrap_or(0);
            }
            _ => {}
        }
        Ok(())
    }
}

fn bad(variable: &'static str, value: &str, expected: String) -> BadValue {
    BadValue { variable, value: value.to_owned(), expected }
}

fn choose<T: Copy>(variable: &'static str, value: &str, choices: &[(&str, T)]) -> Result<T, BadValue> {
    choices.iter().find(|(name, _)| *name == value).map(|&(_, choice)| choice).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        bad(variable, value, format!("use {}", names.join(" or ")))
    })
}

fn number(variable: &'static str, value: &str, least: u64, most: u64) -> Result<u64, BadValue> {
    value
        .parse()
        .ok()
        .filter(|n| (least..=most).contains(n))
        .ok_or_else(|| bad(variable, value, format!("use a number from {least} to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: &[(&str, &str)]) -> Result<Config, BadValue> {
        Config::from_variables(variables.iter().copied())
    }

    #[test]
    fn reads_every_variable() {
        let config = parse(&[
            ("THERMALLOC_MODE", "mpk"),
            ("THERMALLOC_ACCESS", "w"),
            ("THERMALLOC_WATCH", "size>=4K,size<=1M,sample=1/10,module=libfoo"),
            ("THERMALLOC_DEPTH", "0"),
            ("THERMALLOC_GRANULE", "64"),
            ("THERMALLOC_OUT", "x.json"),
            ("HOME", "/"),
        ])
        .unwrap();
        assert_eq!((config.mode, config.access), (Mode::Mpk, Watched::Writes));
        assert_eq!(config.watch.min_size, Some(4096));
        assert_eq!(config.watch.max_size, Some(1 << 20));
        assert_eq!(config.watch.sample, Some(10));
        assert_eq!(config.watch.module.as_deref(), Some("libfoo"));
        assert_eq!((config.depth, config.granule, config.out.as_str()), (0, 64, "x.json"));
    }

    #[test]
    fn names_the_variable_that_is_wrong() {
        for (name, value) in [
            ("THERMALLOC_MODE", "fast"),
            ("THERMALLOC_ACCESS", "r"),
            ("THERMALLOC_WATCH", "size>4"),
            ("THERMALLOC_WATCH", "sample=1/0"),
            ("THERMALLOC_WATCH", "size>=99999999999999999999"),
            ("THERMALLOC_WATCH", "size>=99999999999999G"),
            ("THERMALLOC_GRANULE", "48"),
            ("THERMALLOC_DEPTH", "-1"),
            ("THERMALLOC_TOGGLE", "yes"),
            ("THERMALLOC_INTERVAL_MS", "1s"),
            ("THERMALLOC_CLIENT", "nothing"),
        ] {
            let message = parse(&[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(value), "{message}");
        }
    }
}
