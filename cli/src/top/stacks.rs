//! Which frame of a call stack to show: the innermost one that is not part of an allocation function or of a
//! language's standard library.

use super::symbols::{Function, Symbols};
use thermalloc_format::{Frame, Site};

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

/// All functions of a site's call stack, innermost first.
pub fn functions(site: &Site, frames: &[Frame], symbols: &mut Symbols<'_>) -> Vec<Function> {
    let known = site.frames.iter().filter_map(|&index| frames.get(index as usize));
    known.flat_map(|frame| symbols.resolve(frame)).collect()
}

/// The function to show for a site; `None`: its stack is unknown. Resolves no more frames than it must.
pub fn telling(site: &Site, frames: &[Frame], symbols: &mut Symbols<'_>) -> Option<Function> {
    let mut innermost = None;
    for frame in site.frames.iter().filter_map(|&index| frames.get(index as usize)) {
        for function in symbols.resolve(frame) {
            if !is_shim(&function) {
                return Some(function);
            }
            innermost = innermost.or(Some(function));
        }
    }
    innermost
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
            line: String::new(),
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
