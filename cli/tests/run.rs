//! `thermalloc run` as a whole, with a stand-in for the runtime that writes a report when a process exits.
//!
//! # Safety
//! Signals go to processes that the test has started and not yet waited for.
#![allow(unsafe_code)]

mod common;

use common::{Sandbox, lines, run};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Output, Stdio};

fn status(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("killed: {output:?}"))
}

/// Checks status, and that stderr is one line with these words.
fn refused(output: &Output, expected: i32, words: &[&str]) {
    assert_eq!(status(output), expected, "{output:?}");
    let lines = lines(&output.stderr);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("thermalloc: "), "{lines:?}");
    for word in words {
        assert!(lines[0].contains(word), "{word}: {lines:?}");
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn exit_status_and_streams_are_handed_through() {
    let sandbox = Sandbox::new();
    let script = "cat; echo error >&2; exit 7";
    let mut child = sandbox
        .run(["--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"in\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), 7);
    assert_eq!(stdout(&output), "in");
    assert_eq!(lines(&output.stderr)[0], "error");
}

#[test]
fn death_by_signal_is_128_and_its_number() {
    let sandbox = Sandbox::new();
    for (name, number) in [("TERM", 15), ("ABRT", 6), ("USR1", 10), ("KILL", 9)] {
        let output = run(sandbox.run(["--", "sh", "-c", &format!("kill -{name} $$")]));
        assert_eq!(status(&output), 128 + number, "{name}");
    }
}

#[test]
fn sigkill_without_interval_is_named_as_the_reason_of_a_missing_report() {
    let sandbox = Sandbox::new();
    let kill = ["--", "sh", "-c", "kill -KILL $$"];
    let output = run(sandbox.run(kill));
    assert!(lines(&output.stderr)[0].contains("--interval"), "{output:?}");
    let output = run(sandbox.run(["--interval", "50"].iter().chain(&kill)));
    assert!(!lines(&output.stderr)[0].contains("--interval"), "{output:?}");
}

#[test]
fn programs_that_do_not_exist_or_cannot_be_executed() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("plain"), "text").unwrap();
    fs::write(sandbox.path("garbage"), b"\x00\x01\x02\x03 no program").unwrap();
    fs::write(sandbox.path("lost"), "#!/nonexistent/interpreter\n").unwrap();
    for name in ["garbage", "lost"] {
        fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let attempt = |program: &str| run(sandbox.run(["--", program]));
    refused(&attempt("thermalloc-no-such-program"), 127, &["not found"]);
    refused(&attempt("./nothing"), 127, &["no such file"]);
    refused(&attempt(""), 127, &["empty"]);
    refused(&attempt("./plain"), 126, &["not executable"]);
    refused(&attempt("/"), 126, &["directory"]);
    refused(&attempt("./garbage"), 126, &["neither"]);
    refused(&attempt("./lost"), 127, &["interpreter"]);
}

#[test]
fn bad_options_are_refused_with_one_line() {
    let sandbox = Sandbox::new();
    for (arguments, word) in [
        (&["--mode", "fast", "--", "true"][..], "auto"),
        (&["--access", "r", "--", "true"], "rw"),
        (&["--watch", "size>5", "--", "true"], "size>=N"),
        (&["--watch", "size>=5T", "--", "true"], "with K, M, G"),
        (&["--regions", "heap,mmap", "--", "true"], "heap"),
        (&["--client", "sharing", "--", "true"], "heat"),
        (&["--budget", "5", "--", "true"], "--budget"),
        (&["--place", "hints", "--", "true"], "--place"),
        (&["--interval=-1", "--", "true"], "--interval"),
        (&["--depth", "1000", "--", "true"], "--depth"),
        (&["--granule", "24", "--", "true"], "power of two"),
        (&["--view", "both", "--", "true"], "alias"),
        (&["-o", "out/", "--", "true"], "out/"),
        (&["--bogus", "--", "true"], "--bogus"),
        (&["--"], "PROGRAM"),
        (&[], "PROGRAM"),
    ] {
        refused(&run(sandbox.run(arguments)), 2, &[word]);
    }
    let mut unknown = Command::new(common::PROGRAM);
    refused(&run(unknown.arg("repot")), 2, &["repot"]);
}

#[test]
fn help_is_no_error() {
    let output = run(Command::new(common::PROGRAM).args(["run", "--help"]));
    assert_eq!(status(&output), 0);
    assert!(stdout(&output).contains("--watch") && output.stderr.is_empty());
}

#[test]
fn a_missing_library_is_one_line() {
    let sandbox = Sandbox::new();
    let output = run(sandbox.run(["--", "true"]).env("THERMALLOC_LIB", "/nonexistent.so"));
    refused(&output, 2, &["/nonexistent.so", "THERMALLOC_LIB"]);
}

#[test]
fn the_environment_carries_the_options() {
    let sandbox = Sandbox::new();
    let options = "--mode pp --access w --watch size>=4K,sample=1/2 --interval 9 --depth 3 --granule 64 --view private -vv";
    let arguments = options.split(' ').chain(["-o", "x.json", "--", "env"]);
    let output = run(sandbox.run(arguments).env("LD_PRELOAD", common::fake_runtime()));
    let environment = stdout(&output);
    let directory = sandbox.root().canonicalize().unwrap();
    let library = common::fake_runtime().canonicalize().unwrap();
    for expected in [
        "THERMALLOC_MODE=pp",
        "THERMALLOC_ACCESS=w",
        "THERMALLOC_WATCH=size>=4K,sample=1/2",
        "THERMALLOC_INTERVAL_MS=9",
        "THERMALLOC_DEPTH=3",
        "THERMALLOC_GRANULE=64",
        "THERMALLOC_VIEW=private",
        "THERMALLOC_VERBOSE=2",
        &format!("THERMALLOC_OUT={}/x.json", directory.display()),
        &format!("LD_PRELOAD={}:{}", library.display(), common::fake_runtime().display()),
    ] {
        assert!(environment.lines().any(|line| line == expected), "{expected}: {environment}");
    }
}

#[test]
fn the_first_process_knows_that_it_is() {
    let sandbox = Sandbox::new();
    let output = run(sandbox.run(["--", "sh", "-c", "echo $$ $_THERMALLOC_FIRST"]));
    let stdout = stdout(&output);
    let (pid, first) = stdout.split_once(' ').unwrap();
    assert_eq!(pid, first);
}

#[test]
fn reports_are_found_whatever_the_program_does_with_its_directory() {
    let sandbox = Sandbox::new();
    let output = run(sandbox.run(["--", "sh", "-c", "echo $$; cd /; exit 3"]));
    assert_eq!(status(&output), 3);
    let line = format!("thermalloc: report written to heat.{}.json", stdout(&output));
    assert_eq!(lines(&output.stderr), [line]);
    assert!(sandbox.path(&format!("heat.{}.json", stdout(&output))).is_file());
}

#[test]
fn children_write_beside_and_are_counted() {
    let sandbox = Sandbox::new();
    let script = "sh -c 'exit 0'; sh -c 'exit 0'; exit 0";
    for (output, plain) in [("out.json", Some("out.json")), ("%p.json", None)] {
        fs::write(sandbox.path("1.json"), "of an earlier run").unwrap();
        let result = run(sandbox.run(["-o", output, "--", "sh", "-c", script]));
        let line = lines(&result.stderr).remove(0);
        assert!(line.ends_with(".json (+ 2 of child processes)"), "{line}");
        if let Some(plain) = plain {
            assert!(line.contains(&format!("written to {plain} ")), "{line}");
        }
    }
}

#[test]
fn a_bad_report_path_leaves_the_exit_status_alone() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("directory")).unwrap();
    for path in ["missing/heat.json", "directory"] {
        let output = run(sandbox.run(["-o", path, "--", "sh", "-c", "exit 5"]));
        assert_eq!(status(&output), 5);
        let lines = lines(&output.stderr);
        assert!(lines.len() == 1 && lines[0].contains("no report was written"), "{lines:?}");
        assert!(lines[0].contains(path.split('/').next().unwrap()), "{lines:?}");
    }
}

#[test]
fn a_device_as_report_is_not_taken_for_a_program_without_allocations() {
    let sandbox = Sandbox::new();
    for device in ["/dev/null", "/dev/full"] {
        let output = run(sandbox.run(["-o", device, "--", "true"]));
        assert_eq!(status(&output), 0);
        let line = lines(&output.stderr).remove(0);
        assert!(line.contains(device) && line.contains("no regular file"), "{line}");
    }
}

/// Compiles a program that prints what it finds in LD_PRELOAD and exits with status 4.
fn preload_printer(sandbox: &Sandbox, name: &str, options: &[&str]) {
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        int main(void) { const char *p = getenv("LD_PRELOAD"); printf("preload %s\n", p ? p : "none"); return 4; }
    "#;
    sandbox.compile(source, name, options);
}

/// Runs it and expects that it runs, unmonitored, and that one line says why.
fn runs_unmonitored(sandbox: &Sandbox, name: &str, reason: &str) {
    let output = run(sandbox.run(["--".as_ref(), sandbox.path(name).as_os_str()]));
    refused(&output, 4, &["cannot be monitored", reason]);
    assert_eq!(stdout(&output), "preload none");
}

#[test]
fn static_programs_and_scripts_of_static_interpreters() {
    let sandbox = Sandbox::new();
    preload_printer(&sandbox, "static", &["-static"]);
    runs_unmonitored(&sandbox, "static", "statically linked");
    preload_printer(&sandbox, "static-pie", &["-static-pie"]);
    runs_unmonitored(&sandbox, "static-pie", "statically linked");
    sandbox.script("script", &format!("#!{}\n", sandbox.path("static").display()));
    runs_unmonitored(&sandbox, "script", "statically linked");
}

#[test]
fn programs_of_another_libc() {
    let sandbox = Sandbox::new();
    let loader = sandbox.path("ld-musl-x86_64.so.1");
    symlink("/lib64/ld-linux-x86-64.so.2", &loader).unwrap();
    preload_printer(&sandbox, "musl", &[&format!("-Wl,--dynamic-linker={}", loader.display())]);
    runs_unmonitored(&sandbox, "musl", "musl");
}

#[test]
fn programs_of_another_architecture() {
    let sandbox = Sandbox::new();
    preload_printer(&sandbox, "native", &[]);
    // Class and machine in the ELF header; the machine cannot run what comes out.
    for (offset, byte, reason) in [(4, 1, "32-bit"), (18, 183, "architecture")] {
        let mut image = fs::read(sandbox.path("native")).unwrap();
        image[offset] = byte;
        fs::write(sandbox.path("foreign"), image).unwrap();
        fs::set_permissions(sandbox.path("foreign"), fs::Permissions::from_mode(0o755)).unwrap();
        let output = run(sandbox.run(["--", "./foreign"]));
        let lines = lines(&output.stderr);
        assert!(lines[0].contains("cannot be monitored") && lines[0].contains(reason), "{lines:?}");
    }
}

#[test]
fn setuid_programs() {
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } != 0 {
        println!("SKIP: only root can make a program of another user");
        return;
    }
    let sandbox = Sandbox::new();
    fs::set_permissions(sandbox.root(), fs::Permissions::from_mode(0o755)).unwrap();
    preload_printer(&sandbox, "setuid", &[]);
    // Set-user-ID to oneself raises nothing, so LD_PRELOAD works.
    fs::set_permissions(sandbox.path("setuid"), fs::Permissions::from_mode(0o4755)).unwrap();
    assert!(stdout(&run(sandbox.run(["--", "./setuid"]))).contains("libfake"));
    std::os::unix::fs::chown(sandbox.path("setuid"), Some(65534), None).unwrap();
    fs::set_permissions(sandbox.path("setuid"), fs::Permissions::from_mode(0o4755)).unwrap();
    runs_unmonitored(&sandbox, "setuid", "setuid");
}

#[test]
fn scripts_with_and_without_interpreter_are_monitored() {
    let sandbox = Sandbox::new();
    sandbox.script("with", "#!/bin/sh\nexit $#\n");
    sandbox.script("without", "exit $#\n");
    for name in ["./with", "./without"] {
        let output = run(sandbox.run(["--", name, "-x", "two words"]));
        assert_eq!(status(&output), 2, "{output:?}");
        assert!(lines(&output.stderr)[0].contains("report written"), "{output:?}");
    }
}

#[test]
fn dispositions_and_masks_are_the_callers() {
    let sandbox = Sandbox::new();
    let show = "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status";
    for before in ["", "trap '' HUP INT PIPE CHLD;"] {
        let direct = run(Command::new("sh").args(["-c", &format!("{before} exec {show}")]));
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{before} exec \"$0\" run -- {show}")]).arg(common::PROGRAM);
        shell.current_dir(sandbox.root()).env("THERMALLOC_LIB", common::fake_runtime());
        assert_eq!(stdout(&run(&mut shell)), stdout(&direct), "{before}");
    }
}

/// A program that says `ready`, then the name of each signal it gets; SIGTERM ends it with status 9.
const LISTENER: &str = "for s in INT QUIT HUP USR1 USR2 CONT ALRM; do trap \"echo $s\" $s; done
    trap 'echo TERM; exit 9' TERM
    echo ready
    while :; do sleep 0.02; done";

fn listener(sandbox: &Sandbox) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = sandbox.run(["--", "sh", "-c", LISTENER]);
    let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(output.next().as_deref(), Some("ready"));
    (child, output)
}

fn send(child: &Child, signal: i32) {
    // SAFETY: the child has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

#[test]
fn signals_sent_to_run_reach_the_program() {
    let sandbox = Sandbox::new();
    let (mut child, mut output) = listener(&sandbox);
    for (signal, name) in [
        (libc::SIGINT, "INT"),
        (libc::SIGQUIT, "QUIT"),
        (libc::SIGHUP, "HUP"),
        (libc::SIGUSR1, "USR1"),
        (libc::SIGUSR2, "USR2"),
        (libc::SIGALRM, "ALRM"),
        (libc::SIGCONT, "CONT"),
        (libc::SIGTERM, "TERM"),
    ] {
        send(&child, signal);
        assert_eq!(output.next().as_deref(), Some(name));
    }
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn stop_and_continue_take_both() {
    let sandbox = Sandbox::new();
    let (mut child, mut output) = listener(&sandbox);
    send(&child, libc::SIGTSTP);
    let mut status = 0;
    // SAFETY: a live local.
    let stopped = unsafe { libc::waitpid(child.id() as i32, &mut status, libc::WUNTRACED) };
    assert_eq!(stopped, child.id() as i32);
    assert!(std::process::ExitStatus::from_raw(status).stopped_signal().is_some());
    send(&child, libc::SIGCONT);
    assert_eq!(output.next().as_deref(), Some("CONT"));
    send(&child, libc::SIGTERM);
    assert_eq!(output.next().as_deref(), Some("TERM"));
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

/// The interrupt character at a terminal reaches the program once, and run lives to tell where the report is.
#[test]
fn ctrl_c_at_a_terminal() {
    let sandbox = Sandbox::new();
    let (mut keyboard, terminal) = common::terminal();
    let script = "trap 'echo got it; sleep 0.3; exit 6' INT; echo ready; while :; do sleep 0.02; done";
    let mut command = sandbox.run(["--", "sh", "-c", script]);
    command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: only system calls, between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(output.next().as_deref(), Some("ready"));
    keyboard.write_all(b"\x03").unwrap();
    let rest: Vec<String> = output.collect();
    let result = child.wait_with_output().unwrap();
    assert_eq!(rest, ["got it"]);
    assert_eq!(status(&result), 6);
    assert!(lines(&result.stderr)[0].contains("report written"), "{result:?}");
}

#[test]
fn mode_mpk_is_refused_where_there_are_no_keys() {
    let sandbox = Sandbox::new();
    let doctor = run(Command::new(common::PROGRAM).args(["doctor", "--json"]));
    let doctor: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let output = run(sandbox.run(["--mode", "mpk", "--", "true"]));
    let findings = doctor["findings"].as_array().unwrap();
    if findings.iter().any(|finding| finding["name"] == "mode mpk" && finding["ok"] == true) {
        assert_eq!(status(&output), 0);
    } else {
        refused(&output, 2, &["mpk", "--mode pp"]);
    }
}

#[test]
fn off_needs_no_report() {
    let sandbox = Sandbox::new();
    let kill = run(sandbox.run(["--mode", "off", "--", "sh", "-c", "kill -KILL $$"]));
    assert_eq!((status(&kill), kill.stderr.len()), (137, 0));
}

#[test]
fn options_may_come_without_the_two_dashes() {
    let sandbox = Sandbox::new();
    let output = run(sandbox.run([OsStr::new("sh"), "-c".as_ref(), "exit 3".as_ref()]));
    assert_eq!(status(&output), 3);
}
