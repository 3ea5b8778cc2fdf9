//! The wrapper behaves as the compiler does, in all that build systems ask of one.

use std::fs;
use std::process::Command;

use crate::workshop::{Workshop, check, succeed, victim};

const HELLO: &str =
    "#include <stdio.h>\nint main(int n, char **v) { return printf(\"%s\\n\", v[n - 1]) < 0; }\n";

/// Whether an object or program holds instrumented code.
fn is_instrumented(workshop: &Workshop, file: &str) -> bool {
    let symbols = succeed(Command::new("nm").arg(workshop.path(file)));
    symbols.contains("__thermalloc_module")
}

fn workshop() -> Workshop {
    let workshop = Workshop::new();
    fs::write(workshop.path("hello.c"), HELLO).expect("the folder takes files");
    workshop
}

#[test]
fn compiles_and_links_in_one_step_and_in_two() {
    let workshop = workshop();
    let run = |arguments: &[&str]| succeed(&mut workshop.wrapper("thermalloc-cc", arguments));
    run(&["-O2", "hello.c", "-o", "one"]);
    run(&["-c", "hello.c"]);
    run(&["hello.o", "-o", "two"]);
    run(&["-c", "-O1", "-x", "c", "hello.c", "-o", "renamed.o"]);
    run(&["-S", "-O2", "hello.c", "-o", "hello.s"]);
    run(&["hello.s", "-o", "three"]);
    run(&["-static", "hello.c", "-o", "static"]);
    for program in ["one", "two", "three", "static"] {
        assert!(is_instrumented(&workshop, program), "{program}");
        assert_eq!(succeed(Command::new(workshop.path(program)).arg("hi")), "hi\n");
    }
    assert!(is_instrumented(&workshop, "hello.o") && is_instrumented(&workshop, "renamed.o"));
}

#[test]
fn questions_are_answered_as_by_clang() {
    let workshop = workshop();
    for question in [
        &["--version"][..],
        &["-v"],
        &["-dumpmachine"],
        &["-print-search-dirs"],
        &["-E", "-dM", "-xc", "/dev/null"],
        &["-M", "hello.c"],
    ] {
        let answer = succeed(&mut workshop.wrapper("thermalloc-cc", question));
        let expected = succeed(Command::new("clang-16").current_dir(workshop.path("")).args(question));
        assert_eq!(answer, expected, "{question:?}");
    }
}

#[test]
fn failures_are_the_compilers() {
    let workshop = workshop();
    let none = workshop.wrapper("thermalloc-cc", [""; 0]).output().expect("the wrapper starts");
    assert_eq!(none.status.code(), Some(1));
    fs::write(workshop.path("bad.c"), "int main( {").expect("the folder takes files");
    let bad = workshop.wrapper("thermalloc-cc", ["bad.c"]).output().expect("the wrapper starts");
    assert_eq!(bad.status.code(), Some(1));
}

#[test]
fn configure_scripts_see_no_warning() {
    let workshop = workshop();
    for arguments in [&["-c", "hello.c"][..], &["hello.o"], &["-E", "hello.c"], &["-fsyntax-only", "hello.c"]]
    {
        let mut command = workshop.wrapper("thermalloc-cc", ["-Wall", "-Werror"]);
        let output = command.args(arguments).output().expect("the wrapper starts");
        check(&command, &output);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn cxx_is_known_by_name() {
    let workshop = workshop();
    let source = victim("containers.cc");
    let mut command = workshop.wrapper("thermalloc-c++", ["-O1", "-o", "containers"]);
    succeed(command.arg(source));
    assert!(is_instrumented(&workshop, "containers"));
    assert!(succeed(&mut Command::new(workshop.path("containers"))).starts_with("278"));
}

#[test]
fn only_the_chosen_files_are_instrumented() {
    let workshop = workshop();
    fs::write(workshop.path("items.c"), "void set(int *p) { *p = 1; }\n").expect("the folder takes files");
    succeed(
        &mut workshop.wrapper("thermalloc-cc", ["--thermalloc-only=items.c,x.c", "-c", "items.c", "hello.c"]),
    );
    assert!(is_instrumented(&workshop, "items.o") && !is_instrumented(&workshop, "hello.o"));
    let mut command = workshop.wrapper("thermalloc-cc", ["-c", "items.c", "hello.c"]);
    succeed(command.env("THERMALLOC_CC_ONLY", "hello.c"));
    assert!(!is_instrumented(&workshop, "items.o") && is_instrumented(&workshop, "hello.o"));
}

#[test]
fn shapes_are_chosen_by_option_or_environment() {
    let workshop = workshop();
    let wrpkru =
        |file| succeed(Command::new("objdump").arg("-d").arg(workshop.path(file))).contains("wrpkru");
    succeed(&mut workshop.wrapper("thermalloc-cc", ["-c", "hello.c"]));
    assert!(!wrpkru("hello.o"));
    succeed(workshop.wrapper("thermalloc-cc", ["-c", "hello.c"]).env("THERMALLOC_CC_SHAPE", "wrpkru"));
    assert!(wrpkru("hello.o"));
    let mut command = workshop.wrapper("thermalloc-cc", ["-c", "hello.c", "--thermalloc-shape=alias"]);
    succeed(command.env("THERMALLOC_CC_SHAPE", "wrpkru"));
    assert!(!wrpkru("hello.o"));
    let bad =
        workshop.wrapper("thermalloc-cc", ["--thermalloc-shape=round", "hello.c"]).output().expect("starts");
    assert_eq!(bad.status.code(), Some(2));
    let message = "thermalloc-cc: shape 'round' is not known: use alias, wrpkru or pair-only\n";
    assert_eq!(String::from_utf8_lossy(&bad.stderr), message);
}

#[test]
fn the_header_needs_no_library() {
    let workshop = workshop();
    let source = victim("header.c");
    let header = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    for flags in ["-O0", "-O2 -no-pie -fno-pie", "-O2 -fPIC", "-O2 -static"] {
        for compiler in ["gcc", "clang-16"] {
            let mut command = Command::new(compiler);
            command.args(flags.split_whitespace()).args(["-Wall", "-Wextra", "-Werror", header]).arg(&source);
            succeed(command.arg("-o").arg(workshop.path("header")));
            assert_eq!(
                succeed(&mut Command::new(workshop.path("header"))),
                "pool 0 object 0 free 0 start 0\n"
            );
            if flags.contains("static") {
                continue;
            }
            succeed(
                Command::new("gcc")
                    .args(["-shared", "-fPIC", "-DLIBRARY", header])
                    .arg(&source)
                    .arg("-o")
                    .arg(workshop.path("libheader.so")),
            );
            let mut command = Command::new(workshop.path("header"));
            let told = succeed(command.env("LD_PRELOAD", workshop.path("libheader.so")));
            assert_eq!(told, "pool 48 object 8 free 1 start 1\n", "{compiler} {flags}");
        }
    }
}
