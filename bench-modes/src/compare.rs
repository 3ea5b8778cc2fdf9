//! Whether a program printed what it prints natively.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The first difference of two files, in words; `None` if there is none.
pub fn difference(expected: &Path, found: &Path) -> io::Result<Option<String>> {
    let (mut left, mut right) = (BufReader::new(File::open(expected)?), BufReader::new(File::open(found)?));
    let mut at = 0;
    loop {
        let (a, b) = (left.fill_buf()?, right.fill_buf()?);
        let common = a.len().min(b.len());
        if common == 0 {
            let words = match (a.is_empty(), b.is_empty()) {
                (true, true) => return Ok(None),
                (false, _) => "ends early",
                (true, _) => "goes on",
            };
            return Ok(Some(format!("its output {words}, after byte {at}")));
        }
        if let Some(place) = (0..common).find(|&i| a[i] != b[i]) {
            return Ok(Some(format!("its output differs from native's at byte {}", at + place)));
        }
        left.consume(common);
        right.consume(common);
        at += common;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let long = vec![7; 100_000];
        let a = file("a", &long);
        assert_eq!(difference(&a, &file("b", &long)).unwrap(), None);
        let mut other = long.clone();
        other[99_999] = 8;
        assert!(difference(&a, &file("b", &other)).unwrap().unwrap().ends_with("at byte 99999"));
        assert!(
            difference(&a, &file("b", &long[1..])).unwrap().unwrap().contains("ends early, after byte 99999")
        );
        assert!(difference(&file("b", b""), &a).unwrap().unwrap().contains("goes on, after byte 0"));
    }
}
