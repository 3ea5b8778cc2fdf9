//! Programs as distributed, unmodified: same output and exit status as without the monitor. Their inputs are small,
//! since each access to the heap costs tens of microseconds in these modes.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use thermalloc_tests::modes::{Mode, emulated, modes};
use thermalloc_tests::monitored;
use thermalloc_tests::places::{self, Scratch};
use thermalloc_tests::process::{self, Outcome};
use thermalloc_tests::report::Report;

/// Watch every object.
const ALL: &[&str] = &[];
/// For programs that make tens of millions of accesses whatever their input.
const SAMPLE: &[&str] = &["--watch", "sample=1/50"];

/// Runs `bash -c SCRIPT` like `check`; all processes of the script come under the monitor.
fn check_script(label: &str, script: &str) {
    check(label, &["-c", script], "bash", ALL);
}

/// The same for scripts of millions of accesses: under emulation a sample of the objects is watched.
fn check_large_script(label: &str, script: &str) {
    check(label, &["-c", script], "bash", if emulated() { SAMPLE } else { ALL });
}

/// Runs a program natively and in each mode, each time in a new folder with the same inputs.
fn check(label: &str, arguments: &[&str], program: &str, watch: &[&str]) {
    let program = places::which(program);
    let native = in_folder(label, |folder| {
        let mut command = process::command(&program);
        command.args(arguments).current_dir(folder);
        command
    });
    assert!(!native.stdout.is_empty(), "{label} prints nothing natively: {}", native.error_text());
    for mode in modes() {
        let reports = Scratch::new(label);
        let monitored = in_folder(label, |folder| {
            let mut command = monitored::command(mode, watch, reports.path(), &program);
            command.args(arguments).current_dir(folder);
            command
        });
        monitored.assert_same(&native, &format!("{label} in mode {mode}"));
        check_reports(mode, label, &Report::read_all(reports.path()));
    }
}

fn check_reports(mode: Mode, label: &str, reports: &[Report]) {
    if mode.monitors() {
        let accesses: u64 = reports.iter().map(|report| report.total("reads") + report.total("writes")).sum();
        println!("{label} {mode}: {} processes, {accesses} accesses", reports.len());
        assert!(accesses > 0, "{label} in {mode}: no access seen");
    }
}

fn in_folder(label: &str, command: impl Fn(&Path) -> Command) -> Outcome {
    let folder = Scratch::new(label);
    inputs(folder.path());
    process::run(command(folder.path()).env("HOME", folder.path()), monitored::limit())
}

/// The files that the programs work on.
fn inputs(folder: &Path) {
    let mut table = String::new();
    let mut json = String::from("[");
    let mut state = 12345u32;
    for row in 0..60 {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        let (value, word) =
            (state >> 20, ["heat", "page", "slab", "chunk", "shadow"][(state >> 12) as usize % 5]);
        writeln!(table, "{row} {word} {value}").expect("write to a String");
        let comma = if row == 0 { "" } else { "," };
        write!(json, "{comma}{{\"row\":{row},\"word\":\"{word}\",\"value\":{value}}}")
            .expect("write to a String");
    }
    json.push(']');
    fs::write(folder.join("table"), table).expect("input");
    fs::write(folder.join("data.json"), json).expect("input");
    fs::write(folder.join("small.c"), "int square(int x) { return x * x; }\n").expect("input");
    fs::write(folder.join("Makefile"), "all: one two\n\t@echo all\ntwo: one\n%:\n\t@echo made $@\n")
        .expect("input");
}

#[test]
fn sqlite3() {
    let statements = "create table t(a integer primary key, b text, c real);\
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 40)\
        insert into t select i, 'row ' || i, i * 1.5 from n; create index by_b on t(b);\
        select b, sum(c), count(*) from t group by a % 4 order by 1; select * from t where b like '%3%' limit 5;";
    check("sqlite3", &[":memory:", statements], "sqlite3", ALL);
}

#[test]
fn perl() {
    let program = "open F, 'table'; while (<F>) { @f = split; $sum{$f[1]} += $f[2]; push @rows, [@f] }\
        print \"$_ $sum{$_}\\n\" for sort keys %sum; print join(',', map { $$_[0] } sort { $$a[2] <=> $$b[2] } @rows), \"\\n\";\
        $SIG{ALRM} = sub { print \"alarm\\n\" }; kill ALRM => $$; print `echo child`;";
    check("perl", &["-e", program], "perl", ALL);
}

#[test]
fn python3() {
    // -S -E -I: without the site packages, whose import makes millions of accesses.
    let program = "d = {str(i): [i] * 3 for i in range(150)}\n\
        print(sum(len(v) for v in d.values()), sorted(d)[:5])\n\
        import _thread\n\
        locks = [_thread.allocate_lock() for _ in range(3)]\n\
        [lock.acquire() for lock in locks]\n\
        [_thread.start_new_thread(lambda n, lock: (d.update({n: n}), lock.release()), (n, locks[n])) for n in range(3)]\n\
        [lock.acquire() for lock in locks]\n\
        print(len(d))\n\
        try:\n 1/0\nexcept ZeroDivisionError as e:\n print(e)\n";
    check("python3", &["-S", "-E", "-I", "-c", program], "python3", ALL);
}

#[test]
fn awk() {
    let program =
        "{ sum[$2] += $3; n++ } END { for (w in sum) print w, sum[w] | \"sort\"; close(\"sort\"); print n }";
    check("mawk", &[program, "table"], "mawk", ALL);
    check("gawk", &[program, "table"], "gawk", ALL);
}

#[test]
fn sed() {
    check("sed", &["-E", "-e", "s/(a.)([a-z]*)/<\\2\\1>/g; $!{N;s/\\n/ + /}; 5q", "table"], "sed", ALL);
}

#[test]
fn sort() {
    check("sort", &["-k2,2", "-k3,3nr", "--parallel=2", "table"], "sort", ALL);
}

#[test]
fn grep() {
    check("grep", &["-nE", "(s[a-z]+|heat) .*7", "table"], "grep", ALL);
}

#[test]
fn jq() {
    check(
        "jq",
        &["-c", "group_by(.word) | map({word: .[0].word, sum: (map(.value) | add)})", "data.json"],
        "jq",
        SAMPLE,
    );
}

#[test]
fn git() {
    check_script(
        "git",
        "exec 2>&1; export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'\n\
         export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n\
         git init -q -b main . && git add table data.json && git commit -q -m first && echo more >>table\n\
         git diff --stat && git commit -qam second && git log --oneline && git fsck && git status --short",
    );
}

#[test]
fn tar() {
    check_script(
        "tar",
        "tar -cf a.tar --mtime=@0 --owner=0 --group=0 table data.json && tar -tf a.tar && tar -xOf a.tar table",
    );
}

#[test]
fn xz() {
    check_script("xz", "xz -0 -k table && xz -t table.xz && xz -dc table.xz");
}

#[test]
fn bash() {
    check_script(
        "bash",
        "declare -A seen; while read -r row word value; do ((seen[$word] += value)); done < <(head -n 20 table)\n\
         for word in \"${!seen[@]}\"; do echo \"$word ${seen[$word]}\"; done | sort\n\
         (trap 'echo trapped' USR1; kill -USR1 $BASHPID; exit 3); echo $?\n\
         echo $(echo nested $(echo deeper)) | tr a-z A-Z | cat; f() { local x=$1; ((x > 0)) && f $((x - 1)); echo $x; }; f 4\n\
         sleep 0.01 & wait $!; echo waited $?; cat <<< \"here $((6 * 7))\"; (exit 9)",
    );
}

#[test]
fn gcc() {
    check_large_script("gcc", "gcc -O1 -c small.c -o small.o && objdump -d --no-show-raw-insn small.o");
}

#[test]
fn make() {
    // Run by `make test`, it would name its folder otherwise.
    check("make", &["--no-print-directory", "-j2", "-O"], "make", ALL);
}
