//! What a call stack is called across builds: its functions and the files that these are written in, without addresses and
//! lines, which change whenever something above them does. Code without names is told by its build and place in it.

use super::resolve::Function;
use serde::{Deserialize, Serialize};
use thermalloc_format::Module;

/// A call stack, innermost function first. Empty: unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Its functions, those that are inlined too.
    pub steps: Vec<Step>,
}

/// One function of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Its name, or file and offset.
    pub function: String,
    /// The last part of its source's path; empty if unknown.
    pub file: String,
    /// Where it has no name, the build id of the file that the code is in, or `none`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub build_id: String,
}

impl Step {
    pub(super) fn new(function: &Function, module: Option<&Module>, offset: u64) -> Self {
        // Builds for different directories are to compare equal.
        let file = function.file.rsplit('/').next().unwrap_or_default();
        // A function without debug information may be any of its name: static ones often share one.
        let file = if file.is_empty() && function.known { &function.module } else { file };
        let (name, build_id) = match (function.known, module) {
            (true, _) => (function.name.clone(), String::new()),
            (false, Some(module)) if !module.build_id.is_empty() => {
                (format!("{}+{offset:#x}", function.module), module.build_id.clone())
            }
            (false, _) => (function.name.clone(), "none".into()),
        };
        Self { function: name, file: file.to_owned(), build_id }
    }

    /// Whether another build can have the same.
    pub fn is_named(&self) -> bool {
        self.build_id.is_empty()
    }
}

impl Identity {
    /// Whether all of it is known by name, so that another build's equals it.
    pub fn is_named(&self) -> bool {
        !self.steps.is_empty() && self.steps.iter().all(Step::is_named)
    }
}
