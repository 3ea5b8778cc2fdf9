//! Random programs: a body that runs several rounds, with jumps forward into straight-line code, inner loops,
//! and subroutines.
//!
//! Each line belongs to a group; leaving out any set of groups leaves a program that still ends, and that stays within
//! its memory unless the set-up of a pointer is left out. That is what shrinking needs. Group 0 always stays: labels, and
//! what sets counters up.

use super::expand::{Abilities, DEFINE_FLAGS, Expander};
use super::random::Random;
use super::registers::Roles;
use super::templates;
use std::mem;

/// A line of assembly; `@` stands for the program's number.
#[derive(Clone, Debug)]
pub struct Line {
    /// Lines of one group stay or go together; 0 stays.
    pub group: usize,
    /// One or several lines.
    pub text: String,
}

/// An object that the harness allocates for a program.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// Bytes.
    pub size: u64,
    /// Alignment; 1: the next object follows without a gap.
    pub align: u64,
}

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    /// What made it, and what its memory and registers are filled from.
    pub seed: u64,
    /// Whether its stack is its last object.
    pub stack_in_heap: bool,
    /// What the harness allocates.
    pub objects: Vec<Object>,
    /// All of it, subroutines included.
    pub lines: Vec<Line>,
}

/// Kinds of programs beside the common one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flavour {
    /// Faults that the program's handler sees.
    pub faults: bool,
}

impl Program {
    /// The program of a seed.
    pub fn random(seed: u64, abilities: &Abilities, flavour: Flavour) -> Program {
        let mut random = Random::new(seed);
        let random = &mut random;
        let (objects, ranges, stack_in_heap) = objects(random);
        let roles = Roles::new(random, &ranges);
        let mut writer = Writer {
            out: Expander {
                random,
                roles: &roles,
                abilities,
                wanted: Vec::new(),
                subroutines: Vec::new(),
                in_subroutine: false,
                labels: 0,
            },
            lines: Vec::new(),
            groups: 0,
            flavour,
        };
        writer.prologue(&roles, &ranges);
        writer.body(&roles);
        Program { seed, stack_in_heap, objects, lines: writer.lines }
    }

    /// Without some groups.
    pub fn without(&self, dropped: &[usize]) -> Program {
        let lines = self.lines.iter().filter(|line| !dropped.contains(&line.group)).cloned().collect();
        Program { lines, ..self.clone() }
    }

    /// The groups that can be left out.
    pub fn groups(&self) -> Vec<usize> {
        let mut groups: Vec<usize> =
            self.lines.iter().map(|line| line.group).filter(|&group| group != 0).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// Numbers of the objects in a program; the harness knows at most 8.
const EXACT: usize = 0;
const NEIGHBOUR: usize = 2;

/// The number of the object that serves as the stack.
pub const STACK: usize = 5;

type Range = (i64, i64, i64, i64);

/// The objects, and what the three pointers may reach.
fn objects(random: &mut Random) -> (Vec<Object>, Vec<Range>, bool) {
    let align = *random.pick(&[16, 16, 64, 256]);
    let size = *random.pick(&[64, 72, 95, 96, 100, 120, 200, 333, 512]);
    let twin = *random.pick(&[64, 90, 130, 300, 700]);
    let mut objects = vec![
        Object { size, align },
        Object { size: twin, align: 1 },
        Object { size: twin, align: 16 },
        Object { size: 400, align: 16 },
        Object { size: 3000 + random.below(2000) as u64, align: 16 },
    ];
    let stack_in_heap = random.chance(12);
    if stack_in_heap {
        objects.push(Object { size: 4000, align: 64 });
    }
    let offset = random.below(size as usize + 1) as i64;
    let exact = (-offset, size as i64 - offset, offset % 64, align.min(64) as i64);
    let border = (-(twin as i64), twin as i64, 0, 16);
    (objects, vec![exact, border, (-128, 256, 0, 16)], stack_in_heap)
}

struct Writer<'a> {
    out: Expander<'a>,
    lines: Vec<Line>,
    groups: usize,
    flavour: Flavour,
}

impl Writer<'_> {
    fn keep(&mut self, text: String) {
        self.lines.push(Line { group: 0, text });
    }

    fn group(&mut self, text: String) {
        self.groups += 1;
        self.lines.push(Line { group: self.groups, text });
    }

    fn prologue(&mut self, roles: &Roles, ranges: &[Range]) {
        let first = roles.data[0].name(64);
        for entry in 0..8 {
            let (place, offset) = match self.out.random.below(8) {
                0 => ("lea {}, [rip + oracle_globals]", 128 + 16 * self.out.random.below(200)),
                1 => ("lea {}, [rsp]", 128 + 16 * self.out.random.below(16)),
                2..5 => ("mov {}, [rip + oracle_objects + 24]", 128 + 16 * self.out.random.below(2)),
                _ => ("mov {}, [rip + oracle_objects + 32]", 128 + 16 * self.out.random.below(160)),
            };
            let lines = [
                place.replace("{}", &first),
                format!("lea {first}, [{first} + {offset}]"),
                format!("mov [rip + oracle_mixed + {}], {first}", entry * 8),
            ];
            self.group(lines.join("\n"));
        }
        let places = [
            ("oracle_objects", EXACT, -ranges[0].0),
            ("oracle_objects", NEIGHBOUR, 0),
            ("oracle_mixed", 0, 0),
        ];
        for (base, (table, entry, offset)) in roles.bases.iter().zip(places) {
            let name = base.register.name(64);
            self.group(format!(
                "mov {name}, [rip + {table} + {}]\nlea {name}, [{name} + {offset}]",
                entry * 8
            ));
        }
        let rounds = self.out.random.between(2, 5);
        self.keep(format!("mov {}, {rounds}", roles.rounds.name(64)));
        self.keep(format!("mov {}, 0", roles.turns.name(64)));
        let (index, number) = (self.out.random.between(-4, 4), self.out.random.below(1000));
        self.keep(format!("mov {}, {index}", roles.index.name(64)));
        self.keep(format!("mov {first}, {number}"));
    }

    fn body(&mut self, roles: &Roles) {
        let subroutines: Vec<String> = (0..self.out.random.below(4)).map(|_| self.out.label()).collect();
        self.out.subroutines = subroutines.clone();
        let top = self.out.label();
        self.keep(format!("{top}:"));
        let units = self.out.random.between(8, 40);
        self.units(units as usize, true);
        self.flush();
        // Flags and all stay as they are in the last round, for the comparison.
        self.keep(format!("lea {0}, [{0} - 1]", roles.rounds.name(64)));
        let (last, rounds) = (self.out.label(), roles.rounds.name(64));
        self.keep(format!("xchg rcx, {rounds}; jrcxz {last}; xchg rcx, {rounds}; jmp {top}"));
        self.keep(format!("{last}: xchg rcx, {rounds}; jmp oracle_leave"));
        for (at, name) in subroutines.iter().enumerate() {
            self.subroutine(name, &subroutines[at + 1..]);
        }
    }

    fn subroutine(&mut self, name: &str, later: &[String]) {
        self.out.subroutines = later.to_vec();
        self.out.in_subroutine = true;
        if self.out.random.chance(50) {
            self.keep(".p2align 4".to_owned());
        }
        self.keep(format!("{name}:"));
        if !self.out.abilities.flags_cross_calls {
            self.keep(DEFINE_FLAGS.to_owned());
        }
        let units = self.out.random.between(1, 8);
        self.units(units as usize, false);
        self.flush();
        let end = match later.first() {
            Some(next) if self.out.random.chance(40) => format!("jmp {next}"),
            _ => "ret".to_owned(),
        };
        self.keep(end);
    }

    fn units(&mut self, count: usize, loops: bool) {
        for _ in 0..count {
            if loops && self.out.random.chance(5) {
                self.inner_loop();
            } else {
                self.unit();
            }
            if !self.out.wanted.is_empty() && self.out.random.chance(30) {
                let label = self.out.wanted.remove(0);
                self.keep(format!("{label}:"));
            }
        }
    }

    /// Ends by a signed comparison, so that a jump into its middle cannot make it run long.
    fn inner_loop(&mut self) {
        self.groups += 1;
        let group = self.groups;
        let turns = self.out.roles.turns;
        let top = self.out.label();
        let count = self.out.random.between(1, 6);
        let narrow = turns.name(32);
        self.lines.push(Line { group, text: format!("mov {narrow}, {count}\n{top}:") });
        let units = self.out.random.between(1, 6);
        self.units(units as usize, false);
        let end = match self.out.random.below(3) {
            0 => format!("dec {narrow}\njg {top}"),
            1 => format!("sub {narrow}, 1\njg {top}"),
            _ => format!("lea {0}, [{0} - 1]\ntest {narrow}, {narrow}\njg {top}", turns.name(64)),
        };
        self.lines.push(Line { group, text: end });
    }

    fn unit(&mut self) {
        let (list, percent_of_faults) =
            (self.out.random.below(100), if self.flavour.faults { 20 } else { 0 });
        let templates = match list {
            _ if self.out.random.chance(percent_of_faults) => templates::FAULTS,
            0..58 => templates::INTEGER,
            58..76 => templates::VECTORS,
            76..81 => templates::STRINGS,
            81..93 => templates::CONTROL,
            93..98 => templates::POINTERS,
            _ => templates::SYSTEM,
        };
        let template = *self.out.random.pick(templates);
        if let Some(lines) = self.out.expand(template) {
            self.group(lines.join("\n"));
        }
    }

    fn flush(&mut self) {
        for label in mem::take(&mut self.out.wanted) {
            self.keep(format!("{label}:"));
        }
    }
}
