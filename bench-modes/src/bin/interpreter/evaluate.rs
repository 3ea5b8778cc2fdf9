//! Trees to values.

use crate::parse::Tree;
use crate::value::Value;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

/// Hashed alike in every run, so that every run does the same.
type Names<T> = HashMap<String, T, BuildHasherDefault<DefaultHasher>>;

/// A function of the program.
struct Function {
    parameters: Vec<String>,
    body: Tree,
}

/// Functions and counts outlive what defines them.
#[derive(Default)]
pub struct Interpreter {
    functions: Names<Rc<Function>>,
    counts: BTreeMap<String, i64>,
}

impl Interpreter {
    /// Evaluates an expression outside all functions.
    pub fn evaluate(&mut self, tree: &Tree) -> Result<Value, String> {
        self.value(tree, &Names::default())
    }

    /// What `add!` has counted.
    pub fn counts(&self) -> &BTreeMap<String, i64> {
        &self.counts
    }

    fn value(&mut self, tree: &Tree, variables: &Names<Value>) -> Result<Value, String> {
        match tree {
            Tree::Number(number) => Ok(Value::Number(*number)),
            Tree::Text(text) => Ok(Value::Text(text.as_str().into())),
            Tree::Name(name) => variables.get(name).cloned().ok_or_else(|| format!("no variable {name}")),
            Tree::Call(parts) => match parts.split_first() {
                Some((Tree::Name(name), rest)) => self.call(name, rest, variables),
                _ => Err("a call needs a name".into()),
            },
        }
    }

    fn call(&mut self, name: &str, parts: &[Tree], variables: &Names<Value>) -> Result<Value, String> {
        match (name, parts) {
            ("define", [Tree::Call(head), body]) => self.define(head, body),
            ("if", [condition, yes, no]) => {
                let branch = if self.value(condition, variables)?.number()? != 0 { yes } else { no };
                self.value(branch, variables)
            }
            _ => {
                let arguments = parts.iter().map(|part| self.value(part, variables));
                let arguments = arguments.collect::<Result<Vec<Value>, String>>()?;
                match self.functions.get(name).cloned() {
                    Some(function) => self.apply(&function, arguments),
                    None => self.builtin(name, arguments),
                }
            }
        }
    }

    fn define(&mut self, head: &[Tree], body: &Tree) -> Result<Value, String> {
        let names = head.iter().map(|part| match part {
            Tree::Name(name) => Ok(name.clone()),
            _ => Err("a definition needs names".to_owned()),
        });
        let mut names = names.collect::<Result<Vec<String>, String>>()?.into_iter();
        let name = names.next().ok_or("a definition needs a name")?;
        let function = Function { parameters: names.collect(), body: body.clone() };
        self.functions.insert(name, Rc::new(function));
        Ok(Value::Number(0))
    }

    fn apply(&mut self, function: &Function, arguments: Vec<Value>) -> Result<Value, String> {
        let variables: Names<Value> = function.parameters.iter().cloned().zip(arguments).collect();
        self.value(&function.body, &variables)
    }

    fn builtin(&mut self, name: &str, mut arguments: Vec<Value>) -> Result<Value, String> {
        if let ("list", items) | ("do" | "print", items @ [.., _]) = (name, arguments.as_slice()) {
            let last = if name == "list" { None } else { items.last().cloned() };
            return Ok(last.unwrap_or_else(|| Value::List(Rc::new(items.to_vec()))));
        }
        let second = arguments.get(1).cloned();
        let first = arguments.drain(..).next().ok_or_else(|| format!("{name} needs an argument"))?;
        match (name, second) {
            ("text", None) => Ok(Value::Text(first.to_string().into())),
            ("sort", None) => {
                let mut items = first.list()?;
                Rc::make_mut(&mut items).sort();
                Ok(Value::List(items))
            }
            ("concat", Some(second)) => Ok(Value::Text(format!("{first}{second}").into())),
            ("push", Some(second)) => {
                let mut items = first.list()?;
                Rc::make_mut(&mut items).push(second);
                Ok(Value::List(items))
            }
            ("at", Some(second)) => {
                let at = usize::try_from(second.number()?).map_err(|_| "a place below 0".to_owned())?;
                first.list()?.get(at).cloned().ok_or_else(|| format!("no item {at}"))
            }
            ("add!", Some(second)) => {
                let count = self.counts.entry(first.to_string()).or_default();
                *count += second.number()?;
                Ok(Value::Number(*count))
            }
            (_, Some(second)) => arithmetic(name, first.number()?, second.number()?).map(Value::Number),
            _ => Err(format!("no function {name} of one argument")),
        }
    }
}

fn arithmetic(name: &str, a: i64, b: i64) -> Result<i64, String> {
    match (name, b) {
        ("+", _) => Ok(a.wrapping_add(b)),
        ("-", _) => Ok(a.wrapping_sub(b)),
        ("*", _) => Ok(a.wrapping_mul(b)),
        ("div" | "mod", 0) => Err("a division by 0".into()),
        ("div", _) => Ok(a.wrapping_div(b)),
        ("mod", _) => Ok(a.wrapping_rem(b)),
        ("<", _) => Ok(i64::from(a < b)),
        _ => Err(format!("no function {name} of two arguments")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn last(text: &str) -> Result<String, String> {
        let mut interpreter = Interpreter::default();
        let mut value = Err("no expression".to_owned());
        for tree in parse::program(text).unwrap() {
            value = interpreter.evaluate(&tree);
        }
        value.map(|value| value.to_string())
    }

    #[test]
    fn functions_call_themselves() {
        let text = "(define (fac n) (if (< n 2) 1 (* n (fac (- n 1))))) (fac 10)";
        assert_eq!(last(text).unwrap(), "3628800");
    }

    #[test]
    fn lists_are_values() {
        assert_eq!(last("(sort (push (push (list 3) 1) 2))").unwrap(), "(1 2 3 )");
        assert_eq!(last("(at (list \"a\" \"b\") 1)").unwrap(), "b");
        assert!(last("(at (list) 0)").is_err() && last("(mod 1 0)").is_err() && last("(none 1 2)").is_err());
    }

    #[test]
    fn the_last_count_is_what_add_comes_to() {
        assert_eq!(last("(add! \"x\" 2) (add! \"x\" 3)").unwrap(), "5");
    }
}
