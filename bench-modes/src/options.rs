//! The command line.

use clap::Parser;
use std::path::PathBuf;

/// What each mode costs on programs that nobody recompiled: results/modes.{json,md,svg,png}
#[derive(Debug, Parser)]
#[command(version)]
pub struct Options {
    /// Only these programs: sqlite3, perl, python3, jq, gzip, xz, c++, rust, memcached, redis
    #[arg(long, value_delimiter = ',')]
    pub programs: Vec<String>,
    /// Only these columns: native (always there), off, emulate, patch, budget-5, dhat
    #[arg(long, value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Interleaved runs of each program in each column; emulate and dhat run once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Factor of the inputs' sizes
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub scale: f64,
    /// Stop a program after so many seconds, and say that it takes longer
    #[arg(long, default_value_t = 120.0, value_parser = positive)]
    pub limit: f64,
    /// Load a server for so many seconds in a run
    #[arg(long, default_value_t = 4.0, value_parser = positive)]
    pub seconds: f64,
    /// Leave out the runs with twice the input, which tell a program's start from what comes after
    #[arg(long)]
    pub without_steady: bool,
    /// Where the results go
    #[arg(long, default_value = "results")]
    pub results: PathBuf,
    /// The runtime [default: libthermalloc.so beside this program]
    #[arg(long)]
    pub library: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok(number),
        _ => Err("expected a number above 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_must_be_above_0() {
        for bad in ["--scale=0", "--limit=-1", "--seconds=x", "--runs=0", "--scale=nan"] {
            assert!(Options::try_parse_from(["bench-modes", bad]).is_err(), "{bad}");
        }
        let options =
            Options::try_parse_from(["bench-modes", "--scale", "0.5", "--programs", "jq,c++"]).unwrap();
        assert_eq!((options.scale, options.programs.len()), (0.5, 2));
    }
}
