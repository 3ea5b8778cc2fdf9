//! Reading the clock and the memory of a process.
//!
//! # Safety
//! `getrusage` writes a local.

/// What one run took.
#[derive(Clone, Copy)]
pub struct Run {
    /// User plus system time in seconds.
    pub seconds: f64,
    /// Most memory resident at a time, in KiB.
    pub peak_kib: u64,
}

/// User plus system time of this process so far.
pub fn cpu_seconds() -> f64 {
    // SAFETY: all zeroes is a valid rusage, and the kernel fills it in.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    of(&usage).seconds
}

/// What a process used.
pub fn of(usage: &libc::rusage) -> Run {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Run { seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime), peak_kib: usage.ru_maxrss as u64 }
}

/// In a child: prints what the parent parses.
pub fn print(seconds: f64) {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    // Not ru_maxrss: that one starts with the parent's.
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    println!("{seconds} {}", peak.trim().trim_end_matches(" kB"));
}

/// The inverse of [`print`].
pub fn parse(output: &[u8]) -> Run {
    let text = String::from_utf8_lossy(output);
    let mut words = text.split_whitespace();
    let mut next = || words.next().expect("two numbers");
    Run { seconds: next().parse().expect("seconds"), peak_kib: next().parse().expect("KiB") }
}
