//! Mode `mpk` where the CPU has no protection keys: the same tests in an emulated machine that has them.

use std::env;
use std::process::{Command, Stdio};
use thermalloc_tests::modes::{emulated, everything, has_pku, skip_for_lack_of_pku};
use thermalloc_tests::{places, victims};

/// The tests that run there: all hazards, the counts, the hole, and the programs that take a minute at most, since each
/// access is some ten times slower than on hardware.
const SELECTION: &[&str] = &[
    "exact::",
    "hazards::",
    "hole::",
    "misuse::",
    "without_sud::",
    "programs::awk",
    "programs::bash",
    "programs::sqlite3",
    "programs::perl",
    "programs::grep",
    "programs::sed",
    "programs::gcc",
    "programs::make",
    "programs::sort",
    "programs::tar",
    "servers::memcached",
    "servers::hot_keys_are_hot_objects",
];

/// With `THERMALLOC_PKU_VM_ALL=1` these, too; the load for the hot keys is then ten times as long.
const LONG: &[&str] =
    &["programs::git", "programs::jq", "programs::python3", "programs::xz", "servers::redis"];

/// `pku-vm` ends with this where the machine could not be set up.
const NO_MACHINE: i32 = 125;

#[test]
fn mpk_in_an_emulated_machine() {
    let wanted = env::var("THERMALLOC_TEST_MODES").map_or(true, |modes| modes.contains("mpk"));
    if emulated() || has_pku() || !wanted {
        return; // the other tests cover mpk themselves
    }
    victims::build(); // outside: compiling is slow inside
    let machine = places::root().join("tests/pku-vm");
    let mut command = Command::new(machine);
    let (seconds, long) = if everything() { ("10800", LONG) } else { ("1500", &[][..]) };
    command.args(["--timeout", seconds, "--"]).arg(env::current_exe().expect("own path"));
    command.args(SELECTION).args(long).args(["--test-threads", "2", "--nocapture"]);
    command.env("THERMALLOC_TEST_MODES", "mpk").env("THERMALLOC_TEST_EMULATED", "1").env("REQUIRE_PKU", "1");
    let output = command.stdin(Stdio::null()).output().expect("start tests/pku-vm");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    if output.status.code() == Some(NO_MACHINE) {
        return skip_for_lack_of_pku(&format!("no CPU with protection keys, and no emulated one: {text}"));
    }
    println!("{text}");
    assert!(output.status.success(), "mode mpk failed in the emulated machine:\n{text}");
    assert!(!text.contains("running 0 tests"), "no test ran in the emulated machine");
}
