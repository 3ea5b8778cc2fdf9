//! The files that a benchmark writes: NAME.json, NAME.md, NAME.svg and NAME.png, and the JSON's common part.

use crate::{machine, picture};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The JSON object: where, when and how, and what was measured.
pub fn document(name: &str, flags: &str, command: &str, settings: Value, rows: Vec<Value>) -> Value {
    json!({
        "name": name,
        "commit": machine::output(&["git", "rev-parse", "HEAD"]),
        "date": machine::output(&["date", "-u", "+%Y-%m-%dT%H:%M:%SZ"]),
        "cpu": machine::cpu(),
        "cores": machine::cores(),
        "kernel": machine::output(&["uname", "-r"]),
        "flags": flags,
        "command": command,
        "settings": settings,
        "rows": rows,
    })
}

/// This program's command line, without the way to it.
pub fn command(program: &str) -> String {
    std::env::args().skip(1).fold(program.to_owned(), |line, word| line + " " + &word)
}

/// Writes the four files into `directory` and prints the page.
pub fn publish(
    directory: &Path,
    name: &str,
    document: &Value,
    page: &str,
    chart: &str,
) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
    let write = |extension: &str, text: &str| {
        let path = directory.join(name).with_extension(extension);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
    };
    write("json", &format!("{document:#}\n"))?;
    write("md", page)?;
    picture::write(&directory.join(name).with_extension("svg"), chart)?;
    println!("{page}");
    Ok(())
}
