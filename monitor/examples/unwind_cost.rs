//! What a call stack costs: nanoseconds a capture, and as a ratio to a malloc and free of 64 bytes with the C library.
//! Run with `cargo run --release -p thermalloc-monitor --example unwind_cost [-- --smoke]`.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;
use thermalloc_monitor::unwind::{Caller, StackReader, UnwindState, capture, locate};

const DEPTHS: [usize; 5] = [0, 1, 2, 8, 32];
const RECURSION: u32 = 40;

/// Median of several runs, in nanoseconds an iteration.
fn time(iterations: u32, mut body: impl FnMut()) -> f64 {
    let mut runs: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            (0..iterations).for_each(|_| body());
            start.elapsed().as_secs_f64() * 1e9 / f64::from(iterations)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

#[inline(always)]
fn caller() -> Caller {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: copies three registers.
    unsafe {
        std::arch::asm!(
            "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
            out(reg) ip, out(reg) sp, out(reg) bp, options(nomem, nostack, preserves_flags),
        );
    }
    Caller { ip, sp, bp }
}

#[inline(never)]
fn recurse(depth: u32, then: &mut dyn FnMut(Caller)) -> u32 {
    let mut pad = [depth; 8];
    black_box(&mut pad);
    if depth == 0 {
        then(caller());
    } else {
        recurse(depth - 1, then);
    }
    black_box(&mut pad)[0]
}

fn main() {
    let iterations = if std::env::args().any(|arg| arg == "--smoke") { 1_000 } else { 200_000 };
    let pair = time(iterations, || {
        // SAFETY: the block is freed at once.
        unsafe { libc::free(black_box(libc::malloc(black_box(64)))) }
    });
    println!("malloc + free: {pair:.1} ns");
    println!("{:<24}{:>8}{:>10}{:>8}", "capture", "frames", "ns", "ratio");
    recurse(RECURSION, &mut |at| {
        let mut state = Box::new(UnwindState::new());
        let mut frames = [0u64; 64];
        for depth in DEPTHS {
            let len = capture(&mut state, at, depth, &mut frames);
            let ns = time(iterations, || {
                black_box(capture(&mut state, black_box(at), depth, black_box(&mut frames)));
            });
            println!("{:<24}{len:>8}{ns:>10.1}{:>8.1}", format!("depth {depth}"), ns / pair);
        }
        let ns = time(iterations / 100, || {
            *state = UnwindState::new();
            black_box(capture(&mut state, black_box(at), 8, black_box(&mut frames)));
        });
        println!("{:<24}{:>8}{ns:>10.1}{:>8.1}", "depth 8, new thread", 8, ns / pair);
        let ns = time(iterations / 100, || {
            let mut reader = StackReader::new();
            reader.begin(black_box(at.sp));
        });
        println!("{:<24}{:>8}{ns:>10.1}{:>8.1}", "  of this: its stack", "", ns / pair);
        let ns = time(iterations, || {
            black_box(locate(black_box(at.ip)));
        });
        println!("{:<24}{:>8}{ns:>10.1}{:>8.1}", "locate", 1, ns / pair);
    });
}
