//! What each mode costs on programs that nobody recompiled. Exit status: 0 if all went well, 1 if a program failed or printed
//! something else than natively, 2 for a bad command line. Modules, lowest first:
//!
//! - [`columns`]: the ways to run a program.
//! - [`child`]: a program until its end or a limit, and what it used.
//! - [`compare`]: whether it printed the same.
//! - [`counted`]: what the monitor saw.
//! - [`inputs`], [`programs`]: what is run, and on what.
//! - [`run`]: what a run came to.
//! - [`busy`]: a run of a program.
//! - [`memcached`]; [`redis_client`], [`redis`]: a run of a server.
//! - [`subjects`]: all of these by name.
//! - [`lines`]: the runs of all, and ratios and means.
//! - [`measured`]: all of it, and what is left of a ratio without start and end.
//! - [`document`], [`table`], [`chart`]: what is written.
//! - [`options`]: the command line.
//! - [`schedule`]: all runs, in turns.

mod busy;
mod chart;
mod child;
mod columns;
mod compare;
mod counted;
mod document;
mod inputs;
mod lines;
mod measured;
mod memcached;
mod options;
mod programs;
mod redis;
mod redis_client;
mod run;
mod schedule;
mod subjects;
mod table;

use clap::Parser;
use options::Options;
use std::process::ExitCode;

fn main() -> ExitCode {
    match schedule::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("bench-modes: {words}");
            ExitCode::from(1)
        }
    }
}
