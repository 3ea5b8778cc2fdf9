//! Columns, values, and who takes rows of them.

use crate::output::Stop;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Unsigned, 64 bits.
    Number,
    /// The same, or nothing.
    Optional,
    /// A fraction.
    Fraction,
    /// UTF-8.
    Text,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name: lower case, with the unit.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// A value of a column of the same kind.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// For [`Kind::Number`].
    Number(u64),
    /// For [`Kind::Optional`].
    Optional(Option<u64>),
    /// For [`Kind::Fraction`]; finite.
    Fraction(f64),
    /// For [`Kind::Text`].
    Text(&'a str),
}

/// Takes the rows of one table.
pub trait Rows {
    /// The values of all columns, in their order.
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), Stop>;

    /// After the last row.
    fn finish(self: Box<Self>) -> Result<(), Stop>;
}
