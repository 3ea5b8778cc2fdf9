//! Numbers as people read them: at most three significant digits and a suffix, at most six characters.

const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Below this, numbers are written in full.
const EXACT: u64 = 10_000;

/// A count, such as `9999` or `12.3M`.
pub fn count(value: u64) -> String {
    if value < EXACT { value.to_string() } else { scaled(value as f64, 1000.0, &DECIMAL) }
}

/// A number of bytes without its unit, such as `4096` or `1.5Mi`.
pub fn bytes(value: u64) -> String {
    if value < EXACT { value.to_string() } else { scaled(value as f64, 1024.0, &BINARY) }
}

/// A number of bytes with its unit, such as `4096 B` or `1.5 MiB`.
pub fn bytes_with_unit(value: u64) -> String {
    let text = bytes(value);
    let digits = text.trim_end_matches(char::is_alphabetic);
    format!("{digits} {}B", &text[digits.len()..])
}

/// Accesses for each byte; `None`: no bytes to relate them to.
pub fn heat(accesses: u64, bytes: u64) -> String {
    if bytes == 0 {
        return "-".into();
    }
    match accesses as f64 / bytes as f64 {
        0.0 => "0".into(),
        value if value < 0.001 => "<.001".into(),
        value if value < 0.995 => format!("{value:.3}"),
        value if value < EXACT as f64 => digits(value),
        value => scaled(value, 1000.0, &DECIMAL),
    }
}

/// A duration, such as `15.2 ms` or `3 min 20 s`.
pub fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", digits(ns as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", digits(ns as f64 / 1e6)),
        1_000_000_000..100_000_000_000 => format!("{} s", digits(ns as f64 / 1e9)),
        _ => format!("{} min {} s", ns / 60_000_000_000, ns / 1_000_000_000 % 60),
    }
}

fn scaled(mut value: f64, step: f64, suffixes: &[&str]) -> String {
    let mut suffix = 0;
    // 999.5 would be rounded to 1000.
    while value >= 999.5 && suffix + 1 < suffixes.len() {
        value /= step;
        suffix += 1;
    }
    digits(value) + suffixes[suffix]
}

fn digits(value: f64) -> String {
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples() {
        assert_eq!(count(9999), "9999");
        assert_eq!(count(10_000), "10.0k");
        assert_eq!(count(999_499), "999k");
        assert_eq!(count(999_500), "1.00M");
        assert_eq!(bytes(10_240), "10.0Ki");
        assert_eq!(bytes_with_unit(1 << 20), "1.00 MiB");
        assert_eq!(bytes_with_unit(12), "12 B");
        assert_eq!(heat(1, 0), "-");
        assert_eq!(heat(1, 2), "0.500");
        assert_eq!(heat(1, 1 << 40), "<.001");
        assert_eq!(duration(15_200_000), "15.2 ms");
        assert_eq!(duration(200_000_000_000), "3 min 20 s");
    }

    proptest! {
        #[test]
        fn narrow(value: u64, other: u64) {
            prop_assert!(count(value).len() <= 6, "{}", count(value));
            prop_assert!(bytes(value).len() <= 6, "{}", bytes(value));
            prop_assert!(heat(value, other).len() <= 6, "{}", heat(value, other));
        }
    }
}
