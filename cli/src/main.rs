//! The `thermalloc` program: `run` starts a program under the monitor, `top` shows what a heat.json says, `export`,
//! `diff`, `merge` and `advise` make other things of it, `doctor` tells what this machine can do.

mod advise;
mod diff;
mod doctor;
mod examples;
mod export;
mod failure;
#[cfg(test)]
mod hostile;
mod input;
mod library;
mod live;
mod machine;
mod manual;
mod measure;
mod merge;
mod options;
mod output;
mod progress;
mod report;
mod run;
mod symbols;
mod table;
mod top;
mod units;

use crate::failure::{Failure, OWN_ERROR};
use crate::options::{Action, Options};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Options::try_parse() {
        Ok(options) => act(options.action),
        Err(error) => explain(&error),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.status)
        }
    }
}

/// Returns the exit status of the whole.
fn act(action: Action) -> Result<u8, Failure> {
    match action {
        Action::Run(options) => run::run(&options),
        Action::Top(options) => match options.pid {
            Some(pid) => live::follow(pid, &options),
            None => top::top(&options),
        },
        Action::Report(options) => report::report(&options),
        Action::Export(options) => export::export(&options),
        Action::Diff(options) => diff::diff(&options),
        Action::Merge(options) => merge::merge(&options),
        Action::Man(options) => manual::man(&options),
        Action::Completions(options) => manual::completions(&options),
        Action::Advise(options) => advise::advise(&options),
        Action::Doctor(options) => doctor::doctor(&options),
    }
}

/// clap's help goes out as it is; clap's errors are cut to their first paragraph, on one line.
fn explain(error: &clap::Error) -> Result<u8, Failure> {
    if !error.use_stderr() {
        // Help and version may be cut short by a pager that is done.
        let _ = error.print();
        return Ok(0);
    }
    let text = error.render().to_string();
    let paragraph: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = paragraph.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    Err(Failure::new(OWN_ERROR, format!("{line}; see 'thermalloc --help'")))
}
