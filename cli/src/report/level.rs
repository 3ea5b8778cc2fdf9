//! Numbers of any size in two characters, exact to about one percent: what strips and heat maps are made of.
//!
//! A value is stored as its binary logarithm in steps of 1/32, from 2^-40 on; zero stays zero. The page's `numbers.js` has the
//! inverse.

/// Digits of a number to the base 64. None needs an escape in JSON or HTML.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
/// Steps for each doubling.
const STEPS: f64 = 32.0;
/// The exponent of level 0 (level 1 is the first that is used).
const LOWEST: f64 = -40.0;
const HIGHEST: u16 = 4095;

/// Level 0 for what is not above zero, else 1 to 4095.
pub fn level(value: f64) -> u16 {
    if value > 0.0 {
        let steps = (value.log2() - LOWEST) * STEPS;
        (steps.round() as u16).clamp(1, HIGHEST)
    } else {
        0
    }
}

/// Two characters for each level.
pub fn encode(levels: impl IntoIterator<Item = u16>) -> String {
    let digit = |value: u16| char::from(DIGITS[usize::from(value % 64)]);
    levels.into_iter().flat_map(|level| [digit(level / 64), digit(level % 64)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(text: &str) -> f64 {
        let digit = |at: usize| DIGITS.iter().position(|&digit| digit == text.as_bytes()[at]).unwrap();
        let level = digit(0) * 64 + digit(1);
        if level == 0 { 0.0 } else { (level as f64 / STEPS + LOWEST).exp2() }
    }

    #[test]
    fn what_is_no_positive_number_is_zero() {
        for value in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(level(value), 0);
        }
        assert_eq!(level(f64::INFINITY), HIGHEST);
        assert_eq!(encode([0, 1, 4095]), "AAAB..");
    }

    proptest! {
        #[test]
        fn exact_to_about_a_percent(value in 1u64..) {
            let back = decode(&encode([level(value as f64)]));
            prop_assert!((back / value as f64 - 1.0).abs() < 0.011, "{value} {back}");
        }
    }
}
