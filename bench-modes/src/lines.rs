//! What was measured of each program in each column, and what follows from it.

use crate::columns::{Column, NATIVE};
use crate::counted::Counted;
use crate::run::Run;
use thermalloc_bench::statistics::{Spread, geometric_mean, median};

/// A program in a column, with its runs or the reason why there are none.
pub struct Line {
    /// The program's name.
    pub program: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Whether it is a server, measured for each request.
    pub server: bool,
    /// The column.
    pub column: Column,
    /// Why it was not measured.
    pub skipped: Option<String>,
    /// What went wrong.
    pub failed: Option<String>,
    /// The runs.
    pub runs: Vec<Run>,
}

impl Line {
    /// Program and column.
    pub fn title(&self) -> String {
        format!("{} {}", self.program, self.column.title)
    }

    /// Whether there is something to be told of it.
    pub fn measured(&self) -> bool {
        !self.runs.is_empty() && self.failed.is_none()
    }

    /// Whether a run was stopped, so that times are lower bounds.
    pub fn stopped(&self) -> bool {
        self.runs.iter().any(|run| run.stopped)
    }

    /// Whether run number `number` is to be made.
    pub fn wants(&self, number: u32) -> bool {
        let over = self.skipped.is_some() || self.failed.is_some() || self.stopped();
        !over && (number == 1 || self.column.repeated)
    }

    /// A quantity of each run.
    pub fn values(&self, quantity: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs.iter().map(quantity).collect()
    }

    /// The median of a quantity.
    pub fn middle(&self, quantity: impl Fn(&Run) -> f64) -> f64 {
        median(&self.values(quantity))
    }

    /// A count of each run's report.
    pub fn counts(&self, count: impl Fn(&Counted) -> u64) -> Vec<u64> {
        self.runs.iter().filter_map(|run| run.counted.as_ref()).map(count).collect()
    }
}

/// All lines: programs in their order, and the columns of each in theirs.
pub struct Lines(pub Vec<Line>);

/// The geometric mean of a column's ratios over the programs that are no servers.
#[derive(Clone, Debug)]
pub struct Mean {
    /// The column.
    pub column: Column,
    /// Of processor time.
    pub cpu: f64,
    /// Of elapsed time.
    pub wall: f64,
    /// Whether a program was stopped, so that both are lower bounds.
    pub at_least: bool,
    /// Programs that it is of.
    pub of: Vec<&'static str>,
    /// Programs that could not be measured.
    pub without: Vec<&'static str>,
}

impl Lines {
    /// The line of a program in a column.
    pub fn line(&self, program: &str, column: &str) -> Option<&Line> {
        self.0.iter().find(|line| line.program == program && line.column.name == column)
    }

    /// A line's spread relative to native's median.
    pub fn ratio(&self, line: &Line, quantity: impl Fn(&Run) -> f64 + Copy) -> Option<Spread> {
        let native = self.line(line.program, NATIVE).filter(|line| line.measured())?;
        line.measured().then(|| Spread::of(&line.values(quantity)).over(native.middle(quantity)))
    }

    /// Programs, each once, servers or not.
    pub fn programs(&self, servers: bool) -> Vec<&Line> {
        self.0.iter().filter(|line| line.column.name == NATIVE && line.server == servers).collect()
    }

    /// The columns that were asked for.
    pub fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for line in &self.0 {
            if columns.iter().all(|column| column.name != line.column.name) {
                columns.push(line.column);
            }
        }
        columns.sort_by_key(|column| crate::columns::COLUMNS.iter().position(|c| c.name == column.name));
        columns
    }

    /// The mean of each column that has one; over all programs, or over those that have a heap.
    pub fn means(&self, heapless_too: bool) -> Vec<Mean> {
        let left_out = if heapless_too { Vec::new() } else { self.heapless() };
        self.columns().into_iter().filter_map(|column| self.mean(column, &left_out)).collect()
    }

    /// Programs of which a monitor says that they allocate nothing, so that there is nothing to be counted.
    pub fn heapless(&self) -> Vec<&'static str> {
        let told = |line: &&Line| line.runs.iter().any(|run| run.counted.is_some());
        let none = |line: &&Line| line.counts(|counted| counted.allocs).iter().all(|&allocs| allocs == 0);
        let mut names: Vec<&str> = self.0.iter().filter(told).filter(none).map(|line| line.program).collect();
        names.dedup();
        names
    }

    fn mean(&self, column: Column, left_out: &[&str]) -> Option<Mean> {
        let all = self.0.iter().filter(|line| line.column.name == column.name && !line.server);
        let all = all.filter(|line| !left_out.contains(&line.program));
        let (of, without): (Vec<&Line>, Vec<&Line>) = all.partition(|line| line.measured());
        let over = |quantity: fn(&Run) -> f64| {
            let ratios = of.iter().filter_map(|line| self.ratio(line, quantity));
            geometric_mean(&ratios.map(|spread| spread.median).collect::<Vec<f64>>())
        };
        let names = |lines: &[&Line]| lines.iter().map(|line| line.program).collect();
        (!of.is_empty()).then(|| Mean {
            column,
            cpu: over(|run| run.cpu_s),
            wall: over(|run| run.wall_s),
            at_least: of.iter().any(|line| line.stopped()),
            of: names(&of),
            without: names(&without),
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::columns::COLUMNS;

    /// A line of runs that took so much processor time, and twice as long.
    pub fn line(program: &'static str, column: usize, cpu: &[f64], stopped: bool) -> Line {
        let run = |&cpu_s: &f64| Run {
            cpu_s,
            wall_s: cpu_s * 2.0,
            peak_kib: 1024,
            stopped,
            requests: None,
            counted: COLUMNS[column].reports().then(|| Counted { allocs: 1, ..Counted::default() }),
        };
        let runs = cpu.iter().map(run).collect();
        let column = COLUMNS[column];
        Line { program, about: "", server: false, column, skipped: None, failed: None, runs }
    }

    /// Two programs: one is skipped natively everywhere but in `off`, one is stopped in `patch`.
    pub fn lines() -> Lines {
        Lines(vec![
            line("a", 0, &[1.0, 2.0, 4.0], false),
            line("a", 1, &[3.0, 2.0, 4.0], false),
            line("a", 3, &[8.0, 8.0, 8.0], false),
            line("b", 0, &[1.0, 1.0, 1.0], false),
            Line { failed: Some("differs".into()), ..line("b", 1, &[1.0], false) },
            line("b", 3, &[9.0], true),
            Line { skipped: Some("no budget".into()), ..line("b", 4, &[], false) },
        ])
    }

    #[test]
    fn ratios_are_of_medians() {
        let lines = lines();
        let ratio = |program, column| lines.ratio(lines.line(program, column)?, |run| run.cpu_s);
        assert_eq!(ratio("a", "off").unwrap(), Spread { min: 1.0, median: 1.5, max: 2.0 });
        assert!(ratio("b", "off").is_none() && ratio("b", "budget-5").is_none());
    }

    #[test]
    fn means_leave_out_what_failed_and_say_so() {
        let means = lines().means(true);
        let names: Vec<&str> = means.iter().map(|mean| mean.column.name).collect();
        assert_eq!(names, ["native", "off", "patch"]);
        assert!((means[1].cpu - 1.5).abs() < 1e-12 && !means[1].at_least);
        assert_eq!((means[1].of.as_slice(), means[1].without.as_slice()), (&["a"][..], &["b"][..]));
        assert!(
            (means[2].cpu - 6.0).abs() < 1e-12 && (means[2].wall - 6.0).abs() < 1e-12 && means[2].at_least
        );
    }

    #[test]
    fn a_mean_without_programs_that_have_no_heap() {
        let mut lines = lines();
        let last =
            lines.0.iter_mut().find(|line| line.program == "b" && line.column.name == "patch").unwrap();
        last.runs[0].counted = Some(Counted::default());
        assert_eq!(lines.heapless(), ["b"]);
        let means = lines.means(false);
        assert!((means[2].cpu - 4.0).abs() < 1e-12 && means[2].of == ["a"]);
    }

    #[test]
    fn what_was_stopped_or_has_failed_is_not_run_again() {
        let lines = lines();
        let wants = |program, column| lines.line(program, column).unwrap().wants(2);
        assert!(wants("a", "patch") && !wants("b", "patch") && !wants("b", "off") && !wants("b", "budget-5"));
        assert!(line("a", 2, &[], false).wants(1) && !line("a", 2, &[1.0], false).wants(2));
    }
}
