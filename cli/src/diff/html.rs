//! The comparison as one page that needs nothing else: a table to filter, search and sort.

use super::compare::{Change, Comparison, Kind, Run};
use crate::units::{bytes_with_unit, count, duration, heat};
use std::fmt::Write;
use thermalloc_format::Site;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// At most `n` sites of each kind; the unchanged are only counted.
pub fn html(comparison: &Comparison, n: usize) -> String {
    let mut page = String::new();
    let title = escape(&format!("{} against {}", comparison.new.path, comparison.old.path));
    // Nothing is loaded from anywhere, whatever names say.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n<meta name=viewport content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style></head><body>\n<h1>What changed</h1>\n"
    );
    page += &runs(comparison);
    for note in &comparison.notes {
        let _ = writeln!(page, "<p class=note>{}</p>", escape(note));
    }
    page += &filters(comparison, n);
    page += &table(comparison, n);
    let _ = write!(page, "<script>\n{SCRIPT}</script>\n</body></html>\n");
    page
}

fn runs(comparison: &Comparison) -> String {
    let row = |name: &str, run: &Run| {
        let totals = &run.totals;
        let cells = [
            run.path.clone(),
            duration(run.elapsed_ns),
            count(totals.reads),
            count(totals.writes),
            count(totals.allocs),
            bytes_with_unit(totals.bytes),
            bytes_with_unit(totals.peak_live_bytes),
            run.command.clone(),
        ];
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        format!("<tr><th scope=row>{name}</th>{cells}</tr>\n")
    };
    format!(
        "<table><thead><tr><th></th><th>report</th><th>time</th><th>reads</th><th>writes</th>\
         <th>allocations</th><th>allocated</th><th>peak</th><th>program</th></tr></thead><tbody>\n{}{}</tbody></table>\n",
        row("old", &comparison.old),
        row("new", &comparison.new)
    )
}

fn filters(comparison: &Comparison, n: usize) -> String {
    let mut text = String::from("<form id=filters>\n");
    for kind in Kind::ALL {
        let (word, all) = (kind.word(), comparison.of(kind).count());
        let _ = match (kind, all.min(n)) {
            (Kind::Unchanged, _) => writeln!(text, "<span>{all} {word}</span>"),
            (_, shown) if shown < all => {
                writeln!(
                    text,
                    "<label><input type=checkbox value={word} checked> {word} ({shown} of {all})</label>"
                )
            }
            _ => writeln!(text, "<label><input type=checkbox value={word} checked> {word} ({all})</label>"),
        };
    }
    let share = if comparison.relative { ", as shares of the run" } else { "" };
    let _ = writeln!(
        text,
        "<label>search <input type=search id=search></label>\n</form>\n<p>Compared: {}{share}; within {} % is unchanged. \
         Stacks are matched by functions and files.</p>",
        comparison.measure(),
        comparison.threshold_percent
    );
    text
}

fn table(comparison: &Comparison, n: usize) -> String {
    let mut text = String::from(
        "<table id=sites><thead><tr><th>change</th><th>old</th><th>new</th><th>difference</th><th>old acc/B</th>\
         <th>new acc/B</th><th>old bytes</th><th>new bytes</th><th>site</th></tr></thead><tbody>\n",
    );
    for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::Unchanged) {
        for change in comparison.of(kind).take(n) {
            text += &row(comparison, change);
        }
    }
    text + "</tbody></table>\n"
}

fn row(comparison: &Comparison, change: &Change) -> String {
    let shown = |value: f64| match comparison.relative {
        true => format!("{:.3} %", value * 100.0),
        false => count(value as u64),
    };
    let number = |value: f64, text: String| format!("<td data-value={value}>{text}</td>");
    let sign = if change.difference() < 0.0 { "-" } else { "+" };
    let difference = format!("{sign}{}", shown(change.difference().abs()));
    let (old, new) = (change.old.as_ref().map(|side| &side.sum), change.new.as_ref().map(|side| &side.sum));
    let per_byte = |site: Option<&Site>| match site {
        Some(site) if site.bytes > 0 => {
            let accesses = site.reads.saturating_add(site.writes);
            number(accesses as f64 / site.bytes as f64, escape(&heat(accesses, site.bytes)))
        }
        _ => number(0.0, "-".into()),
    };
    let bytes = |site: Option<&Site>| match site {
        Some(site) => number(site.bytes as f64, bytes_with_unit(site.bytes)),
        None => number(0.0, "-".into()),
    };
    let cells = [
        number(change.before(), shown(change.before())),
        number(change.after(), shown(change.after())),
        number(change.difference(), difference),
        per_byte(old),
        per_byte(new),
        bytes(old),
        bytes(new),
    ];
    let word = change.kind.word();
    format!("<tr class={word}><td>{word}</td>{}<td>{}</td></tr>\n", cells.concat(), site(change))
}

/// The function to show; the whole stack on demand.
fn site(change: &Change) -> String {
    let name = change.shown.as_ref().map_or_else(
        || "(unknown call stack)".to_owned(),
        |function| format!("{} {}", function.name, function.place()),
    );
    let step = |(function, file): (&str, &str)| {
        format!("<li>{} <small>{}</small></li>", escape(function), escape(file))
    };
    let steps: String = change.stack.steps.iter().map(|of| step((&of.function, &of.file))).collect();
    format!("<details><summary>{}</summary><ol>{steps}</ol></details>", escape(&name))
}

/// Text that is nothing but text, in an element or in a quoted attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
