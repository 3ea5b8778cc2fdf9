//! What is measured: the rows of the table, and the scopes that each is measured in. A new mode, build or scope is one
//! line here.

use thermalloc_bench::monitor::Scope;

/// One way to run memcached.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name in the results.
    pub name: &'static str,
    /// What `memcached-builds` calls the binary.
    pub build: &'static str,
    /// Mode of the monitor; `None`: without the runtime, so that the scope makes no difference.
    pub mode: Option<&'static str>,
    /// The binary executes WRPKRU by itself.
    pub wrpkru: bool,
    /// Run time relative to native that the paper gives for writes to slab pages.
    pub paper: Option<f64>,
}

/// The row that all others are compared with.
pub const NATIVE: &str = "native";

const fn row(name: &'static str, build: &'static str, mode: Option<&'static str>, paper: Option<f64>) -> Row {
    Row { name, build, mode, wrpkru: false, paper }
}

/// All rows, in the order of the results.
pub const ROWS: [Row; 8] = [
    row(NATIVE, "plain", None, Some(1.0)),
    row("pp", "plain", Some("pp"), Some(5.07)),
    row("mpk", "plain", Some("mpk"), Some(3.43)),
    row("mpk-ci", "items-wrpkru", Some("mpk"), Some(2.1)),
    Row { wrpkru: true, ..row("wrpkru", "all-pair-only", None, Some(1.04)) },
    row("ci-alias", "all-alias", Some("auto"), None),
    row("emulate", "plain", Some("emulate"), None),
    row("patch", "plain", Some("patch"), None),
];

/// How the runtime and memcached are compiled.
pub const FLAGS: &str = "release, fat LTO, one codegen unit; memcached: clang-16 -O2";

/// memcached allocates slab pages of at most 1 MiB, and nothing else of that size; its table of keys has 512 KiB.
const SLAB_PAGES: &str = "size>=600K,size<=1M";

/// All scopes, the paper's first.
pub const SCOPES: [Scope; 3] = [
    Scope { name: "slab-writes", access: "w", watch: SLAB_PAGES },
    Scope { name: "slab-rw", access: "rw", watch: SLAB_PAGES },
    Scope { name: "heap-rw", access: "rw", watch: "" },
];

/// A row in a scope: what one line of the results stands for, and one measured run after the other is made of. Rows
/// without the runtime are measured once for all scopes.
pub fn cells(rows: &[Row], scopes: &[Scope]) -> Vec<(Row, Option<Scope>)> {
    let one = |row: &Row| match row.mode {
        None => vec![(*row, None)],
        Some(_) => scopes.iter().map(|scope| (*row, Some(*scope))).collect(),
    };
    rows.iter().flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_contract() {
        let names = ROWS.map(|row| row.name);
        assert_eq!(names, ["native", "pp", "mpk", "mpk-ci", "wrpkru", "ci-alias", "emulate", "patch"]);
        assert_eq!(SCOPES.map(|scope| scope.name), ["slab-writes", "slab-rw", "heap-rw"]);
    }

    #[test]
    fn rows_without_the_runtime_are_measured_once() {
        let cells = cells(&ROWS, &SCOPES);
        let count = |name| cells.iter().filter(|(row, _)| row.name == name).count();
        assert_eq!((count(NATIVE), count("wrpkru"), count("pp"), cells.len()), (1, 1, 3, 20));
    }
}
