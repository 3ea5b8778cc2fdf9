//! How the runtime comes into a program, whether it can, and what it leaves behind.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The mode that leaves no report.
const OFF: &str = "off";

/// Which accesses the monitor sees.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name in the results.
    pub name: &'static str,
    /// THERMALLOC_ACCESS.
    pub access: &'static str,
    /// THERMALLOC_WATCH.
    pub watch: &'static str,
}

/// Of every report.
#[derive(Deserialize)]
struct Head {
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    mode: String,
}

/// How the runtime is loaded into a program.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// libthermalloc.so.
    pub library: PathBuf,
    /// THERMALLOC_MODE.
    pub mode: String,
    /// THERMALLOC_VIEW; `None`: as suits the mode.
    pub view: Option<&'static str>,
    /// THERMALLOC_BUDGET in percent; `None`: everything is seen all the time.
    pub budget: Option<u32>,
    /// What is watched; `None`: everything.
    pub scope: Option<Scope>,
    /// Where the report goes.
    pub report: PathBuf,
}

impl Monitor {
    /// Everything is watched, all the time; the report goes into `directory`.
    pub fn new(library: &Path, mode: &str, directory: &Path) -> Self {
        let report = directory.join("heat.json");
        Self { library: library.into(), mode: mode.into(), view: None, budget: None, scope: None, report }
    }

    /// The environment, as arguments of env(1).
    pub fn variables(&self) -> Vec<String> {
        let (access, watch) = self.scope.map_or(("rw", ""), |scope| (scope.access, scope.watch));
        let view = self.view.map(|view| format!("THERMALLOC_VIEW={view}"));
        let budget = self.budget.map(|percent| format!("THERMALLOC_BUDGET={percent}"));
        let mut variables = vec![
            format!("LD_PRELOAD={}", self.library.display()),
            format!("THERMALLOC_MODE={}", self.mode),
            format!("THERMALLOC_ACCESS={access}"),
            format!("THERMALLOC_WATCH={watch}"),
            format!("THERMALLOC_OUT={}", self.report.display()),
        ];
        variables.extend(view);
        variables.extend(budget);
        variables
    }

    /// Whether there will be a report.
    pub fn reports(&self) -> bool {
        self.mode != OFF
    }

    /// What one wants to know of the report of the program that has ended: it must be there, and tell of this mode.
    pub fn report<T: DeserializeOwned>(&self) -> Result<T, String> {
        let head: Head = self.read()?;
        let mode = head.config.mode;
        if mode == OFF || (self.mode != "auto" && mode != self.mode) {
            return Err(format!("the program ran in mode '{mode}' instead of '{}'", self.mode));
        }
        self.read()
    }

    /// Reports can be large, so they do not go into memory as they are.
    fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        let path = self.report.display();
        let file = File::open(&self.report).map_err(|e| format!("no report in {path}: {e}"))?;
        serde_json::from_reader(BufReader::new(file)).map_err(|e| format!("{path}: {e}"))
    }
}

/// Why the runtime cannot run in a mode here, if it cannot: a program is run in it, and must have the runtime loaded, and
/// leave a report that tells of this mode.
pub fn able(library: &Path, mode: &str) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let monitor = Monitor::new(library, mode, directory.path());
    let mut command = Command::new("env");
    command.args(monitor.variables()).args(["cat", "/proc/self/maps"]);
    let output = command.output().map_err(|e| format!("cannot run a program: {e}"))?;
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    let loaded = String::from_utf8_lossy(&output.stdout).contains(&*name);
    let errors = String::from_utf8_lossy(&output.stderr);
    let reported = !monitor.reports() || monitor.report::<IgnoredAny>().is_ok();
    if output.status.success() && loaded && reported {
        return Ok(());
    }
    Err(errors.lines().next().unwrap_or("the runtime is not loaded, or leaves no report").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_cannot_be_loaded_is_said() {
        let words = able(Path::new("/nonexistent/libthermalloc.so"), OFF).unwrap_err();
        assert!(words.contains("/nonexistent/libthermalloc.so"), "{words}");
    }

    #[test]
    fn a_report_of_another_mode_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let monitor = Monitor::new(Path::new("lib"), "patch", directory.path());
        assert!(monitor.report::<IgnoredAny>().unwrap_err().contains("no report"));
        std::fs::write(&monitor.report, r#"{"config": {"mode": "emulate"}}"#).unwrap();
        assert!(monitor.report::<IgnoredAny>().unwrap_err().contains("'emulate'"));
        std::fs::write(&monitor.report, r#"{"config": {"mode": "patch"}}"#).unwrap();
        assert!(monitor.report::<IgnoredAny>().is_ok());
    }
}
