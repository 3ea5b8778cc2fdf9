//! What expressions come to.

use std::fmt::{self, Display, Formatter};
use std::rc::Rc;

/// A value; strings and lists are shared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A number, which wraps around.
    Number(i64),
    /// A string.
    Text(Rc<str>),
    /// A list.
    List(Rc<Vec<Value>>),
}

impl Value {
    /// As a number.
    pub fn number(&self) -> Result<i64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            other => Err(format!("{other} is no number")),
        }
    }

    /// As a list.
    pub fn list(self) -> Result<Rc<Vec<Value>>, String> {
        match self {
            Self::List(items) => Ok(items),
            other => Err(format!("{other} is no list")),
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::List(items) => {
                f.write_str("(")?;
                items.iter().try_for_each(|item| write!(f, "{item} "))?;
                f.write_str(")")
            }
        }
    }
}
