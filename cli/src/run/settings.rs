//! The environment that the program is given: the caller's own, LD_PRELOAD with the runtime first, and THERMALLOC_*
//! for every option that was given. A variable that the caller has set stays unless an option says otherwise.

use super::reports::Naming;
use crate::options::RunOptions;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables by name.
pub type Environment = Vec<(OsString, OsString)>;

const DEFAULT_OUT: &str = "heat.%p.json";
const PRELOAD: &str = "LD_PRELOAD";
const MOST_VERBOSE: u8 = 3;

/// What an unmonitored program is given: everything as it was.
pub fn inherited() -> Environment {
    env::vars_os().collect()
}

/// What a monitored program is given.
pub fn environment(options: &RunOptions, library: &Path, naming: &Naming) -> Environment {
    let mut environment = inherited();
    let preload = preload(library, env::var_os(PRELOAD).as_deref());
    set(&mut environment, PRELOAD, preload);
    set(&mut environment, "THERMALLOC_MODE", mode(options));
    set(&mut environment, "THERMALLOC_OUT", naming.absolute());
    let given = [
        ("THERMALLOC_ACCESS", options.access.clone()),
        ("THERMALLOC_WATCH", options.watch.clone()),
        ("THERMALLOC_REGIONS", options.regions.clone()),
        ("THERMALLOC_CLIENT", options.client.clone()),
        ("THERMALLOC_INTERVAL_MS", options.interval.map(|ms| ms.to_string())),
        ("THERMALLOC_DEPTH", options.depth.map(|frames| frames.to_string())),
        ("THERMALLOC_GRANULE", options.granule.map(|bytes| bytes.to_string())),
        ("THERMALLOC_VIEW", options.view.clone()),
        ("THERMALLOC_VERBOSE", (options.verbose > 0).then(|| options.verbose.min(MOST_VERBOSE).to_string())),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            set(&mut environment, name, value);
        }
    }
    environment
}

/// Where reports go: the option, else the environment, else the default.
pub fn output(options: &RunOptions) -> PathBuf {
    let inherited = || env::var_os("THERMALLOC_OUT").filter(|path| !path.is_empty()).map(PathBuf::from);
    options.output.clone().or_else(inherited).unwrap_or_else(|| DEFAULT_OUT.into())
}

/// The mode: the option, else the environment, else `auto`.
pub fn mode(options: &RunOptions) -> String {
    let inherited = || env::var("THERMALLOC_MODE").ok().filter(|mode| !mode.is_empty());
    options.mode.clone().or_else(inherited).unwrap_or_else(|| "auto".into())
}

/// Milliseconds between periodic reports; 0 means none.
pub fn interval(options: &RunOptions) -> u32 {
    let inherited = || env::var("THERMALLOC_INTERVAL_MS").ok()?.parse().ok();
    options.interval.or_else(inherited).unwrap_or(0)
}

fn preload(library: &Path, inherited: Option<&OsStr>) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(rest) = inherited.filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    list
}

fn set(environment: &mut Environment, name: &str, value: impl Into<OsString>) {
    environment.retain(|(other, _)| other != name);
    environment.push((name.into(), value.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_comes_first_in_the_preload_list() {
        let library = Path::new("/lib/libthermalloc.so");
        assert_eq!(preload(library, None), "/lib/libthermalloc.so");
        assert_eq!(preload(library, Some("".as_ref())), "/lib/libthermalloc.so");
        assert_eq!(preload(library, Some("/a.so /b.so".as_ref())), "/lib/libthermalloc.so:/a.so /b.so");
    }

    #[test]
    fn setting_replaces() {
        let mut environment = vec![("A".into(), "1".into()), ("B".into(), "2".into())];
        set(&mut environment, "A", "3");
        assert_eq!(environment, [("B".into(), "2".into()), (OsString::from("A"), OsString::from("3"))]);
    }
}
