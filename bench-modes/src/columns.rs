//! The ways to run a program, each a column of the table.

use std::path::Path;
use std::process::Command;
use thermalloc_bench::monitor;

/// What is done to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing.
    Native,
    /// It runs with the runtime, in a mode and, if so, on a budget in percent.
    Runtime(&'static str, Option<u32>),
    /// It runs in valgrind's DHAT.
    Dhat,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name in the results and on the command line.
    pub name: &'static str,
    /// Its name in the table.
    pub title: &'static str,
    /// What is done to the program.
    pub way: Way,
    /// Whether it is fast enough to be measured again and again.
    pub repeated: bool,
    /// Whether servers are measured too.
    pub servers: bool,
    /// Whether it is measured with twice the input, too, to tell its start from what comes after.
    pub steady: bool,
}

/// The column that all others are compared with.
pub const NATIVE: &str = "native";

const fn column(name: &'static str, title: &'static str, way: Way) -> Column {
    Column { name, title, way, repeated: true, servers: true, steady: false }
}

/// All columns, in the order of the results.
pub const COLUMNS: [Column; 6] = [
    Column { steady: true, ..column(NATIVE, "native", Way::Native) },
    column("off", "off", Way::Runtime("off", None)),
    Column { repeated: false, ..column("emulate", "emulate", Way::Runtime("emulate", None)) },
    Column { steady: true, ..column("patch", "patch", Way::Runtime("patch", None)) },
    column("budget-5", "patch --budget 5", Way::Runtime("patch", Some(5))),
    Column { repeated: false, servers: false, ..column("dhat", "valgrind --tool=dhat", Way::Dhat) },
];

impl Column {
    /// Whether the monitor writes a report.
    pub fn reports(&self) -> bool {
        matches!(self.way, Way::Runtime(mode, _) if mode != "off")
    }

    /// Why it cannot be measured here, if it cannot. `tool` is the `thermalloc` program.
    pub fn able(&self, library: &Path, tool: &Path) -> Result<(), String> {
        match self.way {
            Way::Native => Ok(()),
            Way::Runtime(mode, budget) => {
                monitor::able(library, mode)?;
                budget.map_or(Ok(()), |percent| budget_able(tool, mode, percent))
            }
            Way::Dhat => {
                let directory = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
                let mut command = Command::new("valgrind");
                let file = directory.path().join("dhat.json");
                command.arg("--tool=dhat").arg(format!("--dhat-out-file={}", file.display())).arg("true");
                succeeds(&mut command)
            }
        }
    }
}

/// The variable alone would not tell: a runtime that does not know it runs without.
fn budget_able(tool: &Path, mode: &str, percent: u32) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let mut command = Command::new(tool);
    command.args(["run", "--mode", mode, "--budget", &percent.to_string(), "-o"]);
    succeeds(command.arg(directory.path().join("heat.json")).args(["--", "true"]))
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("cannot run {program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let words = errors.lines().rfind(|line| !line.trim().is_empty());
    Err(words.map_or_else(|| format!("{program} fails ({})", output.status), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_comes_with_its_reason() {
        let words = budget_able(Path::new("/nonexistent/thermalloc"), "patch", 5).unwrap_err();
        assert!(words.contains("/nonexistent/thermalloc"), "{words}");
        let words =
            succeeds(Command::new("sh").args(["-c", "echo one >&2; echo why >&2; exit 2"])).unwrap_err();
        assert_eq!(words, "why");
        assert!(succeeds(Command::new("false").arg("x")).unwrap_err().contains("false fails"));
    }

    #[test]
    fn native_is_first_so_that_it_is_there_to_be_compared_with() {
        assert_eq!(COLUMNS[0].name, NATIVE);
        assert!(COLUMNS.iter().filter(|column| !column.reports()).count() == 3);
    }
}
