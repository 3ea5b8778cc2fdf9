//! `thermalloc run`: starts a program under the monitor, stands between it and whoever sends signals, and says where
//! the reports went.
//!
//! Modules, lowest first:
//! - [`search`]: which file a program's name means, as a shell finds it.
//! - [`image`]: whether that file can be monitored at all.
//! - [`reports`]: how reports are named, and which ones a run has written.
//! - [`settings`]: the environment that the program is given.
//! - [`signals`]: which signals are held back, and which of them are passed on.
//! - [`child`]: fork, exec, wait.

mod child;
mod image;
mod reports;
mod search;
mod settings;
mod signals;

use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND, say};
use crate::options::RunOptions;
use crate::{library, machine};
use child::{Command, End};
use image::Verdict;
use reports::{Naming, Snapshot};
use std::path::Path;

/// Runs the program to its end; returns its exit status, 128+N for death by signal N.
pub fn run(options: &RunOptions) -> Result<u8, Failure> {
    let program = &options.command[0];
    let path = search::find(program)?;
    let (environment, naming) = match image::examine(&path) {
        Verdict::Monitored => {
            check_mode(options)?;
            let naming = Naming::new(settings::output(options))?;
            let library = library::find().map_err(Failure::own)?;
            (settings::environment(options, &library, &naming), Some(naming))
        }
        Verdict::Unmonitored(reason) => {
            say(&format!("{} cannot be monitored: {reason}; running it unmonitored", path.display()));
            (settings::inherited(), None)
        }
        Verdict::Broken(reason) => return Err(Failure::new(NOT_EXECUTABLE, reason)),
    };
    let before = naming.as_ref().map(Snapshot::take);
    let command = Command::new(&path, &options.command, environment)?;
    let (pid, end) = command.run().map_err(|errno| cannot_execute(&path, errno))?;
    if let (Some(naming), Some(before)) = (naming, before) {
        tell_reports(options, &naming, &before, pid, end);
    }
    Ok(end.status())
}

/// A mode that this machine cannot do is refused here, before the program has started.
fn check_mode(options: &RunOptions) -> Result<(), Failure> {
    if options.mode.as_deref() == Some("mpk")
        && let Err(reason) = machine::modes::mpk()
    {
        return Err(Failure::own(format!("mode mpk: {reason}; use --mode pp (see 'thermalloc doctor')")));
    }
    Ok(())
}

fn cannot_execute(path: &Path, errno: i32) -> Failure {
    let status = if errno == libc::ENOENT { NOT_FOUND } else { NOT_EXECUTABLE };
    let reason = match errno {
        libc::ENOENT => "its loader or interpreter does not exist; install it".to_owned(),
        libc::ENOEXEC => {
            "this machine cannot execute this kind of file; check what it is with 'file'".to_owned()
        }
        _ => format!("{}; check the file and its permissions", std::io::Error::from_raw_os_error(errno)),
    };
    Failure::new(status, format!("cannot execute {}: {reason}", path.display()))
}

fn tell_reports(options: &RunOptions, naming: &Naming, before: &Snapshot, pid: i32, end: End) {
    let written = before.written_since(naming, pid);
    if let Some(line) = written.describe() {
        say(&line);
    } else if naming.is_special() {
        say(&format!("{} is no regular file: no report is kept there", settings::output(options).display()));
    } else if settings::mode(options) != "off" {
        say(&format!("no report was written: {}", why_none(options, naming, end)));
    }
}

fn why_none(options: &RunOptions, naming: &Naming, end: End) -> String {
    if let Some(reason) = naming.unwritable() {
        return reason;
    }
    match end {
        End::Signal(libc::SIGKILL) if settings::interval(options) == 0 => {
            "the program was killed by SIGKILL, which nothing survives; with --interval MS the last periodic report does"
                .into()
        }
        _ => "unless a line above says why, the runtime saw no allocation; the program may have an allocator of its own \
              linked in"
            .into(),
    }
}
