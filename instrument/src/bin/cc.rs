//! `thermalloc-cc` and, under the name `thermalloc-c++`, the same for C++: runs clang with the pass.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use thermalloc_instrument::options::{ONLY_VARIABLE, Options, SHAPE_VARIABLE};

/// Where the plugin is, if not beside this program.
const PLUGIN_VARIABLE: &str = "THERMALLOC_CC_PLUGIN";
/// The compiler to run instead of Debian's, which must be clang 16's.
const COMPILER_VARIABLE: &str = "THERMALLOC_CC_CLANG";
const PLUGIN: &str = "libthermalloc_instrument.so";

fn main() -> ExitCode {
    match compile() {
        Ok(never) => match never {},
        Err(message) => {
            eprintln!("thermalloc-cc: {message}");
            ExitCode::from(2)
        }
    }
}

/// Becomes the compiler.
fn compile() -> Result<std::convert::Infallible, String> {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let mut shape = std::env::var(SHAPE_VARIABLE).ok();
    let mut only = std::env::var(ONLY_VARIABLE).ok();
    let mut passed: Vec<OsString> = Vec::new();
    for argument in arguments {
        match own_option(&argument) {
            Some(("shape", value)) => shape = Some(value.to_owned()),
            Some(("only", value)) => only = Some(value.to_owned()),
            Some((option, _)) => {
                return Err(format!("option --thermalloc-{option} is not known: use shape or only"));
            }
            None => passed.push(argument),
        }
    }
    Options::new(shape.as_deref(), only.as_deref()).map_err(|bad| bad.to_string())?;
    let folder = own_folder()?;
    let plugin = std::env::var_os(PLUGIN_VARIABLE).map_or_else(|| folder.join(PLUGIN), PathBuf::from);
    if !plugin.exists() {
        let plugin = plugin.display();
        return Err(format!("{plugin} is missing: install clang-16 and llvm-16-dev, then run make build"));
    }
    let compiler = std::env::var_os(COMPILER_VARIABLE).unwrap_or_else(|| compiler(&name).into());
    let mut command = Command::new(&compiler);
    // Not used when nothing is compiled, which must not make a warning: configure scripts look for those.
    command.arg("--start-no-unused-arguments").arg(joined("-fpass-plugin=", &plugin));
    command.arg("-idirafter").arg(&folder).arg("--end-no-unused-arguments").args(&passed);
    for (variable, value) in [(SHAPE_VARIABLE, shape), (ONLY_VARIABLE, only)] {
        if let Some(value) = value {
            command.env(variable, value);
        }
    }
    let error = command.exec();
    Err(format!("cannot run {}: {error}; install clang-16", Path::new(&compiler).display()))
}

/// Name and value of an option of this program's own.
fn own_option(argument: &OsString) -> Option<(&str, &str)> {
    argument.to_str()?.strip_prefix("--thermalloc-")?.split_once('=')
}

/// Called as `...++`: C++.
fn compiler(name: &OsString) -> &'static str {
    if name.as_bytes().ends_with(b"++") { "clang++-16" } else { "clang-16" }
}

/// The folder of this program, through links.
fn own_folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    program.parent().map(Path::to_path_buf).ok_or_else(|| "cannot find my folder".to_owned())
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push(path);
    text
}
