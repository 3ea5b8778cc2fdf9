//! Victims with known counts, in each shape and at each level of optimisation.

use std::process::Command;

use crate::workshop::{self, SHAPES, Workshop, succeed, victim};

const LEVELS: [&str; 5] = ["-O0", "-O1", "-O2", "-O3", "-Os"];

/// Builds and runs one victim in all shapes with each set of flags.
fn in_all_shapes(name: &str, flags: &[&str]) {
    let workshop = Workshop::new();
    for shape in SHAPES {
        for flags in flags {
            let program = workshop.build(shape, &format!("{flags} -Wno-unused"), &victim(name), "victim");
            succeed(Command::new(program).env("VICTIM", format!("{shape} {flags}")));
        }
    }
}

#[test]
fn counts_are_exact() {
    in_all_shapes("exact.c", &LEVELS);
}

#[test]
fn counts_are_exact_with_wide_vectors() {
    if !workshop::has_avx2() {
        println!("SKIP: no AVX2");
        return;
    }
    in_all_shapes("exact.c", &["-O0 -mavx2 -mcx16", "-O2 -mavx2 -mcx16"]);
}

#[test]
fn counts_are_exact_however_code_is_placed() {
    in_all_shapes("exact.c", &["-O2 -no-pie -fno-pie", "-O2 -fPIC", "-O2 -flto -fuse-ld=gold"]);
}

#[test]
fn control_flow_is_kept() {
    in_all_shapes("control.c", &LEVELS);
}

#[test]
fn threads_lose_no_count() {
    let workshop = Workshop::new();
    for flags in LEVELS {
        succeed(&mut Command::new(workshop.build("alias", flags, &victim("threads.c"), "victim")));
    }
}

#[test]
fn executables_and_libraries_attach_each() {
    let workshop = Workshop::new();
    workshop.mock();
    for shape in SHAPES {
        let mut library =
            workshop.wrapper("thermalloc-cc", ["-O2", "-shared", "-fPIC", "-o", "liblibrary.so"]);
        succeed(library.arg(format!("--thermalloc-shape={shape}")).arg(victim("library.c")));
        let flags = format!("-O2 -L{} -llibrary", workshop.path("").display());
        succeed(&mut Command::new(workshop.build(shape, &flags, &victim("modules.c"), "victim")));
    }
}

#[test]
fn an_access_that_was_not_redirected_dies() {
    let workshop = Workshop::new();
    let program = workshop.build_plain("-O2 -Wno-unused", &victim("exact.c"), "victim");
    let status = Command::new(program).status().expect("the victim starts");
    assert!(!status.success(), "the mock runtime must not let plain code through");
}

#[test]
fn exceptions_and_containers_work() {
    let workshop = Workshop::new();
    for flags in ["-O0", "-O2"] {
        let plain = workshop.build_plain(flags, &victim("containers.cc"), "plain");
        let expected = succeed(&mut Command::new(plain));
        for shape in SHAPES {
            let program = workshop.build(shape, flags, &victim("containers.cc"), "victim");
            assert_eq!(succeed(Command::new(&program).env("MOCK_IDLE", "1")), expected);
            let output =
                workshop.on_heap(&program).env("MOCK_TELL", "1").output().expect("the victim starts");
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{shape} {flags}");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            let counted = !told.contains(" 0 reads");
            assert_eq!(counted, shape != "pair-only", "{told}");
        }
    }
}

#[test]
fn the_code_is_sound_to_llvm() {
    let workshop = Workshop::new();
    let headers = victim("").display().to_string();
    for (compiler, source) in
        [("thermalloc-cc", "exact.c"), ("thermalloc-cc", "control.c"), ("thermalloc-c++", "containers.cc")]
    {
        for shape in SHAPES {
            for level in ["-O0", "-O2"] {
                let flags = [level, "-g", "-w", "-S", "-emit-llvm", "-o", "code.ll", "-I", &headers];
                let mut command = workshop.wrapper(compiler, flags);
                succeed(command.arg(format!("--thermalloc-shape={shape}")).arg(victim(source)));
                let mut verify = Command::new("opt-16");
                succeed(verify.args(["-passes=verify", "-disable-output"]).arg(workshop.path("code.ll")));
            }
        }
    }
}
