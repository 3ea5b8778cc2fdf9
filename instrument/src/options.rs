//! What is instrumented, and how: the choices that the wrapper hands to the pass in two environment variables.

use std::fmt;

/// The variable that names the shape of the code.
pub const SHAPE_VARIABLE: &str = "THERMALLOC_CC_SHAPE";
/// The variable that names the source files to instrument, separated by commas; unset or empty: all.
pub const ONLY_VARIABLE: &str = "THERMALLOC_CC_ONLY";

/// How an instrumented access escapes the protection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The access goes to the alias view: no WRPKRU.
    #[default]
    Alias,
    /// A WRPKRU pair around each access inside the watched heap.
    Wrpkru,
    /// WRPKRU pairs around all accesses, and no monitoring: what the pairs alone cost.
    PairOnly,
}

impl Shape {
    /// The number in the module descriptor.
    pub fn number(self) -> u32 {
        match self {
            Shape::Alias => 1,
            Shape::Wrpkru => 2,
            Shape::PairOnly => 3,
        }
    }

    /// The name in options and variables.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Alias => "alias",
            Shape::Wrpkru => "wrpkru",
            Shape::PairOnly => "pair-only",
        }
    }

    /// The shape of that name.
    pub fn parse(name: &str) -> Result<Shape, BadShape> {
        [Shape::Alias, Shape::Wrpkru, Shape::PairOnly]
            .into_iter()
            .find(|shape| shape.name() == name)
            .ok_or_else(|| BadShape(name.to_owned()))
    }
}

/// A name that is no shape's.
#[derive(Debug, PartialEq, Eq)]
pub struct BadShape(String);

impl fmt::Display for BadShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shape '{}' is not known: use alias, wrpkru or pair-only", self.0)
    }
}

/// The choices for one compilation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The shape of every instrumented access.
    pub shape: Shape,
    only: Vec<String>,
}

impl Options {
    /// From the values of the two variables, where set.
    pub fn new(shape: Option<&str>, only: Option<&str>) -> Result<Options, BadShape> {
        let shape = match shape {
            None | Some("") => Shape::default(),
            Some(name) => Shape::parse(name)?,
        };
        let only = only.unwrap_or("").split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Options { shape, only: only.map(str::to_owned).collect() })
    }

    /// From the environment.
    pub fn from_env() -> Result<Options, BadShape> {
        let variable = |name| std::env::var(name).ok();
        Options::new(variable(SHAPE_VARIABLE).as_deref(), variable(ONLY_VARIABLE).as_deref())
    }

    /// Whether the source file at `path` is to be instrumented: without a list all are, otherwise those whose path
    /// ends with a name of the list, at a folder's border.
    pub fn selects(&self, path: &str) -> bool {
        let ends_with = |name: &String| {
            path.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        self.only.is_empty() || self.only.iter().any(ends_with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_by_name() {
        for shape in [Shape::Alias, Shape::Wrpkru, Shape::PairOnly] {
            assert_eq!(Shape::parse(shape.name()), Ok(shape));
        }
        assert_eq!(Options::new(None, None).map(|options| options.shape), Ok(Shape::Alias));
        let message = Shape::parse("wrpkr").map_err(|bad| bad.to_string());
        assert_eq!(message, Err("shape 'wrpkr' is not known: use alias, wrpkru or pair-only".to_owned()));
    }

    #[test]
    fn files_are_selected_by_whole_names() {
        let options = |only| Options::new(None, Some(only)).unwrap_or_default();
        assert!(options("").selects("src/items.c"));
        assert!(options("items.c,x.c").selects("items.c"));
        assert!(options("x.c, items.c").selects("/a/src/items.c"));
        assert!(options("src/items.c").selects("./src/items.c"));
        assert!(!options("items.c").selects("myitems.c"));
        assert!(!options("items.c").selects("items.cc"));
        assert!(!options("src/items.c").selects("items.c"));
    }
}
