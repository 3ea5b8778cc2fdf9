//! Wrong use of free and realloc: one clear line on stderr that names the pointer, then SIGABRT.

use thermalloc_tests::modes::modes;
use thermalloc_tests::{monitored, victims};

#[test]
fn misuse_is_named_and_aborts() {
    let victim = victims::victim("misuse");
    for mode in modes() {
        for run in &victim.runs {
            let what = format!("misuse {} in mode {mode}", run.arguments.join(" "));
            let outcome = monitored::run(mode, &[], &victim.program(), &run.arguments).outcome;
            assert_eq!(outcome.status, run.status, "{what}: {}{}", outcome.text(), outcome.error_text());
            let pointer = outcome.text().trim().to_owned();
            let errors = outcome.error_text();
            let naming: Vec<&str> = errors.lines().filter(|line| line.contains(&pointer)).collect();
            let [line] = naming[..] else {
                panic!("{what}: {} lines name {pointer}:\n{errors}", naming.len())
            };
            assert!(line.contains(expected_words(&run.arguments[0])), "{what}: {line}");
        }
    }
}

/// What the line says is wrong.
fn expected_words(kind: &str) -> &'static str {
    match kind {
        "double" | "double-large" | "double-late" | "double-thread" | "realloc-freed" => "double free",
        "interior" | "interior-large" => "inside",
        _ => "foreign",
    }
}
