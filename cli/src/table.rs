//! Columns and text in a given width.

use crate::symbols::Function;
use std::env;
use std::fmt::Write;
use std::io::{IsTerminal, stdout};

/// Width where there is no terminal: wide enough for most names, and still readable in a log.
const WIDTH_OF_FILE: usize = 160;
/// No table is made narrower than this.
pub const LEAST_WIDTH: usize = 40;

/// Text narrower than this says too little: then a column goes instead.
const LEAST_TEXT: usize = 24;

/// Characters that fit on a line of stdout; the environment's `COLUMNS` overrides.
pub fn terminal_width() -> usize {
    let asked = env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&columns| columns > 0);
    let terminal = || {
        let size = stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        size.map(|(width, _)| usize::from(width.0)).filter(|&columns| columns > 0)
    };
    asked.or_else(terminal).unwrap_or(WIDTH_OF_FILE).max(LEAST_WIDTH)
}

/// A column of a table.
pub struct Column {
    /// What stands above it, with the unit.
    pub title: &'static str,
    /// Columns with a larger number go first where the terminal is narrow; 0: never.
    pub expendable: u8,
    /// Numbers stand at the right, text at the left.
    pub left: bool,
}

impl Column {
    /// A column of numbers.
    pub const fn new(title: &'static str, expendable: u8) -> Self {
        Self { title, expendable, left: false }
    }

    /// A column of text of about equal length.
    pub const fn text(title: &'static str, expendable: u8) -> Self {
        Self { title, expendable, left: true }
    }
}

/// A line of a table.
#[derive(Default)]
pub struct Row {
    /// One for each column.
    pub cells: Vec<String>,
    /// What stands last, in the rest of the width.
    pub label: Label,
    /// Lines below, indented.
    pub details: Vec<Label>,
}

/// Text of which the first part may be shortened, the second should not.
#[derive(Default)]
pub struct Label {
    /// Such as a function's name.
    pub name: String,
    /// Such as its line and module.
    pub place: String,
}

impl Label {
    /// `function file:line (module)`; the module only where the name does not say it. `None`: a call stack that is unknown.
    pub fn of(function: Option<&Function>) -> Self {
        let Some(function) = function else {
            return Self { name: "(unknown call stack)".into(), place: String::new() };
        };
        let place = match (function.file.is_empty(), function.known) {
            (_, false) => String::new(),
            (true, true) => format!("({})", function.module),
            (false, true) => format!("{} ({})", function.place(), function.module),
        };
        Self { name: function.name.clone(), place }
    }

    /// In at most `width` characters.
    fn fit(&self, width: usize) -> String {
        let (name, place) = (self.name.chars().count(), self.place.chars().count());
        if place == 0 || name + 1 + place <= width {
            return shorten(&format!("{} {}", self.name, self.place), width);
        }
        // The place keeps its length while it leaves the name half of the width.
        let for_name = width.saturating_sub(place + 1).max(width / 2);
        let short = shorten(&self.name, for_name);
        let rest = width.saturating_sub(short.chars().count() + 1);
        shorten(&format!("{short} {}", shorten(&self.place, rest)), width)
    }
}

/// The table as text; `label_title` stands above the labels, empty: there are none.
pub fn render(columns: Vec<Column>, label_title: &str, rows: &[Row], width: usize) -> String {
    let titles = Row {
        cells: columns.iter().map(|column| column.title.to_owned()).collect(),
        label: Label { name: label_title.into(), place: String::new() },
        details: Vec::new(),
    };
    let widths: Vec<usize> = (0..columns.len()).map(|index| width_of(index, &titles, rows)).collect();
    let least_label = if label_title.is_empty() { 0 } else { LEAST_TEXT };
    let kept = fitting(&columns, &widths, width.saturating_sub(least_label));
    let mut text = String::new();
    for row in std::iter::once(&titles).chain(rows) {
        let mut line = String::new();
        for &index in &kept {
            let (cell, width) = (row.cells.get(index).map_or("", String::as_str), widths[index]);
            let _ = match columns[index].left {
                true => write!(line, "{cell:<width$} "),
                false => write!(line, "{cell:>width$} "),
            };
        }
        line += &row.label.fit(width.saturating_sub(taken(&kept, &widths)));
        push_line(&mut text, &shorten(&line, width));
        for detail in &row.details {
            push_line(&mut text, &format!("    {}", detail.fit(width.saturating_sub(4))));
        }
    }
    text
}

/// Characters of the widest cell of a column.
fn width_of(index: usize, titles: &Row, rows: &[Row]) -> usize {
    let cells = std::iter::once(titles).chain(rows).filter_map(|row| row.cells.get(index));
    cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
}

/// Characters that columns take, with the space after each.
fn taken(kept: &[usize], widths: &[usize]) -> usize {
    kept.iter().map(|&index| widths[index] + 1).sum()
}

/// The columns that are left when expendable ones have gone until the rest fits.
fn fitting(columns: &[Column], widths: &[usize], width: usize) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    while taken(&kept, widths) > width {
        let worst = kept.iter().copied().max_by_key(|&index| columns[index].expendable);
        let Some(worst) = worst.filter(|&index| columns[index].expendable > 0) else { break };
        kept.retain(|&index| index != worst);
    }
    kept
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// At most `width` characters; an ellipsis stands for what is missing at the end.
pub fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        short.push('…');
    }
    short
}

/// Words in lines of at most `width` characters; the first begins with `label`, the others are indented as far.
pub fn wrap(label: &str, words: &str, width: usize) -> String {
    let indent = label.chars().count();
    let room = width.saturating_sub(indent).max(1);
    let mut text = String::new();
    let mut line = String::new();
    let mut flush = |line: &mut String, first: bool| {
        let margin = if first { label.to_owned() } else { " ".repeat(indent) };
        push_line(&mut text, &(margin + line));
        line.clear();
    };
    let mut first = true;
    for word in words.split_whitespace() {
        let word = shorten(word, room);
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            flush(&mut line, first);
            first = false;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += &word;
    }
    flush(&mut line, first);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_give_way_to_places() {
        let label = Label { name: "a_rather_long_function_name".into(), place: "main.c:7".into() };
        assert_eq!(label.fit(20), "a_rather_l… main.c:7");
        assert_eq!(label.fit(80), "a_rather_long_function_name main.c:7");
    }

    #[test]
    fn expendable_columns_go_first() {
        let columns = || vec![Column::new("reads", 0), Column::new("threads", 2), Column::new("objects", 1)];
        let titles = |width| render(columns(), "site", &[], width).trim_end().to_owned();
        assert_eq!(titles(80), "reads threads objects site");
        assert_eq!(titles(40), "reads objects site");
        assert_eq!(titles(20), "reads site");
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_the_terminal(
            cells in prop::collection::vec("\\PC{0,12}", 0..8),
            name in "\\PC{0,60}", place in "\\PC{0,30}", width in 0usize..100,
        ) {
            let columns = (0..8).map(|index| Column::new("title", index % 3)).collect();
            let details = vec![Label { name: name.clone(), place: place.clone() }];
            let row = Row { cells, label: Label { name, place }, details };
            let limit = width.max(4);
            for line in render(columns, "site", &[row], width).lines() {
                prop_assert!(line.chars().count() <= limit, "{line}");
            }
        }

        #[test]
        fn wrapped_lines_fit(words in "\\PC{0,200}", width in 10usize..60) {
            for line in wrap("label ", &words, width).lines() {
                prop_assert!(line.chars().count() <= width, "{line}");
            }
        }
    }
}
