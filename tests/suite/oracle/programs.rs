//! Deterministic programs as distributed: all modes count the same accesses of each object, granule by granule.

use super::monitoring;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use thermalloc_tests::modes::Mode;
use thermalloc_tests::oracle::{environment, programs};
use thermalloc_tests::places::{self, Scratch};
use thermalloc_tests::report::Report;

/// Watch every object.
const ALL: &[(&str, &str)] = &[];
/// For those that make millions of accesses whatever their input.
const SAMPLE: &[(&str, &str)] = &[("THERMALLOC_WATCH", "sample=1/60")];

/// Runs a program in all modes and compares what they report.
fn check(program: &str, arguments: &[&str], settings: &[(&str, &str)]) {
    let modes = monitoring();
    let Some((&first, others)) = modes.split_first() else { return };
    if !environment::fixed_addresses() {
        println!("SKIP: address space randomisation cannot be turned off here");
        return;
    }
    // The same folder for all runs, since its name may be copied.
    let folder = Scratch::new("oracle-program");
    let run = |mode| run(program, arguments, settings, mode, folder.path());
    for &mode in others {
        let mut attempts = 0;
        loop {
            let (expected, found) = (run(first), run(mode));
            let Some(difference) = programs::difference(&expected, &found) else { break };
            // A process number of another length, say, makes a difference of its own.
            attempts += 1;
            let alone = programs::difference(&expected, &run(first));
            assert!(alone.is_some(), "{program} in {mode}, not as in {first}:\n{difference}");
            assert!(attempts < 3, "{program} differs from itself in {first}:\n{}", alone.unwrap_or_default());
        }
    }
}

fn run(program: &str, arguments: &[&str], settings: &[(&str, &str)], mode: Mode, folder: &Path) -> Report {
    inputs(folder);
    let native = programs::native(&places::which(program), arguments, folder);
    let (outcome, report) = programs::run(mode, &places::which(program), arguments, settings, folder);
    outcome.assert_same(&native, &format!("{program} in {mode}"));
    println!("{program} {mode}: {} accesses", report.total("reads") + report.total("writes"));
    assert!(report.total("reads") > 1000, "{program} in {mode}: hardly an access seen");
    report
}

fn inputs(folder: &Path) {
    let (mut table, mut json) = (String::new(), String::new());
    for row in 0..40u32 {
        let value = row.wrapping_mul(2_654_435_761) >> 20;
        let word = ["heat", "page", "slab", "chunk", "shadow"][value as usize % 5];
        writeln!(table, "{row} {word} {value}").expect("write to a String");
        writeln!(json, "{{\"row\":{row},\"word\":\"{word}\",\"value\":{value}}}").expect("write to a String");
    }
    fs::write(folder.join("table"), table).expect("input");
    fs::write(folder.join("data.json"), json).expect("input");
}

#[test]
fn sqlite3() {
    let statements = "create table t(a integer primary key, b text, c real);\
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 30)\
        insert into t select i, 'row ' || i, i * 1.5 from n; create index by_b on t(b);\
        select b, sum(c), count(*) from t group by a % 4 order by 1; select * from t where b like '%3%' limit 5;";
    check("sqlite3", &[":memory:", statements], ALL);
}

#[test]
fn perl() {
    let program = "open F, 'table'; while (<F>) { @f = split; $sum{$f[1]} += $f[2]; push @rows, [@f] }\
        print \"$_ $sum{$_}\\n\" for sort keys %sum; print scalar @rows";
    check("perl", &["-e", program], ALL);
}

#[test]
fn python3() {
    let program = "d = {str(i): [i] * 3 for i in range(200)}\n\
        print(sum(len(v) for v in d.values()), sorted(d)[:5], len(b'x' * 70000), 7 ** 500 % 1001)\n";
    check("python3", &["-S", "-s", "-c", program], &[("THERMALLOC_WATCH", "sample=1/8")]);
}

#[test]
fn jq() {
    check(
        "jq",
        &["-c", "-s", "group_by(.word) | map({word: .[0].word, sum: (map(.value) | add)})", "data.json"],
        SAMPLE,
    );
}

#[test]
fn awk() {
    let program = "{ sum[$2] += $3; n++ } END { for (w in sum) print w, sum[w]; print n, substr(\"abc\", 2), sprintf(\"%5.2f\", 3) }";
    check("mawk", &[program, "table"], ALL);
    check("gawk", &[program, "table"], ALL);
}

#[test]
fn sed() {
    check("sed", &["-E", "-e", "s/(a.)([a-z]*)/<\\2\\1>/g; $!{N;s/\\n/ + /}; 5q", "table"], ALL);
}

#[test]
fn bash() {
    let script = "declare -A seen; while read -r row word value; do ((seen[$word] += value)); done < table\n\
        for word in \"${!seen[@]}\"; do echo \"$word ${seen[$word]}\"; done\n\
        f() { local x=$1; ((x > 0)) && f $((x - 1)); echo $x; }; f 4; printf '%q ' a 'b c' $'\\n'";
    check("bash", &["--norc", "-c", script], ALL);
}

#[test]
fn grep() {
    check("grep", &["-nE", "(s[a-z]+|heat) .*7", "table"], ALL);
}

#[test]
fn xz() {
    check("xz", &["-0", "-kc", "-T1", "table"], ALL);
}
