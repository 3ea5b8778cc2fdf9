//! Runs a program to its end or to a limit, and tells what it used.
//!
//! # Safety
//! Calls of waitid, wait4 and kill, with pointers to locals and with the process id of a child that nobody else reaps: the
//! child's id stays its own until the call of wait4 here.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How a program came out.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Processor time, user and system, of the program and the children that it waited for, in seconds.
    pub cpu_s: f64,
    /// From before its start to its end, in seconds.
    pub wall_s: f64,
    /// Most resident memory in KiB, but no less than this program's own (the kernel hands it down).
    pub peak_kib: u64,
    /// Whether it was killed at the limit.
    pub stopped: bool,
    /// Its status.
    pub status: ExitStatus,
}

/// Runs a program; what it used is exact, also if it is stopped.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<Outcome> {
    let begin = Instant::now();
    // A group of its own, so that what it starts is stopped with it.
    let child = command.process_group(0).spawn()?;
    let pid = libc::pid_t::try_from(child.id()).expect("a process id");
    let (ended, end) = mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        let late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if late {
            // SAFETY: no pointers; the child is not reaped before this thread has ended.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
        late
    });
    await_end(pid)?;
    let wall_s = begin.elapsed().as_secs_f64();
    drop(ended);
    let late = watchdog.join().expect("the watchdog does not panic");
    let (status, usage) = reap(pid)?;
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Outcome {
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        wall_s,
        peak_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
        stopped: late && status.signal() == Some(libc::SIGKILL),
        status,
    })
}

/// Waits until a child has ended, and leaves it to be reaped.
fn await_end(pid: libc::pid_t) -> io::Result<()> {
    loop {
        // SAFETY: siginfo_t is plain data, for which zeros are a value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is a local.
        let waited = unsafe {
            libc::waitid(libc::P_PID, pid.cast_unsigned(), &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        match (waited, io::Error::last_os_error()) {
            (0, _) => return Ok(()),
            (_, error) if error.kind() == io::ErrorKind::Interrupted => {}
            (_, error) => return Err(error),
        }
    }
}

fn reap(pid: libc::pid_t) -> io::Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: rusage is plain data, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `status` and `usage` are locals.
    let reaped = unsafe { libc::wait4(pid, &mut status, 0, &mut usage) };
    if reaped == pid { Ok((ExitStatus::from_raw(status), usage)) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Outcome {
        run(Command::new("sh").args(["-c", script]), limit).unwrap()
    }

    #[test]
    fn time_and_status_are_the_programs() {
        let busy =
            shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 3", Duration::from_secs(100));
        assert_eq!((busy.status.code(), busy.stopped), (Some(3), false));
        assert!(busy.cpu_s > 0.0 && busy.peak_kib > 0);
        let idle = shell("sleep 0.2", Duration::from_secs(100));
        assert!(idle.wall_s >= 0.2 && idle.cpu_s < idle.wall_s);
    }

    #[test]
    fn a_program_is_stopped_at_the_limit_with_all_that_it_started() {
        let stopped = shell("while :; do :; done & wait", Duration::from_millis(200));
        assert!(stopped.stopped && stopped.wall_s >= 0.2, "{stopped:?}");
        let killed = shell("kill -KILL $$", Duration::from_secs(100));
        assert!(!killed.stopped);
    }
}
