//! Generated inputs, always the same for a size.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Words that text is made of, so that it can be compressed.
const WORDS: [&str; 24] = [
    "heap",
    "page",
    "object",
    "access",
    "read",
    "write",
    "counter",
    "fault",
    "signal",
    "the",
    "of",
    "and",
    "a",
    "to",
    "in",
    "thread",
    "kernel",
    "patched",
    "instruction",
    "granule",
    "memory",
    "shadow",
    "register",
    "chunk",
];

/// Marsaglia's xorshift, 64 bits.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Some words are more frequent than others.
    fn word(&mut self) -> &'static str {
        let most = self.below(WORDS.len() as u64) + 1;
        WORDS[self.below(most) as usize]
    }
}

/// Writes text of at least so many bytes: sentences with numbers among the words.
pub fn text(path: &Path, bytes: u64) -> io::Result<()> {
    let mut random = Random(0x1234_5678_9abc_def1);
    fill(path, bytes, |out| {
        let mut line = String::new();
        for _ in 0..8 + random.below(8) {
            line.push_str(random.word());
            line.push(' ');
        }
        line.push_str(&random.below(100_000).to_string());
        line.push('\n');
        out.write_all(line.as_bytes())?;
        Ok(line.len() as u64)
    })
}

/// Writes JSON objects, one a line, of at least so many bytes together.
pub fn json(path: &Path, bytes: u64) -> io::Result<()> {
    let mut random = Random(0x0fed_cba9_8765_4321);
    let mut id = 0;
    fill(path, bytes, |out| {
        id += 1;
        let tags: Vec<String> = (0..random.below(5)).map(|_| format!("\"{}\"", random.word())).collect();
        let line = format!(
            "{{\"id\": {id}, \"kind\": \"{}\", \"value\": {}, \"ratio\": 0.{}, \"tags\": [{}], \
             \"place\": {{\"x\": {}, \"y\": {}, \"name\": \"{} {}\"}}}}\n",
            random.word(),
            random.below(10_000),
            random.below(1000) + 1000,
            tags.join(", "),
            random.below(360),
            random.below(180),
            random.word(),
            random.word(),
        );
        out.write_all(line.as_bytes())?;
        Ok(line.len() as u64)
    })
}

fn fill(path: &Path, bytes: u64, mut piece: impl FnMut(&mut dyn Write) -> io::Result<u64>) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut written = 0;
    while written < bytes {
        written += piece(&mut out)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn inputs_have_their_size_and_are_always_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        for write in [text, json] {
            write(&place("a"), 10_000).unwrap();
            write(&place("b"), 10_000).unwrap();
            let (a, b) = (std::fs::read(place("a")).unwrap(), std::fs::read(place("b")).unwrap());
            assert!(a == b && (10_000..10_400).contains(&a.len()));
        }
    }

    #[test]
    fn each_line_is_an_object() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("json");
        json(&path, 5000).unwrap();
        let lines = std::fs::read_to_string(path).unwrap();
        let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(objects.len() > 10 && objects.iter().all(|object| object["value"].is_number()));
    }
}
