//! The code around an access, as text of LLVM's intermediate language: one small function for each signature, which
//! LLVM then inlines. Text is easier to read and to check than calls that build it, and inlining splits blocks,
//! phis and line tables right.
//!
//! [`BINARY`] is what each executable or shared object holds once: the descriptor, the thread's bias, the constructor
//! and the slow paths. All of it is `linkonce_odr hidden`, so the linker keeps one copy and no runtime object is needed.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::access::Kind;
use crate::options::Shape;
use crate::pieces::Piece;

/// The parts that each binary holds once. `@SHAPE@` and `@NUMBER@` stand for the shape's name and number.
const BINARY: &str = include_str!("binary.ll");

/// The largest access that is counted inline, in bytes.
const INLINE: u64 = 16;

/// The helper functions that a module needs, by name.
pub struct Helpers {
    shape: Shape,
    texts: BTreeMap<String, String>,
}

impl Helpers {
    /// None yet.
    pub fn new(shape: Shape) -> Helpers {
        Helpers { shape, texts: BTreeMap::new() }
    }

    /// Names of all helpers that were asked for, to be inlined.
    pub fn names(&self) -> Vec<String> {
        self.texts.keys().cloned().collect()
    }

    /// The whole text to link into the module.
    pub fn text(&self) -> String {
        let mut text = BINARY.replace("@NUMBER@", &self.shape.number().to_string());
        self.texts.values().for_each(|helper| text.push_str(helper));
        text.replace("@SHAPE@", self.shape.name())
    }

    /// The helper that comes before accesses of `touched`, distances being from its argument, the pointer of the
    /// first. Its result: shape alias, the distance by which to move the pointers; otherwise what [`Helpers::close`] takes.
    pub fn open(&mut self, touched: &[(Kind, Piece)]) -> String {
        let mut name = format!("__thermalloc.{}.open", self.shape.name());
        if self.shape != Shape::PairOnly {
            for (kind, piece) in touched {
                let _ = write!(name, ".{}{}_{}", letter(*kind), piece.size, piece.offset);
            }
        }
        let shape = self.shape;
        self.add(name, |name| match shape {
            Shape::PairOnly => pair(name, "ptr %p"),
            _ => counted(shape, name, touched),
        })
    }

    /// The helper that comes before a memory intrinsic, with a pointer and a length as i64.
    pub fn range(&mut self, kind: Kind) -> String {
        let name = format!("__thermalloc.{}.range.{}", self.shape.name(), letter(kind));
        let shape = self.shape;
        self.add(name, |name| match shape {
            Shape::PairOnly => pair(name, "ptr %p, i64 %n"),
            Shape::Alias => ranged_alias(name, kind),
            Shape::Wrpkru => ranged_window(name, &[kind]),
        })
    }

    /// As [`Helpers::range`], with two pointers: written, read.
    pub fn copy(&mut self) -> String {
        let name = format!("__thermalloc.{}.copy", self.shape.name());
        let shape = self.shape;
        self.add(name, |name| match shape {
            Shape::PairOnly => pair(name, "ptr %p, ptr %q, i64 %n"),
            _ => ranged_window(name, &[Kind::Write, Kind::Read]),
        })
    }

    /// The helper that comes after the last access of a window, with what the first gave.
    pub fn close(&mut self) -> String {
        self.add("__thermalloc.close".to_owned(), close)
    }

    fn add(&mut self, name: String, text: impl FnOnce(&str) -> String) -> String {
        if !self.texts.contains_key(&name) {
            let text = text(&name);
            self.texts.insert(name.clone(), text);
        }
        name
    }
}

fn letter(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "r",
        Kind::Write => "w",
        Kind::Both => "rw",
    }
}

/// `%in{id}`: whether `pointer`, whose address becomes `%a{id}`, is inside.
fn inside(pointer: &str, id: &str) -> String {
    format!(
        "  %a{id} = ptrtoint ptr {pointer} to i64
  %base{id} = load i64, ptr getelementptr (%thermalloc.module, ptr @__thermalloc_module.@SHAPE@, i32 0, i32 2)
  %length{id} = load i64, ptr getelementptr (%thermalloc.module, ptr @__thermalloc_module.@SHAPE@, i32 0, i32 3)
  %off{id} = sub i64 %a{id}, %base{id}
  %in{id} = icmp ult i64 %off{id}, %length{id}\n"
    )
}

/// The window's opening; `%token`: what the register held, and bit 32 for having been here.
const OPEN_KEY: &str = r#"  %keys = call i32 asm sideeffect "rdpkru", "={ax},{cx},~{dx},~{dirflag},~{fpsr},~{flags}"(i32 0)
  %bits = load i32, ptr getelementptr (%thermalloc.module, ptr @__thermalloc_module.@SHAPE@, i32 0, i32 5)
  %closed = xor i32 %bits, -1
  %opened = and i32 %keys, %closed
  call void asm sideeffect "wrpkru", "{ax},{cx},{dx},~{memory},~{dirflag},~{fpsr},~{flags}"(i32 %opened, i32 0, i32 0)
  %wide = zext i32 %keys to i64
  %token = or i64 %wide, 4294967296
"#;

const DISPLACEMENT: &str = "  %token = load i64, ptr getelementptr (%thermalloc.module, ptr @__thermalloc_module.@SHAPE@, i32 0, i32 4)\n";

/// Counts each piece if the first is inside.
fn counted(shape: Shape, name: &str, touched: &[(Kind, Piece)]) -> String {
    let mut text =
        format!("\ndefine linkonce_odr hidden i64 @{name}(ptr %p) #0 {{\nentry:\n{}", inside("%p", ""));
    text.push_str("  br i1 %in, label %inside, label %end\ninside:\n");
    let inline = touched.iter().any(|(_, piece)| piece.size <= INLINE);
    if inline {
        text.push_str(
            "  %cell.0 = call ptr @llvm.threadlocal.address.p0(ptr @__thermalloc_bias)
  %bias.0 = load i64, ptr %cell.0
  %unbound = icmp eq i64 %bias.0, 0
  br i1 %unbound, label %bind, label %bound, !prof !0
bind:
  call preserve_mostcc void @__thermalloc_bind()
  %bias.1 = load i64, ptr %cell.0
  br label %bound
bound:
  %bias = phi i64 [ %bias.0, %inside ], [ %bias.1, %bind ]\n",
        );
    }
    for (number, (kind, piece)) in touched.iter().enumerate() {
        if piece.size <= INLINE {
            count(&mut text, number, *kind, *piece);
        } else {
            let (offset, size, kinds) = (piece.offset, piece.size, *kind as u32);
            let _ = writeln!(
                text,
                "  %a.{number} = add i64 %a, {offset}
  call preserve_mostcc void @__thermalloc_range(i64 %a.{number}, i64 {size}, i32 {kinds})"
            );
        }
    }
    text.push_str(if shape == Shape::Alias { DISPLACEMENT } else { OPEN_KEY });
    text.push_str("  br label %last\nlast:\n  br label %end\nend:\n");
    text.push_str("  %result = phi i64 [ 0, %entry ], [ %token, %last ]\n  ret i64 %result\n}\n");
    text
}

/// Counts one piece in its cell.
fn count(text: &mut String, number: usize, kind: Kind, piece: Piece) {
    let _ = writeln!(
        text,
        "  %a.{number} = add i64 %a, {}
  %granule.{number} = and i64 %a.{number}, -16
  %cell.{number}.0 = add i64 %bias, %granule.{number}",
        piece.offset
    );
    let mut step = 0;
    let counters: &[u32] = match kind {
        Kind::Read => &[0],
        Kind::Write => &[2],
        Kind::Both => &[0, 2],
    };
    for which in counters {
        bump(text, number, &mut step, *which, "incl $1", "z", "");
        let extra = piece.size as i64 - 8;
        if extra != 0 {
            bump(text, number, &mut step, which + 1, "addl $2, $1", "o", &format!(", i32 {extra}"));
        }
    }
}

/// One instruction on one counter of the cell, and the way out when its flag says that the counter ran over.
fn bump(text: &mut String, number: usize, step: &mut u32, which: u32, code: &str, flag: &str, operand: &str) {
    let id = format!("{number}.{step}");
    *step += 1;
    let immediate = if operand.is_empty() { "" } else { ",i" };
    let _ = writeln!(
        text,
        "  %at.{id} = add i64 %cell.{number}.0, {}
  %counter.{id} = inttoptr i64 %at.{id} to ptr
  %flag.{id} = call i8 asm sideeffect \"{code}\", \"={{@cc{flag}}},=*m{immediate},~{{dirflag}},~{{fpsr}},~{{flags}}\"(ptr elementtype(i32) %counter.{id}{operand})
  %over.{id} = icmp ne i8 %flag.{id}, 0
  br i1 %over.{id}, label %carry.{id}, label %next.{id}, !prof !0
carry.{id}:
  call preserve_mostcc void @__thermalloc_carry(i64 %cell.{number}.0, i32 {which})
  br label %next.{id}
next.{id}:",
        which * 4
    );
}

/// One pointer of a memory intrinsic: counted if inside; the result is how far to move it.
fn ranged_alias(name: &str, kind: Kind) -> String {
    let (check, kinds) = (inside("%p", ""), kind as u32);
    format!(
        "\ndefine linkonce_odr hidden i64 @{name}(ptr %p, i64 %n) #0 {{
entry:
{check}  br i1 %in, label %inside, label %end
inside:
  call preserve_mostcc void @__thermalloc_range(i64 %a, i64 %n, i32 {kinds})
{DISPLACEMENT}  br label %end
end:
  %result = phi i64 [ 0, %entry ], [ %token, %inside ]
  ret i64 %result
}}\n"
    )
}

/// The pointers of a memory intrinsic: one inside opens the window for all, so then all are counted (the runtime
/// charges what is watched).
fn ranged_window(name: &str, kinds: &[Kind]) -> String {
    let two = kinds.len() == 2;
    let (parameters, mut checks) =
        (if two { "ptr %p, ptr %q, i64 %n" } else { "ptr %p, i64 %n" }, inside("%p", "0"));
    if two {
        checks.push_str(&inside("%q", "1"));
        checks.push_str("  %in = or i1 %in0, %in1\n");
    } else {
        checks.push_str("  %in = or i1 %in0, false\n");
    }
    let range = |(number, kind): (usize, &Kind)| {
        format!(
            "  call preserve_mostcc void @__thermalloc_range(i64 %a{number}, i64 %n, i32 {})\n",
            *kind as u32
        )
    };
    let ranges: String = kinds.iter().enumerate().map(range).collect();
    format!(
        "\ndefine linkonce_odr hidden i64 @{name}({parameters}) #0 {{
entry:
{checks}  br i1 %in, label %inside, label %end
inside:
{ranges}{OPEN_KEY}  br label %end
end:
  %result = phi i64 [ 0, %entry ], [ %token, %inside ]
  ret i64 %result
}}\n"
    )
}

/// A window where the machine has protection keys, and nothing else.
fn pair(name: &str, parameters: &str) -> String {
    format!(
        "\ndefine linkonce_odr hidden i64 @{name}({parameters}) #0 {{
entry:
  %has = load i32, ptr getelementptr (%thermalloc.module, ptr @__thermalloc_module.@SHAPE@, i32 0, i32 6)
  %in = icmp ne i32 %has, 0
  br i1 %in, label %inside, label %end
inside:
{OPEN_KEY}  br label %end
end:
  %result = phi i64 [ 0, %entry ], [ %token, %inside ]
  ret i64 %result
}}\n"
    )
}

/// Gives the register back what it held, if the window was opened.
fn close(name: &str) -> String {
    format!(
        "\ndefine linkonce_odr hidden i64 @{name}(i64 %token) #0 {{
  %in = icmp ne i64 %token, 0
  br i1 %in, label %inside, label %end
inside:
  %keys = trunc i64 %token to i32
  call void asm sideeffect \"wrpkru\", \"{{ax}},{{cx}},{{dx}},~{{memory}},~{{dirflag}},~{{fpsr}},~{{flags}}\"(i32 %keys, i32 0, i32 0)
  br label %end
end:
  ret i64 0
}}\n"
    )
}
