//! All that was measured, and what a column costs once it has started: the time for twice the input less the time for the input once, relative to the
//! same of native. What happens once in a process, as the patching of sites or the writing of a report, cancels out.

use crate::columns::NATIVE;
use crate::lines::{Line, Lines};

/// A program in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// The program's name.
    pub program: &'static str,
    /// The column's name.
    pub column: &'static str,
    /// Time of twice the input less that of the input once, in seconds.
    pub more_s: f64,
    /// Relative to native's.
    pub ratio: f64,
    /// What happens once, beyond what native does once, in seconds: what is left of the time for the input once. Of a program
    /// that takes more than twice as long for twice the input it is too little.
    pub once_s: f64,
}

/// Everything.
pub struct Measured {
    /// With the input once.
    pub lines: Lines,
    /// With the input twice: few columns, no servers; empty if it was not asked for.
    pub twice: Lines,
    /// Runs that were asked for.
    pub runs: u32,
    /// Resident memory in KiB below which a program's cannot be told.
    pub floor_kib: u64,
}

impl Measured {
    /// Of all lines that were measured with both inputs and were not stopped. Differences that are not above 0 tell nothing.
    pub fn steady(&self) -> Vec<Steady> {
        let middle = |lines: &Lines, program: &str, column: &str| {
            let line = lines.line(program, column)?;
            (line.measured() && !line.stopped()).then(|| line.middle(|run| run.cpu_s))
        };
        let more = |program: &str, column: &str| {
            let (once, twice) =
                (middle(&self.lines, program, column)?, middle(&self.twice, program, column)?);
            (twice > once).then_some((twice - once, once - (twice - once)))
        };
        let one = |program, column| {
            let ((more_s, rest), (native_more, native_rest)) =
                (more(program, column)?, more(program, NATIVE)?);
            Some(Steady { program, column, more_s, ratio: more_s / native_more, once_s: rest - native_rest })
        };
        let monitored = self.twice.0.iter().filter(|line| line.column.name != NATIVE);
        monitored.filter_map(|line| one(line.program, line.column.name)).collect()
    }

    /// What went wrong, by program and column.
    pub fn failures(&self) -> Vec<String> {
        let all = self.lines.0.iter().chain(&self.twice.0);
        all.filter(|line| line.failed.is_some()).map(Line::title).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::line;

    #[test]
    fn what_happens_once_cancels_out() {
        let (native, patch) = (0, 3);
        let once = Lines(vec![
            line("a", native, &[1.0], false),
            line("a", patch, &[5.0], false),
            line("b", native, &[1.0], false),
            line("b", patch, &[9.0], true),
        ]);
        let twice = Lines(vec![
            line("a", native, &[2.0], false),
            line("a", patch, &[6.5], false),
            line("b", native, &[2.0], false),
            line("b", patch, &[12.0], false),
        ]);
        let expected = Steady { program: "a", column: "patch", more_s: 1.5, ratio: 1.5, once_s: 3.5 };
        let mut measured = Measured { lines: once, twice, runs: 1, floor_kib: 0 };
        assert_eq!(measured.steady(), [expected]);
        std::mem::swap(&mut measured.lines, &mut measured.twice);
        assert!(measured.steady().is_empty());
    }
}
