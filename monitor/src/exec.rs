//! execve and execveat: the report of the image that is about to be replaced, and the environment of the next.
//!
//! The variable `_THERMALLOC_FIRST=PID:N` tells the next image which process is the first of the run, whose report
//! has the plain name, and how many images its process has had, so that no report overwrites another. It is added
//! where the environment preloads the runtime and does not have it yet; the program's own environment is
//! never touched.
//!
//! # Safety
//! The program's arrays are read with the probing copy; the new array lives until the call returns.
//!
//! # Signal context
//! Runs in the SIGSYS handler in program context: the private heap may be used.
#![allow(unsafe_code)]

use crate::actions;
use crate::control;
use crate::frame::Frame;
use crate::kernel_call;
use crate::memory;
use crate::report;
use crate::thread::HandlerState;
use thermalloc_sys::gate;

const VARIABLE: &[u8] = b"_THERMALLOC_FIRST=";
const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// Pointers that an environment may have; a longer one is passed on as it is.
const MAX_ENTRIES: usize = 1 << 16;

/// What an exec on its way holds alive, to be undone if it fails.
pub struct ExecImage {
    /// The replaced environment and the text of the added variable.
    _environment: Option<(Vec<u64>, Vec<u8>)>,
    /// The report that was written for the image that goes on if the exec fails.
    report: Option<std::path::PathBuf>,
}

/// execve or execveat.
pub fn begin(state: &mut HandlerState, frame: &mut Frame, nr: i64) {
    let report = if state.vfork_child { None } else { report::write_for_exec() };
    let environment_at = if nr == libc::SYS_execve { frame.context.rdx } else { frame.context.r10 };
    let environment = extended_environment(environment_at as usize);
    actions::expose_ignored();
    kernel_call::begin(state, frame, nr, gate::call());
    if let Some((array, _)) = &environment {
        let at = array.as_ptr() as u64;
        if nr == libc::SYS_execve {
            frame.context.rdx = at;
        } else {
            frame.context.r10 = at;
        }
    }
    state.exec = Some(ExecImage { _environment: environment, report });
}

/// The exec has failed: the image goes on.
pub fn failed(image: ExecImage) {
    actions::cover_ignored();
    if let Some(path) = image.report {
        report::withdraw(&path);
    }
}

/// A copy of the environment at `at` with the variable added; `None` if it is to stay as it is.
fn extended_environment(at: usize) -> Option<(Vec<u64>, Vec<u8>)> {
    let mut array = Vec::with_capacity(64);
    let mut preloads = false;
    for index in 0..MAX_ENTRIES {
        let entry = memory::read_value::<u64>(at.checked_add(index * 8)?)?;
        if entry == 0 {
            let text = variable();
            array.push(text.as_ptr() as u64);
            array.push(0);
            return preloads.then_some((array, text));
        }
        if starts_with(entry as usize, VARIABLE) {
            continue;
        }
        preloads |= starts_with(entry as usize, PRELOAD);
        array.push(entry);
    }
    None
}

fn starts_with(at: usize, prefix: &[u8]) -> bool {
    let mut start = [0u8; 24];
    let start = &mut start[..prefix.len()];
    memory::read(at, start) && start == prefix
}

fn variable() -> Vec<u8> {
    let mut text = VARIABLE.to_vec();
    text.extend_from_slice(format!("{}:{}\0", control::first_pid(), control::images() + 1).as_bytes());
    text
}
