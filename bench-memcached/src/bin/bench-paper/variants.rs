//! The ways of seeing accesses that must agree item by item.

/// A build in a mode.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name in the results.
    pub name: &'static str,
    /// What `memcached-builds` calls the binary.
    pub build: &'static str,
    /// Mode of the monitor.
    pub mode: &'static str,
    /// THERMALLOC_VIEW; `None`: as suits the mode.
    pub view: Option<&'static str>,
}

const fn variant(
    name: &'static str,
    build: &'static str,
    mode: &'static str,
    view: Option<&'static str>,
) -> Variant {
    Variant { name, build, mode, view }
}

/// All of them; each is compared with the first, and with the others of its build: inline counting is switched off where
/// its means (a key, an alias view) are missing, and then the same code is single-stepped.
pub const VARIANTS: [Variant; 9] = [
    variant("pp", "plain+libc", "pp", None),
    variant("mpk", "plain+libc", "mpk", None),
    variant("emulate", "plain+libc", "emulate", None),
    variant("patch", "plain+libc", "patch", None),
    variant("mpk-ci", "items-wrpkru+libc", "mpk", None),
    variant("mpk-ci stepped", "items-wrpkru+libc", "pp", None),
    variant("ci-alias", "all-alias+libc", "auto", None),
    variant("ci-alias stepped", "all-alias+libc", "pp", Some("private")),
    variant("ci-alias of items.c", "items-alias+libc", "auto", None),
];
