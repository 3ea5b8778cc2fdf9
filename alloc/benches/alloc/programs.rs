//! Real programs under LD_PRELOAD; those rows appear where the program and the libraries exist.
//!
//! # Safety
//! `wait4` writes two locals.

use crate::ALLOCATORS;
use crate::measure::{self, Run};
use crate::report::{self, Row};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PYTHON: &str = r"
import json
rows = [{'id': n, 'name': 'item %d' % n, 'tags': [str(n * k) for k in range(8)]} for n in range(SIZE)]
text = json.dumps(rows)
index = {row['name']: row for row in json.loads(text)}
print(sum(len(row['tags']) for row in index.values()))
";

/// A program and where the preloaded libraries lie.
pub struct Program {
    name: &'static str,
    argv: Vec<String>,
    libraries: [Option<PathBuf>; 3],
}

/// Programs that can be measured here.
pub fn available(smoke: bool) -> Vec<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let ours = root.join("target/release/libthermalloc.so");
    let theirs = find_mimalloc();
    let (Some(theirs), true) = (theirs, ours.exists()) else {
        println!("real programs: skipped, for want of libmimalloc.so or target/release/libthermalloc.so");
        return Vec::new();
    };
    let libraries = [None, Some(theirs), Some(ours)];
    let size = if smoke { "2000" } else { "60000" };
    let mut programs = Vec::new();
    if Path::new("/usr/bin/python3").exists() {
        let argv = ["/usr/bin/python3", "-S", "-s", "-c", &PYTHON.replace("SIZE", size)].map(String::from);
        programs.push(Program { name: "python3", argv: argv.into(), libraries: libraries.clone() });
    }
    if let Some(argv) = cc1(if smoke { 50 } else { 3000 }) {
        programs.push(Program { name: "cc1", argv, libraries });
    }
    programs
}

fn find_mimalloc() -> Option<PathBuf> {
    let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib", "/usr/local/lib"];
    let names = ["libmimalloc.so", "libmimalloc.so.2", "libmimalloc.so.2.0"];
    let mut paths =
        directories.iter().flat_map(|directory| names.iter().map(|name| Path::new(directory).join(name)));
    paths.find(|path| path.exists())
}

/// gcc's compiler proper on a file of many functions.
fn cc1(functions: usize) -> Option<Vec<String>> {
    let output = Command::new("gcc").arg("-print-prog-name=cc1").output().ok()?;
    let cc1 = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    if !Path::new(&cc1).exists() {
        return None;
    }
    let body =
        "int s = 0; for (int i = 0; i < n; i++) { if (i % 3) s += a[i] * i; else s ^= a[i]; } return s;";
    let source: String = (0..functions).map(|n| format!("int f{n}(int *a, int n) {{ {body} }}\n")).collect();
    let path = std::env::temp_dir().join(format!("thermalloc-bench-{}.c", std::process::id()));
    std::fs::write(&path, source).ok()?;
    let path = path.to_str()?;
    Some([&cc1, "-quiet", "-O2", path, "-o", "/dev/null"].map(String::from).into())
}

impl Program {
    /// Interleaved runs, one row for each allocator.
    pub fn measure(&self, runs: usize) -> Vec<Row> {
        let mut rows = ALLOCATORS.map(|allocator| Row::new(allocator, self.name, "program"));
        for _ in 0..runs {
            for (row, library) in rows.iter_mut().zip(&self.libraries) {
                row.add(self.run(library.as_deref()));
            }
        }
        report::print(&rows);
        rows.into()
    }

    #[expect(clippy::zombie_processes, reason = "wait4 reaps it")]
    fn run(&self, library: Option<&Path>) -> Run {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).env("PYTHONMALLOC", "malloc").env("PYTHONHASHSEED", "0");
        command.env("THERMALLOC_MODE", "off").stdout(Stdio::null());
        if let Some(library) = library {
            command.env("LD_PRELOAD", library);
        }
        let child = command.spawn().expect("the program starts");
        wait(child.id() as i32)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.name == "cc1" {
            let _ = std::fs::remove_file(&self.argv[3]);
        }
    }
}

/// Waits for a child and reports what it used.
fn wait(pid: i32) -> Run {
    let mut status = 0;
    // SAFETY: all zeroes is a valid rusage; the kernel writes two locals.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::wait4(pid, &raw mut status, 0, &raw mut usage);
        usage
    };
    assert_eq!(status, 0, "the program succeeds");
    measure::of(&usage)
}
