//! Deterministic programs as distributed: all modes count the same accesses of each object, granule by granule.

use super::monitoring;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use thermalloc_tests::oracle::programs;
use thermalloc_tests::places::{self, Scratch};

/// Watch every object.
const ALL: &[(&str, &str)] = &[];
/// For those that make millions of accesses whatever their input.
const SAMPLE: &[(&str, &str)] = &[("THERMALLOC_WATCH", "sample=1/20")];

/// Runs a program in all modes and compares what they report. The folder is the same, since its name may be copied.
fn check(program: &str, arguments: &[&str], settings: &[(&str, &str)]) {
    let folder = Scratch::new("oracle-program");
    let path = places::which(program);
    let mut reference = None;
    for mode in monitoring() {
        inputs(folder.path());
        let (outcome, report) = programs::run(mode, &path, arguments, settings, folder.path());
        assert_eq!(outcome.status, 0, "{program} in {mode}: {}\n{}", outcome.text(), outcome.error_text());
        println!("{program} {mode}: {} accesses", report.total("reads") + report.total("writes"));
        let Some((expected_mode, expected_output, expected)) = &reference else {
            assert!(report.total("reads") > 100, "{program} in {mode}: hardly an access seen");
            reference = Some((mode, outcome.stdout, report));
            continue;
        };
        assert_eq!(&outcome.stdout, expected_output, "{program} in {mode}: other output than in {expected_mode}");
        let difference = programs::difference(expected, &report);
        assert!(difference.is_none(), "{program} in {mode}, not as in {expected_mode}:\n{}", difference.unwrap_or_default());
    }
}

fn inputs(folder: &Path) {
    let (mut table, mut json) = (String::new(), String::new());
    for row in 0..80u32 {
        let value = row.wrapping_mul(2_654_435_761) >> 20;
        let word = ["heat", "page", "slab", "chunk", "shadow"][value as usize % 5];
        writeln!(table, "{row} {word} {value}").expect("write to a String");
        writeln!(json, "{{\"row\":{row},\"word\":\"{word}\",\"value\":{value}}}").expect("write to a String");
    }
    for name in ["table.gz", "table.xz"] {
        let _ = fs::remove_file(folder.join(name));
    }
    fs::write(folder.join("table"), table).expect("input");
    fs::write(folder.join("data.json"), json).expect("input");
}

#[test]
fn sqlite3() {
    let statements = "create table t(a integer primary key, b text, c real);\
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 60)\
        insert into t select i, 'row ' || i, i * 1.5 from n; create index by_b on t(b);\
        select b, sum(c), count(*) from t group by a % 4 order by 1; select * from t where b like '%3%' limit 5;";
    check("sqlite3", &[":memory:", statements], ALL);
}

#[test]
fn perl() {
    let program = "open F, 'table'; while (<F>) { @f = split; $sum{$f[1]} += $f[2]; push @rows, [@f] }\
        print \"$_ $sum{$_}\\n\" for sort keys %sum; print join(',', map { $$_[0] } sort { $$a[2] <=> $$b[2] } @rows), \"\\n\"";
    check("perl", &["-e", program], ALL);
}

#[test]
fn python3() {
    let program = "d = {str(i): [i] * 3 for i in range(300)}\n\
        print(sum(len(v) for v in d.values()), sorted(d)[:5], len(b'x' * 70000), 7 ** 500 % 1001)\n";
    check("python3", &["-S", "-E", "-I", "-c", program], SAMPLE);
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
fn gzip_and_xz() {
    check("gzip", &["-kcn", "table"], ALL);
    check("xz", &["-0", "-kc", "-T1", "table"], ALL);
}
