//! Writes a batch of programs as assembly and links it with the harness.

use super::program::Program;
use crate::places;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where a batch is linked to: some below 2 GiB, where also 32-bit addresses work, some far above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where programs that are not position-independent lie.
    Low,
    /// Far from everything.
    High,
}

/// The assembly of a batch.
pub fn assembly(programs: &[Program]) -> String {
    let mut text = String::from(HEAD);
    for (number, program) in programs.iter().enumerate() {
        // Some cross from page to page early on.
        let page = if program.seed % 8 == 0 {
            format!(".p2align 12\n.skip {}\n", 4000 + program.seed / 8 % 96)
        } else {
            String::new()
        };
        let _ = writeln!(text, ".p2align 4\n{page}oracle_program_{number}:");
        text.push_str(&body(program, number));
    }
    text.push_str(
        ".section .data.rel.ro, \"aw\"\n.p2align 3\n.globl oracle_programs, oracle_program_count\n",
    );
    let _ = writeln!(text, "oracle_program_count: .quad {}\noracle_programs:", programs.len());
    for (number, program) in programs.iter().enumerate() {
        let objects = program.objects.len();
        let mut fields = vec![
            format!("oracle_program_{number}"),
            program.seed.to_string(),
            u8::from(program.stack_in_heap).to_string(),
        ];
        fields.push(objects.to_string());
        fields.extend((0..8).map(|at| program.objects.get(at).map_or(0, |object| object.size).to_string()));
        fields.extend((0..8).map(|at| program.objects.get(at).map_or(0, |object| object.align).to_string()));
        let _ = writeln!(text, ".quad {}", fields.join(", "));
    }
    text.push_str(
        ".section .data.oracle_faults\noracle_faults_end:\n.section .note.GNU-stack,\"\",@progbits\n",
    );
    text
}

/// The lines of one program.
pub fn body(program: &Program, number: usize) -> String {
    let lines: Vec<String> =
        program.lines.iter().map(|line| line.text.replace("L@", &format!(".L{number}"))).collect();
    lines.join("\n") + "\n"
}

const HEAD: &str = r#".intel_syntax noprefix
.section .data.oracle_faults, "aw"
.globl oracle_faults, oracle_faults_end
.p2align 3
oracle_faults:
.section .rodata
.p2align 6
oracle_indices: .long 0, -3, 4, 1, 1, -8, 7, 2, 5, -1, 3, -6, 8, 8, 0, -2
oracle_mxcsr: .long 0x1fa0
oracle_decimal: .byte 0x12, 0x34, 0x56, 0x78, 0x90, 0x11, 0x22, 0x33, 0x44, 0x80
.text
"#;

/// Builds a batch in `folder`; an error is what the assembler says.
pub fn build(programs: &[Program], place: Place, folder: &Path) -> Result<PathBuf, String> {
    let (source, program) = (folder.join("batch.s"), folder.join("batch"));
    fs::write(&source, assembly(programs)).map_err(|error| error.to_string())?;
    let mut linker = Command::new("gcc");
    linker.args(["-no-pie", "-Wa,--no-warn", "-o"]).arg(&program).arg(&source).args(harness());
    if place == Place::High {
        // Of the start-up code only that of position-independent programs can lie there.
        linker
            .args(["-nostartfiles", "-Wl,--no-relax", "-Wl,-Ttext-segment=0x510000000000"])
            .arg(start_code());
    }
    run(&mut linker).map(|()| program)
}

fn start_code() -> String {
    let output = Command::new("gcc").arg("-print-file-name=Scrt1.o").output().expect("gcc");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(text) }
}

/// The harness, compiled once a process.
fn harness() -> &'static [PathBuf] {
    static OBJECTS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let sources = places::root().join("tests/victims/oracle");
        let folder = places::victims();
        fs::create_dir_all(&folder).expect("target/victims");
        let compile = |name: &str| {
            let object = folder.join(format!("oracle-{name}.o"));
            // Renamed when it is whole: another test process may be about to use it.
            let unfinished = folder.join(format!(".oracle-{name}.{}.o", std::process::id()));
            let mut compiler = Command::new("gcc");
            compiler
                .args(["-c", "-O1", "-g", "-fPIE", "-Wall", "-Werror", "-o"])
                .arg(&unfinished)
                .arg(sources.join(name));
            run(&mut compiler).unwrap_or_else(|error| panic!("{name}: {error}"));
            fs::rename(&unfinished, &object).expect("a compiled part of the harness");
            object
        };
        ["harness.c", "enter.S"].map(compile).to_vec()
    })
}
