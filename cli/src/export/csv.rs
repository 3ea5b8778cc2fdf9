//! Comma-separated values as RFC 4180 has them, except that lines end in a line feed: a first line of names, numbers in full,
//! nothing for what is absent, quotes around text that needs them.

use super::table::{Column, Rows, Value};
use crate::output::Stop;
use std::io::{self, Write};

/// Writes each row at once.
pub struct Csv<W> {
    to: W,
}

impl<W: Write> Csv<W> {
    /// Writes the line of names.
    pub fn new(mut to: W, columns: &[Column]) -> io::Result<Self> {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        writeln!(to, "{}", names.join(","))?;
        Ok(Self { to })
    }

    fn value(&mut self, value: Value<'_>) -> io::Result<()> {
        match value {
            Value::Number(number) | Value::Optional(Some(number)) => write!(self.to, "{number}"),
            Value::Optional(None) => Ok(()),
            Value::Fraction(number) => write!(self.to, "{number}"),
            Value::Text(text) if text.contains([',', '"', '\n', '\r']) => {
                write!(self.to, "\"{}\"", text.replace('"', "\"\""))
            }
            Value::Text(text) => self.to.write_all(text.as_bytes()),
        }
    }
}

impl<W: Write> Rows for Csv<W> {
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), Stop> {
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.to.write_all(b",")?;
            }
            self.value(*value)?;
        }
        Ok(self.to.write_all(b"\n")?)
    }

    fn finish(mut self: Box<Self>) -> Result<(), Stop> {
        Ok(self.to.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Kind;
    use super::*;

    #[test]
    fn quotes_where_needed() {
        let column = |name| Column { name, kind: Kind::Text };
        let mut text = Vec::new();
        let mut csv = Csv::new(&mut text, &[column("a"), column("b"), column("c")]).unwrap();
        csv.row(&[Value::Text("x,\"y\"\n"), Value::Optional(None), Value::Number(u64::MAX)]).unwrap();
        csv.row(&[Value::Text("plain"), Value::Optional(Some(1)), Value::Fraction(0.5)]).unwrap();
        Box::new(csv).finish().unwrap();
        let expected = "a,b,c\n\"x,\"\"y\"\"\n\",,18446744073709551615\nplain,1,0.5\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
