//! `module=NAME`: is this code in the module called NAME?

use super::modules;
use std::sync::atomic::{AtomicU8, Ordering};

/// Verdicts that are remembered; modules with higher indices are looked up each time.
const REMEMBERED: usize = 4096;
const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

/// A module name to compare with. NAME is the module's file name, or what comes before a `.` or `-` in it: `libfoo`
/// means `libfoo.so.1` and `libfoo-2.3.so`, not `libfoobar.so`.
pub struct ModuleMatcher {
    name: String,
    verdicts: Box<[AtomicU8]>,
}

impl ModuleMatcher {
    /// A matcher for `name`.
    pub fn new(name: &str) -> Self {
        let verdicts = (0..REMEMBERED).map(|_| AtomicU8::new(UNKNOWN)).collect();
        Self { name: name.to_owned(), verdicts }
    }

    /// True if the module that owns the code at `ip` has the name.
    #[inline]
    pub fn matches(&self, ip: u64) -> bool {
        modules::locate(ip).is_some_and(|(index, _)| self.matches_module(index))
    }

    /// True if the module with this index has the name.
    pub fn matches_module(&self, index: u32) -> bool {
        // Relaxed: a verdict depends on nothing else, and any thread would find the same.
        let verdict = self.verdicts.get(index as usize);
        match verdict.map_or(UNKNOWN, |v| v.load(Ordering::Relaxed)) {
            UNKNOWN => {
                let yes = modules::get(index).is_some_and(|module| is_called(&module.path, &self.name));
                if let Some(verdict) = verdict {
                    verdict.store(if yes { YES } else { NO }, Ordering::Relaxed);
                }
                yes
            }
            verdict => verdict == YES,
        }
    }
}

fn is_called(path: &str, name: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or(path);
    match base.strip_prefix(name) {
        _ if name.is_empty() => false,
        Some(rest) => rest.is_empty() || rest.starts_with(['.', '-']),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_whole_up_to_a_dot_or_dash() {
        for path in ["/lib/libfoo.so.1", "/lib/libfoo", "libfoo-2.3.so", "/x/libfoo.so"] {
            assert!(is_called(path, "libfoo"), "{path}");
        }
        for path in ["/lib/libfoobar.so", "/lib/mylibfoo.so", "/libfoo/bar", "", "/lib/libfo.so"] {
            assert!(!is_called(path, "libfoo"), "{path}");
        }
        assert!(is_called("/lib/libfoo.so.1", "libfoo.so.1"));
        assert!(!is_called("/lib/.hidden", ""));
    }
}
