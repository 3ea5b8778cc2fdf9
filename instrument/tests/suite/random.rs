//! Random programs: what they print is the same plain and instrumented in each shape, and two shapes count alike.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::workshop::{SHAPES, Workshop, succeed};

const TYPES: [&str; 8] =
    ["signed char", "unsigned short", "int", "unsigned long", "double", "float", "unsigned char", "long"];
const FIELDS: usize = 8;

/// A program whose functions work on objects of the arena, of the stack and of the data segment.
struct Generator {
    random: ChaCha8Rng,
    text: String,
}

impl Generator {
    fn program(seed: u64) -> String {
        let mut generator = Generator { random: ChaCha8Rng::seed_from_u64(seed), text: String::new() };
        generator.declarations();
        for number in 0..6 {
            generator.function(number);
        }
        generator.main();
        generator.text
    }

    fn pick(&mut self, below: usize) -> usize {
        self.random.random_range(0..below)
    }

    fn declarations(&mut self) {
        self.text
            .push_str("#include \"mock.h\"\n#include <string.h>\nstruct object {\n  struct object *next;\n");
        for field in 0..FIELDS {
            let kind = TYPES[self.pick(TYPES.len())];
            let _ = writeln!(self.text, "  {kind} f{field};");
        }
        self.text
            .push_str("  unsigned b0 : 5, b1 : 11;\n  int array[16];\n};\nstatic struct object global;\n");
    }

    /// Something to read, as an integer, that no operation on it can overflow.
    fn value(&mut self) -> String {
        let (object, index) = (["a", "b", "a->next", "b->next"][self.pick(4)], self.pick(16));
        match self.pick(6) {
            0 => format!("(unsigned){object}->b{}", self.pick(2)),
            1 => format!("(unsigned){object}->array[{index}]"),
            2 => format!("(unsigned){object}->array[x & 15]"),
            3 => format!("{}u", self.random.random::<u16>()),
            4 => "x".to_owned(),
            _ => format!("(unsigned)((long){object}->f{} & 0xffff)", self.pick(FIELDS)),
        }
    }

    fn statement(&mut self, depth: usize) {
        let (value, other) = (self.value(), self.value());
        let (object, index) = (["a", "b", "a->next"][self.pick(3)], self.pick(16));
        let line = match self.pick(11) {
            0 => format!("{object}->f{} = ({value}) & 63;", self.pick(FIELDS)),
            1 => format!("{object}->array[{index}] = (int)(({value} + {other}) & 0xffffff);"),
            2 => format!("{object}->array[({value}) & 15] ^= 5;"),
            3 => format!("{object}->b{} = {value};", self.pick(2)),
            4 => format!("x = x * 31u + ({value});"),
            5 => format!("memset({object}->array + {}, {index}, {});", index / 2, self.pick(33)),
            6 => format!("memmove({object}->array, b->array + 4, 4 * ({value} % 9u));"),
            7 => format!("__atomic_fetch_add(&{object}->array[{index}], 3, __ATOMIC_RELAXED);"),
            8 if depth > 0 => return self.nested(&format!("if (({value}) > ({other}))"), depth),
            9 if depth > 0 => {
                return self.nested(&format!("for (unsigned i{depth} = 0; i{depth} < 5; i{depth}++)"), depth);
            }
            _ => format!("x ^= ({value}) / (({other}) | 1u);"),
        };
        let _ = writeln!(self.text, "  {line}");
    }

    fn nested(&mut self, head: &str, depth: usize) {
        let _ = writeln!(self.text, "  {head} {{");
        for _ in 0..self.random.random_range(1..4) {
            self.statement(depth - 1);
        }
        self.text.push_str("  }\n");
    }

    fn function(&mut self, number: usize) {
        let _ = writeln!(
            self.text,
            "__attribute__((noinline)) static unsigned g{number}(struct object *a, struct object *b, unsigned x) {{"
        );
        for _ in 0..12 {
            self.statement(2);
        }
        if number > 0 {
            let _ = writeln!(self.text, "  if (x % 3u) x += g{}(b, a->next, x);", number - 1);
        }
        self.text.push_str("  return x;\n}\n");
    }

    fn main(&mut self) {
        self.text.push_str(
            "int main(void) {
  struct object *o[6], local;
  memset(&local, 0, sizeof local);
  for (int i = 0; i < 4; i++) o[i] = mock_heap(sizeof(struct object));
  o[4] = &local; o[5] = &global;
  for (int i = 0; i < 6; i++) { o[i]->next = o[(i * 5 + 2) % 6]; o[i]->array[i] = i; }
  unsigned x = 1;
  for (int i = 0; i < 40; i++) {\n",
        );
        for number in 0..6 {
            let (a, b) = (self.pick(6), self.pick(6));
            let _ = writeln!(self.text, "    x ^= g{number}(o[(i + {a}) % 6], o[(i * {b} + 1) % 6], x);");
        }
        self.text.push_str("  }\n  unsigned sum = x;\n");
        self.text.push_str("  for (int i = 0; i < 6; i++) {\n    sum = sum * 31u + o[i]->b0 + o[i]->b1;\n");
        for field in 0..FIELDS {
            let _ = writeln!(self.text, "    sum = sum * 31u + (unsigned)((long)o[i]->f{field} & 0xffff);");
        }
        self.text
            .push_str("    for (int j = 0; j < 16; j++) sum = sum * 31u + (unsigned)o[i]->array[j];\n  }\n");
        self.text.push_str(
            "  printf(\"%u\\n\", sum);\n  if (getenv(\"DIGEST\")) printf(\"%lx\\n\", mock_digest());\n",
        );
        self.text.push_str("  return 0;\n}\n");
    }
}

/// How many programs; more by `THERMALLOC_RANDOM_PROGRAMS`, from the seed on that `THERMALLOC_RANDOM_SEED` gives.
fn programs() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number("THERMALLOC_RANDOM_SEED").unwrap_or(1);
    first..first + number("THERMALLOC_RANDOM_PROGRAMS").unwrap_or(4)
}

#[test]
fn random_programs_compute_the_same() {
    let workshop = Workshop::new();
    for seed in programs() {
        let source = workshop.path("random.c");
        fs::write(&source, Generator::program(seed)).expect("the folder takes files");
        for flags in ["-O0", "-O2"] {
            let plain = workshop.build_plain(flags, &source, "plain");
            let expected = succeed(Command::new(plain).env("MOCK_OPEN", "1"));
            let mut digests = Vec::new();
            for shape in SHAPES {
                let program = workshop.build(shape, flags, &source, "victim");
                // The view is shut: what is not redirected or wrapped dies.
                let printed = succeed(Command::new(&program).env("DIGEST", "1"));
                let (sum, digest) = printed.split_once('\n').expect("two lines");
                assert_eq!(format!("{sum}\n"), expected, "seed {seed} {shape} {flags}");
                digests.push(digest.to_owned());
                let idle = succeed(Command::new(&program).env("MOCK_OPEN", "1").env("MOCK_IDLE", "1"));
                assert_eq!(idle, expected, "seed {seed} {shape} {flags}, not attached");
            }
            assert_eq!(digests[0], digests[1], "seed {seed} {flags}: the shapes count differently");
            assert_ne!(digests[0], digests[2], "seed {seed} {flags}: nothing was counted");
        }
    }
}
