//! fork, exec, wait; and the few questions about files and credentials that std has no answer for.
//!
//! The program gets the variable `_THERMALLOC_FIRST` with its own process id, so that the runtime in it can tell it from
//! the processes that it starts. The id is known only after fork, where nothing may allocate: the digits are
//! written into room prepared before.
//!
//! # Safety
//! Between fork and exec only async-signal-safe functions are called, on memory prepared before the fork.
#![allow(unsafe_code)]

use super::settings::Environment;
use super::signals::{self, Inherited};
use crate::failure::Failure;
use std::ffi::{CString, OsStr, OsString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

const FIRST: &[u8] = b"_THERMALLOC_FIRST=";
/// Digits of the largest process id, and the final zero.
const PID_ROOM: usize = 12;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with a status.
    Exit(u8),
    /// By a signal.
    Signal(i32),
}

impl End {
    /// The exit status that stands for it, as in shells.
    pub fn status(self) -> u8 {
        match self {
            Self::Exit(status) => status,
            Self::Signal(signal) => (128 + signal) as u8,
        }
    }
}

/// A program ready to be executed.
pub struct Command {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Command {
    /// `arguments` begins with the program's name.
    pub fn new(path: &Path, arguments: &[OsString], environment: Environment) -> Result<Self, Failure> {
        let environment =
            environment.iter().filter(|(name, _)| name != "_THERMALLOC_FIRST").map(|(name, value)| {
                let mut line = name.clone();
                line.push("=");
                line.push(value);
                line
            });
        Ok(Self {
            path: c_string(path.as_os_str())?,
            arguments: arguments.iter().map(|argument| c_string(argument)).collect::<Result<_, _>>()?,
            environment: environment.map(|line| c_string(&line)).collect::<Result<_, _>>()?,
        })
    }

    /// Runs it to its end; returns its process id too. The error is an errno of fork or exec.
    pub fn run(&self) -> Result<(i32, End), i32> {
        let interrupts_ignored = signals::is_ignored(libc::SIGINT);
        let inherited = signals::hold();
        let pid = self.spawn(&inherited)?;
        if !interrupts_ignored {
            outlive_interrupts(pid);
        }
        Ok((pid, wait(pid)))
    }

    fn spawn(&self, inherited: &Inherited) -> Result<i32, i32> {
        let mut first = FIRST.to_vec();
        first.resize(FIRST.len() + PID_ROOM, 0);
        let mut environment = pointers(&self.environment);
        environment.insert(0, first.as_ptr().cast());
        let arguments = pointers(&self.arguments);
        // A script without `#!` is given to the shell, as shells do.
        let mut shell = arguments.clone();
        shell.splice(0..1, [c"/bin/sh".as_ptr(), self.path.as_ptr()]);
        let failure = Pipe::new()?;
        // SAFETY: the child calls system calls only, on memory that was prepared above, and never returns from here.
        unsafe {
            match libc::fork() {
                -1 => Err(errno()),
                0 => {
                    write_digits(&mut first[FIRST.len()..], libc::getpid() as u32);
                    inherited.restore();
                    libc::execve(self.path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                    if errno() == libc::ENOEXEC {
                        libc::execve(shell[0], shell.as_ptr(), environment.as_ptr());
                    }
                    failure.send(errno());
                    libc::_exit(127)
                }
                pid => failure.receive().map_or(Ok(pid), Err),
            }
        }
    }
}

fn c_string(text: &OsStr) -> Result<CString, Failure> {
    CString::new(text.as_bytes()).map_err(|_| Failure::own("a zero byte in an argument; leave it out"))
}

/// Pointers to the strings, and the null that ends the list.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// Decimal digits, without allocation; what follows them stays zero.
fn write_digits(room: &mut [u8], number: u32) {
    let length = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for digit in room[..length].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Tells the parent why exec failed; exec itself closes it.
struct Pipe {
    read: i32,
    write: i32,
}

impl Pipe {
    fn new() -> Result<Self, i32> {
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors to a live array.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(errno());
        }
        Ok(Self { read: ends[0], write: ends[1] })
    }

    fn send(&self, errno: i32) {
        let bytes = errno.to_ne_bytes();
        // SAFETY: the kernel reads a live array.
        unsafe { libc::write(self.write, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// The errno that was sent, or `None` once exec has succeeded.
    fn receive(&self) -> Option<i32> {
        let mut bytes = [0; 4];
        // SAFETY: closes the parent's copy of the writing end, which nothing uses after; fills a live array.
        let n = unsafe {
            libc::close(self.write);
            let n = libc::read(self.read, bytes.as_mut_ptr().cast(), bytes.len());
            libc::close(self.read);
            n
        };
        (n == bytes.len() as isize).then(|| i32::from_ne_bytes(bytes))
    }
}

/// Ctrl-C must not end this program before the program under watch has written its report. The terminal sends it to
/// both; one sent to this program alone is passed on.
fn outlive_interrupts(child: i32) {
    let handler = move || {
        if !signals::in_foreground() {
            // SAFETY: sends a signal; at worst the child is a zombie that is about to be waited for.
            unsafe { libc::kill(child, libc::SIGINT) };
        }
    };
    // Without a handler SIGINT stays held back, and the waiting loop takes it.
    if ctrlc::set_handler(handler).is_ok() {
        signals::release_interrupt();
    }
}

fn wait(child: i32) -> End {
    loop {
        let arrival = signals::next();
        if arrival.signal != libc::SIGCHLD {
            arrival.pass_on(child);
            continue;
        }
        let mut status = 0;
        // SAFETY: the kernel writes a live integer.
        let changed = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG | libc::WUNTRACED) };
        if changed != child {
            continue;
        }
        if libc::WIFEXITED(status) {
            return End::Exit(libc::WEXITSTATUS(status) as u8);
        }
        if libc::WIFSIGNALED(status) {
            return End::Signal(libc::WTERMSIG(status));
        }
        // SIGSTOP is not job control: whoever sent it will continue the child alone.
        if matches!(libc::WSTOPSIG(status), libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) {
            signals::stop_too();
        }
    }
}

/// What decides whether an exec raises privileges.
pub struct Credentials {
    /// Effective user id.
    pub user: u32,
    /// Effective group id.
    pub group: u32,
    /// prctl(PR_SET_NO_NEW_PRIVS) has been called.
    pub no_new_privileges: bool,
}

impl Credentials {
    /// Of this process.
    pub fn current() -> Self {
        // SAFETY: no pointers.
        unsafe {
            Self {
                user: libc::geteuid(),
                group: libc::getegid(),
                no_new_privileges: libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
            }
        }
    }
}

/// Whether the file lies where set-user-ID bits have no effect.
pub fn on_nosuid_mount(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut answer = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: a C string and a live local, zeroed in case the call fails.
    let answer = unsafe {
        libc::statvfs(path.as_ptr(), answer.as_mut_ptr());
        answer.assume_init()
    };
    answer.f_flag & libc::ST_NOSUID != 0
}

/// Whether the file carries capabilities.
pub fn has_file_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: two C strings; a size of zero asks for the length alone.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), ptr::null_mut(), 0) > 0 }
}

/// Whether files can be created in the directory.
pub fn writable(directory: &Path) -> bool {
    let Ok(path) = CString::new(directory.as_os_str().as_bytes()) else { return false };
    // SAFETY: a C string.
    unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        for number in [0, 7, 10, 4194304, u32::MAX] {
            let mut room = [0; PID_ROOM];
            write_digits(&mut room, number);
            let text = room.split(|&byte| byte == 0).next().unwrap();
            assert_eq!(text, number.to_string().as_bytes());
        }
    }
}
