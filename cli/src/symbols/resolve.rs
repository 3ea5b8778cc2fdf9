//! Code address to function, file and line, offline, from the files that the report names.

use super::debug_files;
use super::demangle::demangle;
use addr2line::{Loader, Location};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use thermalloc_format::{Frame, Module, Name};

/// A function that a code address lies in. Inlined functions come before those that they are inlined into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its readable name, or `module+0xoffset`.
    pub name: String,
    /// Whether `name` is a function's name.
    pub known: bool,
    /// Whether its source is a standard library's or the allocator's: line tables give functions no qualified names.
    pub standard: bool,
    /// Path of its source file as the debug information has it; empty if unknown.
    pub file: String,
    /// Line of the call in that file; 0 if unknown.
    pub line: u32,
    /// The file name of the module; empty if unknown.
    pub module: String,
}

impl Function {
    /// `directory/file:line`; empty if unknown.
    pub fn place(&self) -> String {
        // The last two parts of the path tell enough.
        let start = self.file.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
        let file = self.file[start..].trim_start_matches('/');
        if self.line == 0 { file.to_owned() } else { format!("{file}:{}", self.line) }
    }
}

/// The modules of a report, opened when first needed.
pub struct Symbols<'a> {
    modules: &'a [Module],
    directories: Vec<PathBuf>,
    opened: HashMap<usize, Vec<Loader>>,
    notes: Vec<String>,
}

impl<'a> Symbols<'a> {
    /// Opens nothing yet. A module that is not where it was, or is another build now, is looked for in these directories.
    pub fn new(modules: &'a [Module], directories: &[PathBuf]) -> Self {
        Self { modules, directories: directories.to_vec(), opened: HashMap::new(), notes: Vec::new() }
    }

    /// What the user should know about names that could not be found.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The functions that a return address lies in, innermost first; at least one.
    pub fn resolve(&mut self, frame: &Frame) -> Vec<Function> {
        let index = frame.module.map(|module| module as usize);
        let Some((index, module)) = index.and_then(|index| Some((index, self.modules.get(index)?))) else {
            return vec![unnamed(format!("{:#x}", frame.ip), String::new())];
        };
        let name = file_name(&module.path);
        // The call that returns to an address lies before it, and may be the last instruction of its function.
        let probe = frame.offset.saturating_sub(1);
        let (directories, notes) = (&self.directories, &mut self.notes);
        let loaders = self.opened.entry(index).or_insert_with(|| open(module, directories, notes));
        let functions =
            loaders.iter().map(|loader| lookup(loader, probe, &name)).find(|found| !found.is_empty());
        functions.unwrap_or_else(|| vec![unnamed(format!("{name}+{:#x}", frame.offset), name)])
    }

    /// As [`Self::resolve`], from names that the report itself has.
    pub fn named(&self, frame: &Frame, names: &[Name]) -> Vec<Function> {
        let module = frame.module.and_then(|module| self.modules.get(module as usize));
        let module = module.map(|module| file_name(&module.path)).unwrap_or_default();
        let function = |name: &Name| Function {
            name: printable(&name.function),
            known: true,
            standard: is_standard(&name.file),
            file: printable(&name.file),
            line: name.line,
            module: module.clone(),
        };
        names.iter().map(function).collect()
    }
}

fn unnamed(name: String, module: String) -> Function {
    Function { name, known: false, standard: false, file: String::new(), line: 0, module }
}

/// The last part of a path; control characters would upset the terminal.
fn file_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() { "?".into() } else { printable(name) }
}

/// Text from a file, fit for a terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Sources of names for a module, best first.
fn open(module: &Module, directories: &[PathBuf], notes: &mut Vec<String>) -> Vec<Loader> {
    let path = Path::new(&module.path);
    // Anything else than a file, such as a device, is not worth opening.
    let id = path.is_absolute().then(|| debug_files::build_id(path)).flatten();
    if id.as_ref().is_some_and(|id| *id == module.build_id) {
        let separate =
            debug_files::separate(path).and_then(|file| Loader::new_with_sup(file.path, file.common).ok());
        return separate.into_iter().chain(own(path)).collect();
    }
    if let Some(elsewhere) = debug_files::elsewhere(path, &module.build_id, directories) {
        return own(&elsewhere).into_iter().collect();
    }
    if id.is_some() {
        let path = printable(&module.path);
        notes.push(format!(
            "{path} is not the file that ran (its build id differs), so its functions have no names"
        ));
    }
    Vec::new()
}

fn own(path: &Path) -> Option<Loader> {
    Loader::new_with_sup(path, debug_files::common(path)).ok()
}

fn lookup(loader: &Loader, probe: u64, module: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    if let Ok(mut frames) = loader.find_frames(probe) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|function| Some(demangle(&function.raw_name().ok()?)));
            if let Some(name) = name {
                functions.push(named(&name, frame.location, module));
            }
        }
    }
    if functions.is_empty()
        && let Some(symbol) = loader.find_symbol(probe)
    {
        functions.push(named(&demangle(symbol), loader.find_location(probe).ok().flatten(), module));
    }
    functions
}

fn named(name: &str, location: Option<Location<'_>>, module: &str) -> Function {
    let file = location.as_ref().and_then(|at| at.file).unwrap_or_default();
    Function {
        name: printable(name),
        known: true,
        standard: is_standard(file),
        file: printable(file),
        line: location.and_then(|at| at.line).unwrap_or(0),
        module: module.to_owned(),
    }
}

/// Where the sources of Rust's library, of the crates it is built with, and of C++'s headers lie.
const STANDARD: [&str; 5] =
    ["/library/alloc/src/", "/library/core/src/", "/library/std/src/", "/rust/deps/", "/usr/include/c++/"];

fn is_standard(file: &str) -> bool {
    let is_allocator = || file.contains("thermalloc") && file.ends_with("/src/global.rs");
    STANDARD.iter().any(|part| file.contains(part)) || is_allocator()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_to_two_parts() {
        let place = |file: &str, line| {
            Function { file: file.into(), line, ..unnamed(String::new(), String::new()) }.place()
        };
        assert_eq!(place("/build/src/deep/main.c", 7), "deep/main.c:7");
        assert_eq!(place("main.c", 0), "main.c");
        assert_eq!(place("/main.c", 1), "main.c:1");
    }

    #[test]
    fn standard_libraries_are_told_by_their_path() {
        assert!(is_standard("/rustc/0123abcd/library/alloc/src/alloc.rs"));
        assert!(is_standard("/usr/include/c++/12/bits/new_allocator.h"));
        assert!(is_standard("/home/me/.cargo/git/checkouts/thermalloc-0123/4567/thermalloc/src/global.rs"));
        assert!(
            !is_standard("/home/me/service/src/alloc.rs") && !is_standard("/home/me/service/src/global.rs")
        );
    }

    #[test]
    fn addresses_without_a_file_keep_their_module() {
        let modules = [Module { path: "/nowhere/libfoo.so".into(), ..Module::default() }];
        let mut symbols = Symbols::new(&modules, &[]);
        let frame = Frame { ip: 0x1000, module: Some(0), offset: 0x234 };
        assert_eq!(symbols.resolve(&frame)[0].name, "libfoo.so+0x234");
        for module in [None, Some(1), Some(u32::MAX)] {
            assert_eq!(symbols.resolve(&Frame { module, ..frame.clone() })[0].name, "0x1000");
        }
    }
}
