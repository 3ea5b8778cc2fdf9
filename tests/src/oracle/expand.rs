//! Turns templates into instructions of one program.

use super::operand::{Memory, Operands};
use super::random::Random;
use super::registers::{Register, Roles};
use std::collections::BTreeSet;
use std::{fs, mem};

/// What the machine and the place of the program allow.
#[derive(Clone, Debug)]
pub struct Abilities {
    /// Features by their names in /proc/cpuinfo; `low` if the program lies below 2 GiB.
    pub features: BTreeSet<String>,
    /// Templates that contain one of these are left out: what is known to fail hides what is not known yet.
    pub without: Vec<String>,
    /// Whether flags are live across calls and returns, which no compiler makes them.
    pub flags_cross_calls: bool,
}

impl Abilities {
    /// Those of this CPU.
    pub fn here() -> Abilities {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        Abilities {
            features: flags.split_whitespace().map(str::to_owned).collect(),
            without: Vec::new(),
            flags_cross_calls: true,
        }
    }
}

/// Gives all flags a value.
pub const DEFINE_FLAGS: &str = "cmp rsp, 0";

const WIDTHS: [u32; 4] = [8, 16, 32, 64];
const ALU: [&str; 8] = ["add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"];
/// Those that may be locked.
const LOCKABLE: [&str; 7] = ["add", "or", "adc", "sbb", "and", "sub", "xor"];
const SHIFTS: [&str; 7] = ["shl", "shr", "sar", "rol", "ror", "rcl", "rcr"];
const BIT_TESTS: [&str; 3] = ["bts", "btr", "btc"];
const CONDITIONS: [&str; 16] =
    ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];

/// Makes instructions for one program.
pub struct Expander<'a> {
    /// The program's random numbers.
    pub random: &'a mut Random,
    /// What its registers are for.
    pub roles: &'a Roles,
    /// What may be used.
    pub abilities: &'a Abilities,
    /// Labels that jumps need further on.
    pub wanted: Vec<String>,
    /// Subroutines that may be called here.
    pub subroutines: Vec<String>,
    /// Whether this is a subroutine.
    pub in_subroutine: bool,
    /// Numbers labels.
    pub labels: usize,
}

/// What holds for one instance of a template.
#[derive(Default)]
struct Instance {
    width: u32,
    high: bool,
    letters: Vec<Register>,
    vectors: Vec<usize>,
    memory: Option<Memory>,
    unique: Option<String>,
}

impl Expander<'_> {
    /// A new label's name. `@` becomes the number of the program.
    pub fn label(&mut self) -> String {
        self.labels += 1;
        format!("L@_{}", self.labels)
    }

    /// The lines of a template; `None` where it cannot be had in this program.
    pub fn expand(&mut self, template: &str) -> Option<Vec<String>> {
        let (needs, text) = template.split_once(" | ").unwrap_or(("", template));
        let least = self.least_width(needs)?;
        if self.abilities.without.iter().any(|unwanted| template.contains(unwanted)) {
            return None;
        }
        if text.contains("{s}") && self.subroutines.is_empty() {
            return None;
        }
        let widths: Vec<u32> = WIDTHS.into_iter().filter(|&width| width >= least).collect();
        let width = *self.random.pick(&widths);
        let mut instance = Instance { width, ..Instance::default() };
        instance.high = width == 8 && self.may_use_high(text) && self.random.chance(40);
        instance.high |= text.contains(" ah");
        instance.letters = self.roles.data.clone();
        instance.letters.retain(|register| !needs.split_whitespace().any(|need| need == register.name(64)));
        self.random.shuffle(&mut instance.letters);
        instance.vectors = (0..16).collect();
        self.random.shuffle(&mut instance.vectors);
        let wanted = self.wanted.len();
        let lines: Option<Vec<String>> =
            text.split(';').map(|line| self.line(line.trim(), &mut instance)).collect();
        if lines.is_none() {
            self.wanted.truncate(wanted);
        }
        let ends_flags = text.contains("{s}") && !self.abilities.flags_cross_calls;
        lines.map(|mut lines| {
            lines.extend(ends_flags.then(|| DEFINE_FLAGS.to_owned()));
            lines
        })
    }

    fn least_width(&self, needs: &str) -> Option<u32> {
        let mut least = 8;
        for need in needs.split_whitespace() {
            match (need, Register::named(need)) {
                ("w16", _) => least = 16,
                ("w32", _) => least = 32,
                (_, Some(register)) if self.roles.data.contains(&register) => {}
                (_, None) if self.abilities.features.contains(need) => {}
                _ => return None,
            }
        }
        Some(least)
    }

    /// ah..bh cannot be encoded together with what needs a REX prefix.
    fn may_use_high(&self, text: &str) -> bool {
        !text.contains("64}")
            && !text.contains("{q}")
            && self.roles.data.iter().any(|register| register.high().is_some())
    }

    fn line(&mut self, line: &str, instance: &mut Instance) -> Option<String> {
        let mut out = String::new();
        let mut rest = line;
        while let Some(start) = rest.find('{') {
            let end = start + rest[start..].find('}')?;
            out.push_str(&rest[..start]);
            let word = &rest[start + 1..end];
            match self.word(word, instance) {
                Some(text) => out.push_str(&text),
                None if is_literal(word) => out.push_str(&rest[start..=end]),
                None => return None,
            }
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        Some(self.finish(out, line))
    }

    /// Marks faulting lines; varies the encoding of others.
    fn finish(&mut self, out: String, template: &str) -> String {
        if template.starts_with("{F}") {
            let (at, behind) = (self.label(), self.label());
            let instruction = out.trim_start();
            return format!(
                "{at}: {instruction}\n{behind}: .pushsection .data.oracle_faults; .quad {at}, {behind}; .popsection"
            );
        }
        let plain =
            !out.starts_with(['.', 'j', 'L', '{']) && !out.starts_with("lock") && !out.starts_with("rep");
        if plain
            && template.contains("{m")
            && out.contains("[r")
            && !out.contains("[rip")
            && self.random.chance(12)
        {
            return format!("{{disp32}} {out}");
        }
        if out.starts_with('v') && self.random.chance(8) && !out.contains('{') && !out.contains("zmm") {
            return format!("{{vex3}} {out}");
        }
        out
    }

    fn word(&mut self, word: &str, instance: &mut Instance) -> Option<String> {
        let width = instance.width;
        Some(match word {
            "F" => String::new(),
            "r" => self.data(width, instance.high)?,
            "q" => Register(self.random.below(16) as u8).name(64),
            "acc" => Register::RAX.name(width),
            "m" => self.memory(width / 8, false, true, instance)?,
            "ma" => self.memory(width / 8, true, true, instance)?,
            "ms" => instance.memory.as_ref()?.sized(),
            "Ms" => instance.memory.as_ref()?.expression.clone(),
            "i" => self.immediate(width),
            "i8" => self.random.between(-128, 127).to_string(),
            "n" => self.random.below(64).to_string(),
            "count" => self.random.below(8).to_string(),
            "o" => (self.random.below(8) * 8).to_string(),
            "x" => format!("xmm{}", self.random.below(16)),
            "y" => format!("ymm{}", self.random.below(16)),
            "z" => format!("zmm{}", self.random.below(16)),
            "X" => format!("xmm{}", self.random.below(32)),
            "Y" => format!("ymm{}", self.random.below(32)),
            "Z" => format!("zmm{}", self.random.below(32)),
            "v0" | "v1" | "v2" => instance.vectors[usize::from(word.as_bytes()[1] - b'0')].to_string(),
            "k" => format!("k{}", self.random.between(1, 7)),
            "mask" => format!("{{k{}}}", self.random.between(1, 7)),
            "zero" => "{z}".to_owned(),
            "cc" => (*self.random.pick(&CONDITIONS)).to_owned(),
            "alu" => (*self.random.pick(&ALU)).to_owned(),
            "lalu" => (*self.random.pick(&LOCKABLE)).to_owned(),
            "sh" => (*self.random.pick(&SHIFTS)).to_owned(),
            "bt" => (*self.random.pick(&BIT_TESTS)).to_owned(),
            "l" => self.forward(),
            "u" => self.unique(instance),
            "s" => self.random.pick(&self.subroutines.clone()).clone(),
            "table2" | "table4" | "offsets4" => self.table(word, instance),
            "mixed" => self.mixed(),
            "reindex" => format!("mov {}, {}", self.roles.index.name(64), self.random.between(-4, 4)),
            "base128" => self.operands().base_with_room(128)?.name(64),
            _ => return self.numbered(word, instance),
        })
    }

    /// Words that end in a number: registers, memory.
    fn numbered(&mut self, word: &str, instance: &mut Instance) -> Option<String> {
        let aligned = word.ends_with('a');
        let digits = word.trim_start_matches(char::is_alphabetic).trim_end_matches('a');
        let number: u32 = digits.parse().ok()?;
        let letters = &word[..word.find(digits)?];
        Some(match letters {
            "r" => self.data(number, false)?,
            "a" | "b" | "c" => instance.letters.get(usize::from(letters.as_bytes()[0] - b'a'))?.name(number),
            "idx" => self.roles.index.name(number),
            "rounds" => self.roles.rounds.name(number),
            "m" => self.memory(number, aligned, true, instance)?,
            "M" => self.memory(number, aligned, false, instance)?,
            "P" => self.operands().with_room(i64::from(number))?,
            _ => return None,
        })
    }

    fn operands(&mut self) -> Operands<'_> {
        Operands { random: self.random, roles: self.roles, in_subroutine: self.in_subroutine }
    }

    fn memory(&mut self, size: u32, aligned: bool, sized: bool, instance: &mut Instance) -> Option<String> {
        let memory = self.operands().memory(size, aligned, instance.high)?;
        let text = if sized { memory.sized() } else { memory.expression.clone() };
        instance.memory = Some(memory);
        Some(text)
    }

    fn data(&mut self, width: u32, high: bool) -> Option<String> {
        if !high {
            return Some(self.random.pick(&self.roles.data).name(width));
        }
        let old: Vec<Register> =
            self.roles.data.iter().copied().filter(|register| register.high().is_some()).collect();
        let register = *self.random.pick(&old);
        Some(if self.random.chance(70) { register.high()?.to_owned() } else { register.name(8) })
    }

    fn immediate(&mut self, width: u32) -> String {
        let wide = width > 8 && self.random.chance(40);
        let bits = if wide { width.min(32) } else { 8 };
        let most = (1i64 << (bits - 1)) - 1;
        self.random.between(-most - 1, most).to_string()
    }

    fn forward(&mut self) -> String {
        // Several jumps to one label make it a better entry.
        if !self.wanted.is_empty() && self.random.chance(25) {
            return self.random.pick(&self.wanted.clone()).clone();
        }
        let label = self.label();
        self.wanted.push(label.clone());
        label
    }

    fn unique(&mut self, instance: &mut Instance) -> String {
        let known = mem::take(&mut instance.unique);
        let label = known.unwrap_or_else(|| self.label());
        instance.unique = Some(label.clone());
        label
    }

    fn table(&mut self, word: &str, instance: &mut Instance) -> String {
        let name = self.unique(instance);
        let count = if word == "table2" { 2 } else { 4 };
        let labels: Vec<String> = (0..count).map(|_| self.forward()).collect();
        let entries: Vec<String> = match word {
            "offsets4" => labels.iter().map(|label| format!("{label} - {name}")).collect(),
            _ => labels,
        };
        let directive = if word == "offsets4" { ".long" } else { ".quad" };
        format!(
            ".pushsection .data.rel.ro; .p2align 3; {name}: {directive} {}; .popsection",
            entries.join(", ")
        )
    }

    fn mixed(&mut self) -> String {
        let register = self.roles.bases[self.roles.bases.len() - 1].register.name(64);
        format!("mov {register}, qword ptr [rip + oracle_mixed + {}]", self.random.below(8) * 8)
    }
}

/// Braces that are the assembler's own.
fn is_literal(word: &str) -> bool {
    word.starts_with("1to") || word.starts_with('k')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::templates::{CONTROL, FAULTS, INTEGER, POINTERS, STRINGS, SYSTEM, VECTORS};

    /// Every feature that a template may ask for.
    fn all_abilities() -> Abilities {
        let lists = [CONTROL, FAULTS, INTEGER, POINTERS, STRINGS, SYSTEM, VECTORS];
        let needs = lists.into_iter().flatten().filter_map(|template| template.split_once(" | "));
        let words = needs.flat_map(|(needs, _)| needs.split_whitespace());
        let features = words.filter(|word| Register::named(word).is_none() && !word.starts_with('w'));
        Abilities {
            features: features.map(str::to_owned).collect(),
            without: Vec::new(),
            flags_cross_calls: true,
        }
    }

    fn expand(template: &str, seed: u64, abilities: &Abilities) -> Option<Vec<String>> {
        let mut random = Random::new(seed);
        let ranges = [(-20, 44, 20, 64), (-300, 300, 0, 16), (-128, 256, 0, 16)];
        let roles = Roles::new(&mut random, &ranges);
        let subroutines = vec!["sub".to_owned()];
        let random = &mut random;
        let (wanted, labels) = (Vec::new(), 0);
        let mut expander =
            Expander { random, roles: &roles, abilities, wanted, subroutines, in_subroutine: false, labels };
        expander.expand(template)
    }

    #[test]
    fn every_template_makes_instructions() {
        let abilities = all_abilities();
        for template in [CONTROL, FAULTS, INTEGER, POINTERS, STRINGS, SYSTEM, VECTORS].into_iter().flatten() {
            let lines = (0..2000).find_map(|seed| expand(template, seed, &abilities));
            let lines = lines.unwrap_or_else(|| panic!("`{template}` is never possible"));
            assert!(lines.iter().all(|line| !line.is_empty()), "`{template}` makes {lines:?}");
        }
    }

    #[test]
    fn what_the_cpu_lacks_is_left_out() {
        let none = Abilities { features: BTreeSet::new(), without: Vec::new(), flags_cross_calls: true };
        assert!((0..200).all(|seed| expand("avx | vzeroupper", seed, &none).is_none()));
    }

    #[test]
    fn pointers_and_counters_are_never_written() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let roles = Roles::new(&mut random, &[(0, 64, 0, 16), (0, 64, 0, 16), (0, 64, 0, 16)]);
            let bases = roles.bases.iter().map(|base| base.register);
            let kept: Vec<Register> =
                bases.chain([roles.rounds, roles.turns, roles.index, Register::RSP]).collect();
            assert!(kept.iter().all(|register| !roles.data.contains(register)));
            assert_eq!(kept.len() + roles.data.len(), 16);
        }
    }
}
