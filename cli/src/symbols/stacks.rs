//! Call stacks of sites as functions, each address resolved once; and which function to show: the innermost one that
//! is not part of an allocation function or of a language's standard library.

use super::identity::{Identity, Step};
use super::resolve::{Function, Symbols};
use std::collections::HashMap;
use std::path::PathBuf;
use thermalloc_format::{Frame, Module, Name, Report, Site};

/// Functions that allocate on behalf of their caller.
const ALLOCATORS: [&str; 31] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "strdup",
    "__strdup",
    "strndup",
    "__strndup",
    "asprintf",
    "__asprintf",
    "vasprintf",
    "__vasprintf_internal",
    "__asprintf_chk",
    "__vasprintf_chk",
    "xmalloc",
    "xcalloc",
    "xrealloc",
    "xstrdup",
    "xmemdup",
    "xzalloc",
    "g_malloc",
    "g_malloc0",
    "g_realloc",
    "g_strdup",
    "g_memdup2",
    "g_slice_alloc",
];

/// How names begin in standard libraries and generated code.
const LIBRARIES: [&str; 10] = [
    "operator new",
    "__rust_",
    "__rdl_",
    "__rg_",
    "alloc::",
    "core::",
    "std::",
    "hashbrown::",
    "__gnu_cxx::",
    "__libc_",
];

const RUNTIME: &str = "libthermalloc.so";

/// The call stacks of a report.
pub struct Stacks<'a> {
    frames: &'a [Frame],
    names: &'a [Vec<Name>],
    modules: &'a [Module],
    symbols: Symbols<'a>,
    resolved: HashMap<u32, Vec<Function>>,
}

impl<'a> Stacks<'a> {
    /// Resolves nothing yet.
    pub fn new<H>(report: &'a Report<H>) -> Self {
        Self::with_files(report, &[])
    }

    /// Looks for the files that the report names in these directories too, such as those of an older build.
    pub fn with_files<H>(report: &'a Report<H>, directories: &[PathBuf]) -> Self {
        Self {
            frames: &report.frames,
            names: &report.names,
            modules: &report.modules,
            symbols: Symbols::new(&report.modules, directories),
            resolved: HashMap::new(),
        }
    }

    /// What the user should know about names that could not be found so far.
    pub fn notes(&self) -> &[String] {
        self.symbols.notes()
    }

    /// The functions that a code address lies in, innermost first: at least one, or none if the report has no such address.
    pub fn frame(&mut self, index: u32) -> &[Function] {
        let Self { frames, names, symbols, resolved, .. } = self;
        resolved.entry(index).or_insert_with(|| {
            let Some(frame) = frames.get(index as usize) else { return Vec::new() };
            match names.get(index as usize) {
                Some(names) if !names.is_empty() => symbols.named(frame, names),
                _ => symbols.resolve(frame),
            }
        })
    }

    /// All functions of a site's call stack, innermost first.
    pub fn functions(&mut self, site: &Site) -> Vec<&Function> {
        for &index in &site.frames {
            self.frame(index);
        }
        site.frames.iter().flat_map(|index| &self.resolved[index]).collect()
    }

    /// What the site's call stack is called in any build.
    pub fn identity(&mut self, site: &Site) -> Identity {
        let mut steps = Vec::new();
        for &index in &site.frames {
            let frame = self.frames.get(index as usize);
            let module = frame.and_then(|frame| self.modules.get(frame.module? as usize));
            let offset = frame.map_or(0, |frame| frame.offset);
            let step = |function: &Function| Step::new(function, module, offset);
            steps.extend(self.frame(index).iter().map(step));
        }
        Identity { steps }
    }

    /// The function to show for a site; `None`: its stack is unknown. Resolves no more frames than it must.
    pub fn telling(&mut self, site: &Site) -> Option<&Function> {
        let is_telling = |function: &Function| !is_shim(function);
        let frames = site.frames.iter().copied();
        let found =
            frames.clone().find_map(|index| Some((index, self.frame(index).iter().position(is_telling)?)));
        let innermost =
            || frames.clone().find(|index| !self.resolved[index].is_empty()).map(|index| (index, 0));
        let (index, at) = found.or_else(innermost)?;
        self.resolved[&index].get(at)
    }
}

fn is_shim(function: &Function) -> bool {
    let name = function.name.as_str();
    let named = || function.known && (ALLOCATORS.contains(&name) || is_library(name));
    function.module == RUNTIME || function.standard || named()
}

fn is_library(name: &str) -> bool {
    // `<T as alloc::slice::Join>::join` and `<alloc::vec::Vec<T>>::push` belong to the library too.
    let of_library = |name: &str| LIBRARIES.iter().any(|prefix| name.starts_with(prefix));
    let inner = name.trim_start_matches('<');
    let implemented = || name.starts_with('<') && name.split(" as ").skip(1).any(of_library);
    of_library(inner) || implemented()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, module: &str) -> Function {
        Function {
            name: name.into(),
            known: true,
            standard: false,
            file: String::new(),
            line: 0,
            module: module.into(),
        }
    }

    #[test]
    fn shims() {
        for name in [
            "malloc",
            "operator new[]",
            "__rust_alloc_zeroed",
            "alloc::vec::Vec<T>::push",
            "<alloc::vec::Vec<T,A> as core::clone::Clone>::clone",
            "<T as alloc::string::ToString>::to_string",
            "std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>",
        ] {
            assert!(is_shim(&function(name, "prog")), "{name}");
        }
        for name in
            ["main", "mallocator", "server::store", "<server::Item as server::Heat>::alloc", "stdx::f"]
        {
            assert!(!is_shim(&function(name, "prog")), "{name}");
        }
        assert!(is_shim(&function("anything", RUNTIME)));
    }
}
