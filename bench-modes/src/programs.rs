//! The programs that keep one processor busy, and their inputs.

use crate::inputs;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the distribution's programs are: what else is on PATH may be a wrapper.
pub const PATH: &str = "/usr/bin:/bin";

/// A program and all that it needs.
#[derive(Clone, Debug)]
pub struct Program {
    /// The binary.
    pub binary: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What it reads from standard input, if anything.
    pub stdin: Option<PathBuf>,
}

/// How to come by a program.
#[derive(Clone, Copy)]
pub struct Recipe {
    /// Its name in the results.
    pub name: &'static str,
    /// What it does, with what size of input.
    pub about: &'static str,
    /// Size of the input at scale 1.
    size: u64,
    prepare: fn(&Kitchen) -> Result<Program, String>,
}

/// Where a recipe finds what it needs.
struct Kitchen<'a> {
    /// For inputs and what is compiled.
    work: &'a Path,
    /// Of the programs built beside this one.
    programs: &'a Path,
    size: u64,
}

/// All of them, in the order of the results.
pub const RECIPES: [Recipe; 8] = [
    Recipe {
        name: "sqlite3",
        about: "200,000 rows in, group-by, join, order by",
        size: 200_000,
        prepare: sqlite3,
    },
    Recipe { name: "perl", about: "hashes of 500,000 words", size: 500_000, prepare: perl },
    Recipe { name: "python3", about: "dicts of 400,000 entries, sorts", size: 400_000, prepare: python3 },
    Recipe { name: "jq", about: "reduce over 20 MB of JSON", size: 20_000_000, prepare: jq },
    Recipe { name: "gzip", about: "gzip -6 of 20 MB of text", size: 20_000_000, prepare: gzip },
    Recipe { name: "xz", about: "xz -3 of 8 MB of text", size: 8_000_000, prepare: xz },
    Recipe {
        name: "c++",
        about: "std::map, std::unordered_map: 600,000 steps, g++ -O2",
        size: 600_000,
        prepare: cpp,
    },
    Recipe {
        name: "rust",
        about: "an interpreter over HashMap, BTreeMap, Vec, String, Rc: 200 rounds",
        size: 200,
        prepare: rust,
    },
];

impl Recipe {
    /// The program with its input, of the size at scale 1 times `scale`; or why there is none.
    pub fn prepare(&self, scale: f64, work: &Path, programs: &Path) -> Result<Program, String> {
        let size = (self.size as f64 * scale).ceil().max(1.0) as u64;
        (self.prepare)(&Kitchen { work, programs, size })
    }
}

/// A binary of the distribution.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let places = std::env::split_paths(PATH).map(|place| place.join(name));
    let mut found = places.filter(|path| path.is_file());
    found.next().ok_or_else(|| format!("{name} is not installed in {PATH}"))
}

impl Kitchen<'_> {
    fn file(&self, name: &str, text: &str) -> Result<String, String> {
        let path = self.work.join(name);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(path.display().to_string())
    }

    fn input(&self, name: &str, write: fn(&Path, u64) -> std::io::Result<()>) -> Result<String, String> {
        let path = self.work.join(name);
        write(&path, self.size).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(path.display().to_string())
    }

    fn program<const N: usize>(&self, name: &str, arguments: [&str; N]) -> Result<Program, String> {
        let arguments = arguments.map(str::to_owned).into();
        Ok(Program { binary: find(name)?, arguments, stdin: None })
    }
}

fn sqlite3(kitchen: &Kitchen) -> Result<Program, String> {
    let queries = include_str!("../programs/queries.sql").replace(":rows", &kitchen.size.to_string());
    let script = kitchen.file("queries.sql", &queries)?;
    let program = kitchen.program("sqlite3", ["-batch", ":memory:"])?;
    Ok(Program { stdin: Some(script.into()), ..program })
}

fn perl(kitchen: &Kitchen) -> Result<Program, String> {
    let script = kitchen.file("hashes.pl", include_str!("../programs/hashes.pl"))?;
    kitchen.program("perl", [&script, &kitchen.size.to_string()])
}

fn python3(kitchen: &Kitchen) -> Result<Program, String> {
    let script = kitchen.file("dicts.py", include_str!("../programs/dicts.py"))?;
    kitchen.program("python3", [&script, &kitchen.size.to_string()])
}

fn jq(kitchen: &Kitchen) -> Result<Program, String> {
    const FILTER: &str = "reduce inputs as $object ({}; .[$object.kind] += $object.value)";
    let input = kitchen.input("objects.json", inputs::json)?;
    kitchen.program("jq", ["-c", "-n", FILTER, &input])
}

fn gzip(kitchen: &Kitchen) -> Result<Program, String> {
    let input = kitchen.input("text-for-gzip", inputs::text)?;
    kitchen.program("gzip", ["-6", "-n", "-c", &input])
}

fn xz(kitchen: &Kitchen) -> Result<Program, String> {
    let input = kitchen.input("text-for-xz", inputs::text)?;
    kitchen.program("xz", ["-3", "-T1", "-c", &input])
}

fn cpp(kitchen: &Kitchen) -> Result<Program, String> {
    let source = kitchen.file("containers.cpp", include_str!("../programs/containers.cpp"))?;
    let binary = kitchen.work.join("containers");
    let mut command = Command::new(find("g++")?);
    let output = command.args(["-std=c++17", "-O2", "-o"]).arg(&binary).arg(&source).output();
    let output = output.map_err(|e| format!("cannot run g++: {e}"))?;
    if !output.status.success() {
        return Err(format!("g++ fails: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(Program { binary, arguments: vec![kitchen.size.to_string()], stdin: None })
}

fn rust(kitchen: &Kitchen) -> Result<Program, String> {
    let binary = kitchen.programs.join("bench-modes-interpreter");
    if !binary.is_file() {
        return Err(format!("{} is not built", binary.display()));
    }
    Ok(Program { binary, arguments: vec![kitchen.size.to_string()], stdin: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_all_different() {
        let mut names: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RECIPES.len());
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(find("no-such-program").unwrap_err().contains("no-such-program"));
        let nowhere = Path::new("/nonexistent");
        let words = RECIPES[7].prepare(1.0, nowhere, nowhere).unwrap_err();
        assert!(words.contains("bench-modes-interpreter"), "{words}");
    }
}
