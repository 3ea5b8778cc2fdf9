//! Captured stacks equal those of libgcc's unwinder, and have the functions in them that were called.

mod unwind_support;

use std::sync::Mutex;
use thermalloc_monitor::unwind::{ModuleMatcher, locate, modules};
use unwind_support::{Library, Observation, compile, names, observations, probe};

/// Runs a victim and checks every observation against the oracle and against the expected innermost functions.
fn check(library: &Library, victim: &str, expected: &[&str]) {
    // Signal handlers are the process's: one victim at a time may install them.
    static SIGNALS: Mutex<()> = Mutex::new(());
    let _guard = ["signalled", "trapped", "faulted"].contains(&victim).then(|| SIGNALS.lock());
    let seen = library.run(victim);
    assert!(!seen.is_empty(), "{victim} has not called the probe");
    for observation in seen {
        agree(victim, &observation);
        let names = names(&observation.ours);
        assert!(in_order(&names, expected), "{victim}: {expected:?} in {names:?}");
    }
}

fn agree(victim: &str, Observation { ours, theirs }: &Observation) {
    assert_eq!(ours, theirs, "{victim}: {:?} but {:?}", names(ours), names(theirs));
}

fn in_order(names: &[String], expected: &[&str]) -> bool {
    let mut names = names.iter();
    expected.iter().all(|function| names.any(|name| name == function))
}

const VICTIMS: &[(&str, &[&str])] = &[
    ("chain", &["leaf", "middle", "chain"]),
    ("deep", &["leaf", "recurse", "recurse", "recurse", "recurse", "deep"]),
    ("allocas", &["leaf", "dynamic", "allocas"]),
    ("realigned", &["leaf", "realigned_inner", "realigned"]),
    ("tail_calls", &["tail_calls"]),
    ("last_call", &["leaf", "never_returns", "ends_in_call", "last_call"]),
    ("sorting", &["leaf", "compare", "qsort_r", "sorting"]),
    ("signalled", &["leaf", "middle", "on_signal", "signalled"]),
    ("trapped", &["leaf", "middle", "on_signal", "trapped"]),
    // names() looks up the byte before, which is right for return addresses only.
    ("faulted", &["leaf", "middle", "chain", "on_fault", "faulted"]),
    ("switched", &["leaf", "middle", "chain", "coroutine"]),
];

#[test]
fn optimised_c_without_frame_pointers() {
    let library = Library::open(&compile("victim.c", "plain", &[]));
    for (victim, expected) in VICTIMS {
        check(&library, victim, expected);
    }
}

#[test]
fn other_ways_to_compile() {
    for (tag, flags) in [
        ("o0", &["-O0"][..]),
        ("frame-pointer", &["-fno-omit-frame-pointer"]),
        ("avx2-lto", &["-O3", "-mavx2", "-mstackrealign"]),
        ("shrink-wrapped", &["-Os", "-fcf-protection=none", "-fno-plt"]),
    ] {
        let library = Library::open(&compile("victim.c", tag, flags));
        for (victim, expected) in VICTIMS {
            check(&library, victim, expected);
        }
    }
}

#[test]
fn cpp() {
    let library = Library::open(&compile("victim.cpp", "cpp", &[]));
    check(&library, "virtual_call", &["cpp_leaf", "virtual_call"]);
    check(&library, "closures", &["cpp_leaf", "closures"]);
    let seen = library.run("exceptions");
    assert_eq!(seen.len(), 2, "once in the destructor, once in the handler");
    for observation in &seen {
        agree("exceptions", observation);
    }
    assert!(in_order(&names(&seen[0].ours), &["cpp_leaf", "exceptions"]));
    // gcc moves the handler to `exceptions.cold`, which is not exported.
    assert!(in_order(&names(&seen[1].ours), &["cpp_leaf"]));
}

#[test]
fn rust() {
    #[inline(never)]
    fn fold(depth: u32) -> u32 {
        if depth == 0 {
            probe();
            return 1;
        }
        let below: Vec<u32> = (0..1).map(|_| fold(depth - 1)).collect();
        std::hint::black_box(below[0] + depth)
    }
    let seen = observations(|| {
        std::hint::black_box(fold(6));
    });
    assert_eq!(seen.len(), 1);
    agree("rust", &seen[0]);
    assert!(seen[0].ours.len() > 6, "{:?}", seen[0]);
}

#[test]
fn many_threads_at_once() {
    let library = Library::open(&compile("victim.c", "threads", &[]));
    let library = &Shared(library);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    check(&library.0, "chain", &["leaf", "middle", "chain"]);
                    check(&library.0, "allocas", &["leaf", "dynamic", "allocas"]);
                }
            });
        }
    });
}

struct Shared(Library);
// SAFETY: a loaded library is called from any thread; the victims used have no shared state.
#[allow(unsafe_code)]
unsafe impl Sync for Shared {}

#[test]
fn modules_have_names_bases_and_build_ids() {
    let path = compile("victim.c", "named", &[]);
    let library = Library::open(&path);
    let leaf = library.symbol("leaf") as u64;
    let (index, offset) = locate(leaf).expect("the victim's module");
    let module = modules::get(index).expect("a module");
    assert_eq!(module.path, path.to_str().expect("UTF-8"));
    assert_eq!(module.base + offset, leaf);
    assert!(module.ranges.iter().any(|range| range.contains(&leaf)));
    assert_eq!(module.build_id, build_id(&path));

    let here = locate(modules_have_names_bases_and_build_ids as *const () as u64).expect("the program");
    let program = std::env::current_exe().expect("a path");
    assert_eq!(modules::get(here.0).expect("a module").path, program.to_str().expect("UTF-8"));
    modules::poll();
    assert!(modules::all().iter().any(|module| module.path == "[vdso]"));
    assert_eq!(locate(&raw const index as u64), None, "the stack is not code");
    assert_eq!(locate(0), None);

    assert!(ModuleMatcher::new("libunwind").matches(leaf));
    assert!(ModuleMatcher::new("libunwind-victim-named.so").matches(leaf));
    assert!(!ModuleMatcher::new("libunwind-victim-nam").matches(leaf));
    assert!(!ModuleMatcher::new("libc").matches(leaf));
    assert!(ModuleMatcher::new("libc").matches(libc::qsort as *const () as u64));
    assert!(ModuleMatcher::new("unwind").matches(unwind_support::probe as *const () as u64));
}

/// The build id according to readelf.
fn build_id(path: &std::path::Path) -> String {
    let output = std::process::Command::new("readelf").arg("-n").arg(path).output().expect("readelf");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let id = text.split("Build ID:").nth(1).expect("a build id");
    id.split_whitespace().next().expect("a word").to_owned()
}
