//! Text to trees.

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A number.
    Number(i64),
    /// A string in quotes.
    Text(String),
    /// A name.
    Name(String),
    /// What stands in parentheses.
    Call(Vec<Tree>),
}

impl Tree {
    /// Whether it calls a function of this name.
    pub fn is_call_of(&self, name: &str) -> bool {
        matches!(self, Self::Call(parts) if matches!(parts.first(), Some(Self::Name(first)) if first == name))
    }
}

/// All expressions of a text.
pub fn program(text: &str) -> Result<Vec<Tree>, String> {
    let mut tokens = tokens(text)?;
    tokens.reverse();
    let mut trees = Vec::new();
    while !tokens.is_empty() {
        trees.push(tree(&mut tokens)?);
    }
    Ok(trees)
}

/// Parentheses, names and numbers as they are; strings begin with their quote and have lost the one at their end.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' => 1,
            '"' => 1 + rest[1..].find('"').ok_or("a string has no end")?,
            _ => rest.find(|c: char| c.is_whitespace() || "()\"".contains(c)).unwrap_or(rest.len()),
        };
        tokens.push(rest[..length].to_owned());
        let after = if first == '"' { length + 1 } else { length };
        rest = rest[after..].trim_start();
    }
    Ok(tokens)
}

/// Takes one expression off the end of the reversed tokens.
fn tree(tokens: &mut Vec<String>) -> Result<Tree, String> {
    let token = tokens.pop().ok_or("an expression is missing")?;
    match token.as_str() {
        "(" => {
            let mut parts = Vec::new();
            while tokens.last().ok_or("a parenthesis is open")? != ")" {
                parts.push(tree(tokens)?);
            }
            tokens.pop();
            Ok(Tree::Call(parts))
        }
        ")" => Err("a parenthesis too many".into()),
        word => Ok(match (word.strip_prefix('"'), word.parse()) {
            (Some(text), _) => Tree::Text(text.to_owned()),
            (None, Ok(number)) => Tree::Number(number),
            (None, Err(_)) => Tree::Name(token),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_nest_and_strings_keep_their_spaces() {
        let name = |word: &str| Tree::Name(word.into());
        let inner = Tree::Call(vec![name("-"), Tree::Number(-3)]);
        let expected = Tree::Call(vec![name("f"), inner, Tree::Text("a (b".into())]);
        assert_eq!(program(" (f (- -3)\"a (b\") x").unwrap(), [expected, name("x")]);
    }

    #[test]
    fn what_is_not_closed_is_refused() {
        for text in ["(a", ")", "\"a"] {
            assert!(program(text).is_err(), "{text}");
        }
    }
}
