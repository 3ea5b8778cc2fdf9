//! Memory operands that stay within what a program may touch.

use super::random::Random;
use super::registers::{Base, Register, Roles};

/// Bytes around rsp that the body may use: the red zone, and its own frame.
const BODY: &[(i64, i64)] = &[(-128, 512)];
/// The same in a subroutine, where return addresses lie above rsp.
const SUBROUTINE: &[(i64, i64)] = &[(-128, 0), (128, 512)];
/// Size of `oracle_globals` in the harness.
const GLOBALS: i64 = 4096;
/// Size of `oracle_tls` in the harness.
const TLS: i64 = 256;
/// The index register lies between this and its negative.
const LARGEST_INDEX: i64 = 4;

/// A memory operand.
#[derive(Clone, Debug)]
pub struct Memory {
    /// As the assembler wants it.
    pub expression: String,
    /// Bytes.
    pub size: u32,
}

impl Memory {
    /// With its size in front.
    pub fn sized(&self) -> String {
        let size = match self.size {
            1 => "byte ptr ",
            2 => "word ptr ",
            4 => "dword ptr ",
            8 => "qword ptr ",
            10 => "tbyte ptr ",
            16 => "xmmword ptr ",
            32 => "ymmword ptr ",
            64 => "zmmword ptr ",
            other => panic!("no name for an operand of {other} bytes"),
        };
        format!("{size}{}", self.expression)
    }
}

/// Makes operands.
pub struct Operands<'a> {
    /// The program's random numbers.
    pub random: &'a mut Random,
    /// What its registers are for.
    pub roles: &'a Roles,
    /// Whether return addresses lie on the stack.
    pub in_subroutine: bool,
}

impl Operands<'_> {
    /// An operand of `size` bytes, naturally aligned if wanted. `old`: encodable without a REX prefix. `None` where
    /// nothing is found.
    pub fn memory(&mut self, size: u32, aligned: bool, old: bool) -> Option<Memory> {
        let align = if aligned { i64::from(size) } else { 1 };
        let bytes = i64::from(size);
        for _ in 0..8 {
            let expression = match self.random.below(100) {
                0..70 => self.based(bytes, align, old),
                // Subroutines run with another alignment than the body.
                70..82 if align <= 8 => {
                    let (low, high) = *self.random.pick(if self.in_subroutine { SUBROUTINE } else { BODY });
                    self.displaced("rsp", low, high, bytes, align, 0)
                }
                70..95 => self.displaced("rip + oracle_globals", 0, GLOBALS, bytes, align, 0),
                _ => self
                    .displaced("oracle_tls@tpoff", 0, TLS, bytes, align, 0)
                    .map(|expression| format!("fs:{expression}")),
            };
            if let Some(expression) = expression {
                return Some(Memory { expression, size });
            }
        }
        None
    }

    /// An address with `room` valid bytes before and behind it.
    pub fn with_room(&mut self, room: i64) -> Option<String> {
        match self.random.below(10) {
            0 => self.displaced("rsp", 128, 640, 2 * room, 1, 0).map(|inner| shifted(&inner, room)),
            1 => self
                .displaced("rip + oracle_globals", 0, GLOBALS, 2 * room, 1, 0)
                .map(|inner| shifted(&inner, room)),
            _ => {
                let bases = self.bases(|base| base.high - base.low >= 2 * room);
                let base = self.pick(&bases)?;
                let disp = self.random.between(base.low + room, base.high - room);
                Some(format!("[{} + {disp}]", base.register.name(64)))
            }
        }
    }

    /// A pointer with `room` valid bytes before and behind it.
    pub fn base_with_room(&mut self, room: i64) -> Option<Register> {
        let bases = self.bases(|base| base.low <= -room && base.high >= room);
        Some(self.pick(&bases)?.register)
    }

    fn bases(&self, fits: impl Fn(&Base) -> bool) -> Vec<Base> {
        self.roles.bases.iter().filter(|base| fits(base)).cloned().collect()
    }

    fn pick(&mut self, bases: &[Base]) -> Option<Base> {
        (!bases.is_empty()).then(|| self.random.pick(bases).clone())
    }

    fn based(&mut self, bytes: i64, align: i64, old: bool) -> Option<String> {
        let bases = self.bases(|base| {
            base.high - base.low >= bytes && align <= base.alignment && (!old || base.register.is_old())
        });
        let base = self.pick(&bases)?;
        let index_fits = !old || self.roles.index.is_old();
        if align == 1 && index_fits && self.random.chance(30) {
            return self.indexed(&base, bytes);
        }
        self.displaced(&base.register.name(64), base.low, base.high, bytes, align, base.offset)
    }

    fn indexed(&mut self, base: &Base, bytes: i64) -> Option<String> {
        let scale = *self.random.pick(&[1, 2, 4, 8]);
        let reach = LARGEST_INDEX * scale;
        let (low, high) = (base.low + reach, base.high - reach - bytes);
        if low > high {
            return None;
        }
        let disp = self.random.between(low, high);
        Some(format!("[{} + {}*{scale} + {disp}]", base.register.name(64), self.roles.index.name(64)))
    }

    /// `[name + d]` with `low <= d <= high - bytes` and `offset + d` a multiple of `align`. The ends come more often
    /// than others.
    fn displaced(
        &mut self,
        name: &str,
        low: i64,
        high: i64,
        bytes: i64,
        align: i64,
        offset: i64,
    ) -> Option<String> {
        let last = high - bytes;
        if low > last {
            return None;
        }
        let wanted = match self.random.below(10) {
            0 => low,
            1 => last,
            2..5 => self.random.between(low.max(-64), last.min(64).max(low.max(-64))).clamp(low, last),
            _ => self.random.between(low, last),
        };
        let aligned = wanted - (offset + wanted).rem_euclid(align);
        let disp = if aligned < low { aligned + align } else { aligned };
        (disp <= last).then(|| format!("[{name} + {disp}]"))
    }
}

fn shifted(expression: &str, by: i64) -> String {
    format!("{} + {by}]", expression.trim_end_matches(']'))
}
