//! Names of functions, each kept once, and the call stacks of all sites in terms of them.

use crate::symbols::{Function, Stacks};
use crate::table::Label;
use serde::Serialize;
use std::collections::HashMap;
use thermalloc_format::Site;

/// Characters of a name at most: C++ templates have no limit of their own.
const LONGEST: usize = 240;

/// A function as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Name {
    /// Its name, or `module+0xoffset`.
    pub name: String,
    /// `file:line (module)`, as far as known.
    pub place: String,
}

/// A site's call stack.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Functions, innermost first, as indices into the names.
    pub functions: Vec<u32>,
    /// Which of them tells best what the site is; `None`: the stack is unknown.
    pub telling: Option<u32>,
}

/// All names.
#[derive(Default)]
pub struct Names {
    all: Vec<Name>,
    index: HashMap<Name, u32>,
    frames: HashMap<u32, Vec<u32>>,
}

impl Names {
    /// The call stack of a site.
    pub fn stack(&mut self, site: &Site, stacks: &mut Stacks<'_>) -> Stack {
        let mut functions = Vec::new();
        for &frame in &site.frames {
            if let Some(known) = self.frames.get(&frame) {
                functions.extend_from_slice(known);
                continue;
            }
            let resolved: Vec<u32> =
                stacks.frame(frame).iter().map(|function| self.intern(function)).collect();
            functions.extend_from_slice(&resolved);
            self.frames.insert(frame, resolved);
        }
        let telling = stacks.telling(site).map(|function| self.intern(function));
        Stack { functions, telling }
    }

    /// A name by its index.
    pub fn get(&self, index: u32) -> Option<&Name> {
        self.all.get(index as usize)
    }

    fn intern(&mut self, function: &Function) -> u32 {
        let name = named(function);
        if let Some(&index) = self.index.get(&name) {
            return index;
        }
        let index = self.all.len() as u32;
        self.all.push(name.clone());
        self.index.insert(name, index);
        index
    }
}

fn named(function: &Function) -> Name {
    let label = Label::of(Some(function));
    Name { name: text(&label.name), place: text(&label.place) }
}

/// Text from a file, fit for a page: of limited length, without characters that cannot be seen or that turn the order of
/// others.
pub fn text(raw: &str) -> String {
    let seen = |c: char| if is_unseen(c) { '\u{fffd}' } else { c };
    let mut text: String = raw.chars().take(LONGEST).map(seen).collect();
    if raw.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    text
}

fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Those names that a page uses, in order of first use.
pub struct Used<'a> {
    names: &'a Names,
    index: HashMap<u32, u32>,
    list: Vec<Name>,
}

impl<'a> Used<'a> {
    /// None yet.
    pub fn new(names: &'a Names) -> Self {
        Self { names, index: HashMap::new(), list: Vec::new() }
    }

    /// The index of a name in the page.
    pub fn index(&mut self, name: u32) -> u32 {
        *self.index.entry(name).or_insert_with(|| {
            let unknown = || Name { name: "(unknown)".into(), place: String::new() };
            self.list.push(self.names.get(name).cloned().unwrap_or_else(unknown));
            self.list.len() as u32 - 1
        })
    }

    /// The names, in the order of their indices.
    pub fn into_list(self) -> Vec<Name> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_text_round_is_replaced() {
        assert_eq!(text("a\u{202e}b\nc\u{200b}"), "a\u{fffd}b\u{fffd}c\u{fffd}");
        assert_eq!(text(&"é".repeat(300)).chars().count(), LONGEST + 1);
        assert_eq!(text("</script>"), "</script>");
    }
}
