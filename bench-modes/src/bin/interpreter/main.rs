//! A Rust program as others are, for `bench-modes`: an interpreter of a small Lisp, over Box, Rc, Vec, String, HashMap and
//! BTreeMap, with the system's allocator. It runs a program of its own; the argument says how much work that is. Modules, lowest
//! first:
//!
//! - [`value`]: what expressions come to.
//! - [`parse`]: text to trees.
//! - [`evaluate`]: trees to values.

mod evaluate;
mod parse;
mod value;

use evaluate::Interpreter;
use std::process::ExitCode;

/// Counts words in a map, sorts by insertion into lists, and calls functions recursively.
const PROGRAM: &str = r#"
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (random seed) (mod (+ (* seed 1103515245) 12345) 2147483648))
(define (word seed) (concat "word" (text (mod (div seed 256) 997))))
(define (count-words n seed)
  (if (< n 1) seed
    (do (add! (word seed) 1) (count-words (- n 1) (random seed)))))
(define (rounds n seed)
  (if (< n 1) seed (rounds (- n 1) (count-words 200 seed))))
(define (numbers n seed)
  (if (< n 1) (list) (push (numbers (- n 1) (random seed)) (mod seed 1000))))
(define (total items n)
  (if (< n 1) 0 (+ (at items (- n 1)) (total items (- n 1)))))
(print (fib 15))
(print (rounds 10 12345))
(print (total (sort (numbers 200 7)) 200))
(print (at (sort (numbers 200 7)) 100))
"#;

fn run(rounds: u32) -> Result<(), String> {
    let mut interpreter = Interpreter::default();
    for round in 1..=rounds {
        // Parsed anew each time: a parser's allocations are among what is measured.
        for tree in parse::program(PROGRAM)? {
            let value = interpreter.evaluate(&tree)?;
            if round == rounds && tree.is_call_of("print") {
                println!("{value}");
            }
        }
    }
    for (word, count) in interpreter.counts() {
        println!("{word} {count}");
    }
    Ok(())
}

fn main() -> ExitCode {
    let Some(rounds) = std::env::args().nth(1).and_then(|word| word.parse().ok()) else {
        eprintln!("interpreter: say how many rounds");
        return ExitCode::from(2);
    };
    match run(rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("interpreter: {words}");
            ExitCode::from(1)
        }
    }
}
