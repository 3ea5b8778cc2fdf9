//! Mode `patch` finds room for code caches, however many libraries a program has.

use thermalloc_tests::modes::{Mode, modes};
use thermalloc_tests::{monitored, victims};

#[test]
fn many_libraries_have_room() {
    if !modes().contains(&Mode::Patch) {
        return;
    }
    let victim = victims::victim("many_plugins");
    let monitored = monitored::run(Mode::Patch, &[], &victim.program(), &[]);
    monitored.outcome.assert_same(&monitored::native(&victim.program(), &[]), "many_plugins");
    let [report] = &monitored.reports[..] else {
        panic!("{} reports instead of one", monitored.reports.len())
    };
    let without = report.unpatched().filter(|reason| reason.contains("no room")).count();
    assert_eq!(without, 0, "sites without a code cache");
    assert!(report.total("patched_sites") > 24, "{} sites are patched", report.total("patched_sites"));
}
