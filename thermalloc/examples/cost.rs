//! What watching costs on this machine: nanoseconds for one access of each kind, before and after the start of a mode, and the
//! memory of an object.
//!
//! ```text
//! cargo run --release -p thermalloc --example cost [-- pp mpk] [--smoke]
//! ```
//!
//! A mode is for the life of a process, so each is measured in a child. No report is left.
//!
//! # Safety
//! The accesses go to objects that stay alive; the system calls write into one that is large enough.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;
use thermalloc::{Config, Mode};

#[global_allocator]
static HEAP: thermalloc::Thermalloc = thermalloc::Thermalloc;

const BLOCK: usize = 4096;
const OBJECT: usize = 64;

/// Nanoseconds for one call of `act`: the least of five rounds, for what disturbs only ever adds.
fn time(rounds_of: u32, mut act: impl FnMut()) -> f64 {
    let round = |act: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..rounds_of).for_each(|_| act());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(rounds_of)
    };
    (0..5).map(|_| round(&mut act)).fold(f64::INFINITY, f64::min)
}

/// One access each, by name.
fn accesses(block: &mut [u8], from: &mut [u8], zero: i32, repeat: u32) -> Vec<(&'static str, f64)> {
    let word = block.as_mut_ptr().cast::<u64>();
    let source = from.as_mut_ptr();
    // SAFETY: the first word of a live block.
    let load = || _ = black_box(unsafe { word.read_volatile() });
    // SAFETY: the first word of a live block that nobody else uses.
    let store = || unsafe { word.write_volatile(black_box(1)) };
    // SAFETY: both blocks are live, and of this size.
    let copy = || unsafe { copy(word.cast(), source) };
    // SAFETY: getppid takes no argument.
    let call = || _ = black_box(unsafe { libc::getppid() });
    // SAFETY: the block has room for it.
    let read = || assert_eq!(unsafe { libc::read(zero, word.cast(), BLOCK) }, BLOCK as isize);
    vec![
        ("load, 8 B", time(repeat, load)),
        ("store, 8 B", time(repeat, store)),
        ("rep movsb, 4 KiB", time(repeat, copy)),
        ("system call, no pointer", time(repeat, call)),
        ("read(2), 4 KiB", time(repeat, read)),
        ("malloc and free, 64 B", time(repeat, || drop(black_box(Vec::<u8>::with_capacity(OBJECT))))),
    ]
}

/// # Safety
/// Both point to blocks of [`BLOCK`] bytes.
unsafe fn copy(to: *mut u8, from: *const u8) {
    // SAFETY: forwarded to the caller.
    unsafe {
        std::arch::asm!("rep movsb", inout("rcx") BLOCK => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
}

/// Bytes of memory in use by this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Resident bytes for each of many objects of 64 bytes.
fn memory(objects: usize) -> f64 {
    let mut all: Vec<Vec<u8>> = Vec::with_capacity(objects);
    let before = resident();
    all.extend((0..objects).map(|_| Vec::with_capacity(OBJECT)));
    all.iter_mut().for_each(|object| object.push(1));
    let growth = resident() - before;
    drop(black_box(all));
    growth as f64 / objects as f64 - size_of::<Vec<u8>>() as f64
}

fn child(mode: &str, smoke: bool) -> Result<(), String> {
    let (repeat, objects) = if smoke { (20, 2_000) } else { (2_000, 50_000) };
    let config = Config {
        mode: match mode {
            "pp" => Mode::Pp,
            "mpk" => Mode::Mpk,
            "off" => Mode::Off,
            other => return Err(format!("{other} is none of off, pp, mpk")),
        },
        out: "/dev/null".to_owned(),
        ..Config::default()
    };
    thermalloc::start(&config).map_err(|error| error.to_string())?;
    // SAFETY: the path is a C string.
    let zero = unsafe { libc::open(c"/dev/zero".as_ptr(), libc::O_RDONLY) };
    let (mut block, mut from) = (vec![0u8; BLOCK], vec![0u8; BLOCK]);
    for (name, ns) in accesses(&mut block, &mut from, zero, repeat) {
        println!("{mode:<6}{name:<26}{ns:>10.0} ns");
    }
    println!("{mode:<6}{:<26}{:>10.0} B", "memory of a 64 B object", memory(objects));
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let smoke = args.iter().any(|arg| arg == "--smoke");
    if let Some(at) = args.iter().position(|arg| arg == "--child") {
        if let Err(why) = child(args.get(at + 1).map_or("", String::as_str), smoke) {
            println!("{}: {why}", args[at + 1]);
        }
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<&str> = args.iter().map(String::as_str).filter(|arg| !arg.starts_with("--")).collect();
    for mode in if chosen.is_empty() { vec!["off", "pp", "mpk"] } else { chosen } {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        command.args(["--child", mode]).args(smoke.then_some("--smoke"));
        if !command.status().is_ok_and(|status| status.success()) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
