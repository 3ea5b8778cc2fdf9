//! The page: template, styles, scripts and data in one file that refers to nothing else.

/// Where the parts go.
const TEMPLATE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/style.css");
/// In the order of their use of each other.
const SCRIPTS: [&str; 14] = [
    include_str!("assets/numbers.js"),
    include_str!("assets/dom.js"),
    include_str!("assets/colour.js"),
    include_str!("assets/model.js"),
    include_str!("assets/strip.js"),
    include_str!("assets/table.js"),
    include_str!("assets/overview.js"),
    include_str!("assets/heatmap.js"),
    include_str!("assets/curve.js"),
    include_str!("assets/flame.js"),
    include_str!("assets/sites.js"),
    include_str!("assets/classes.js"),
    include_str!("assets/objects.js"),
    include_str!("assets/main.js"),
];

/// Pages stay below this many bytes.
pub const LARGEST: usize = 4_900_000;

/// The page around some data, which is a JSON text.
pub fn page(data: &str) -> String {
    let scripts = SCRIPTS.join("\n");
    let mut page = String::with_capacity(data.len() + data.len() / 8 + scripts.len() + STYLE.len());
    let mut rest = TEMPLATE;
    // The data come last and are put in as they are: nothing in them is taken for a mark.
    for (mark, part) in [("/*STYLE*/", STYLE), ("/*SCRIPT*/", &scripts), ("/*DATA*/", &escaped(data))] {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(part);
        rest = after;
    }
    page + rest
}

/// Bytes of a page without data.
pub fn frame() -> usize {
    page("").len()
}

/// JSON that an HTML parser reads to its end: no `<` begins a tag or a comment in it. Only strings can hold these characters.
pub fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + json.len() / 16);
    for c in json.chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_every_mark_once_and_in_order() {
        let places = ["/*STYLE*/", "/*SCRIPT*/", "/*DATA*/"].map(|mark| {
            assert_eq!(TEMPLATE.matches(mark).count(), 1, "{mark}");
            TEMPLATE.find(mark).unwrap()
        });
        assert!(places.is_sorted());
    }

    #[test]
    fn data_cannot_end_their_element() {
        let hostile = r#"{"name":"</script><script>alert(1)</script><!--&"}"#;
        let page = page(hostile);
        assert_eq!(page.matches("</script").count(), self::page("{}").matches("</script").count());
        let back: serde_json::Value = serde_json::from_str(&escaped(hostile)).unwrap();
        assert_eq!(back, serde_json::from_str::<serde_json::Value>(hostile).unwrap());
    }

    #[test]
    fn nothing_is_fetched() {
        let page = page("{}");
        for word in ["http:", "https:", "src=", "@import", "url(", "innerHTML", "eval("] {
            let allowed =
                page.matches(word).count() == page.matches(&format!("{word}//www.w3.org/2000/svg")).count();
            assert!(allowed, "{word}");
        }
    }
}
