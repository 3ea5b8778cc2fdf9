//! The modes under test, and which of them this machine can run.

use std::{env, fmt, fs};

/// A mode of `thermalloc run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The allocator alone.
    Off,
    /// Page protection and single step.
    Pp,
    /// A protection key and single step.
    Mpk,
    /// Instructions run in copies that access the alias view.
    Emulate,
    /// Sites rewritten to jump into a code cache that accesses the alias view.
    Patch,
}

impl Mode {
    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::Pp => "pp",
            Mode::Mpk => "mpk",
            Mode::Emulate => "emulate",
            Mode::Patch => "patch",
        }
    }

    /// Whether accesses are seen at all.
    pub fn monitors(self) -> bool {
        self != Mode::Off
    }

    /// Whether accesses are seen exactly while several threads run.
    pub fn exact_with_threads(self) -> bool {
        matches!(self, Mode::Mpk | Mode::Emulate | Mode::Patch)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Whether the CPU has protection keys and the kernel uses them.
pub fn has_pku() -> bool {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "ospke"))
}

/// Whether this process runs in the emulated machine, where everything takes many times longer.
pub fn emulated() -> bool {
    env::var_os("THERMALLOC_TEST_EMULATED").is_some()
}

/// Whether to run what takes long under emulation, too, and at full length: `THERMALLOC_PKU_VM_ALL=1`.
pub fn everything() -> bool {
    env::var("THERMALLOC_PKU_VM_ALL").as_deref() == Ok("1")
}

/// The modes to test here: those of `THERMALLOC_TEST_MODES` (`off,pp,mpk,emulate,patch`), without `mpk` where the CPU has
/// no protection keys (the test `pku_vm` covers it then).
pub fn modes() -> Vec<Mode> {
    let wanted = env::var("THERMALLOC_TEST_MODES").unwrap_or_else(|_| "off,pp,mpk,emulate,patch".to_owned());
    let pku = has_pku();
    let known = [Mode::Off, Mode::Pp, Mode::Mpk, Mode::Emulate, Mode::Patch];
    known
        .into_iter()
        .filter(|mode| wanted.split(',').any(|name| name == mode.name()) && (pku || *mode != Mode::Mpk))
        .collect()
}

/// Says that a test cannot run here and why. A failure where `REQUIRE_PKU=1` demands it.
pub fn skip_for_lack_of_pku(why: &str) {
    assert!(env::var("REQUIRE_PKU").as_deref() != Ok("1"), "REQUIRE_PKU=1, but {why}");
    println!("SKIP: {why}");
}
