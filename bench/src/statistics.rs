//! Order statistics and means.

/// The middle value; of an even number of values the mean of the two in the middle. NaN if there is none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Smallest, middle and largest value of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// Middle.
    pub median: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// Of some values.
    pub fn of(values: &[f64]) -> Self {
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { min, median: median(values), max }
    }

    /// Relative to a base.
    pub fn over(self, base: f64) -> Self {
        Self { min: self.min / base, median: self.median / base, max: self.max / base }
    }
}

/// The geometric mean of positive values. NaN if there is none.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// The ranks of values from 1 on; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = below as f64 + (group.len() as f64 + 1.0) / 2.0;
        group.iter().for_each(|&index| ranks[index] = rank);
        below += group.len();
    }
    ranks
}

/// Spearman's rank correlation: Pearson's of the ranks, so that ties are treated right. NaN if one side is constant.
pub fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    pearson(&ranks(&left), &ranks(&right))
}

fn pearson(left: &[f64], right: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a, b) = (mean(left), mean(right));
    let product = |x: &[f64], x_mean: f64, y: &[f64], y_mean: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - x_mean) * (y - y_mean)).sum()
    };
    product(left, a, right, b) / (product(left, a, left, a) * product(right, b, right, b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn spreads_and_means() {
        let spread = Spread::of(&[3.0, 1.0, 8.0]);
        assert_eq!(spread, Spread { min: 1.0, median: 3.0, max: 8.0 });
        assert_eq!(spread.over(2.0), Spread { min: 0.5, median: 1.5, max: 4.0 });
        assert!((geometric_mean(&[1.0, 2.0, 4.0]) - 2.0).abs() < 1e-12);
        assert!(geometric_mean(&[]).is_nan());
    }

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[10.0, 20.0, 10.0, 5.0]), [2.5, 4.0, 2.5, 1.0]);
    }

    #[test]
    fn a_worked_example() {
        // IQ and hours of television (Wikipedia, "Spearman's rank correlation coefficient"): -29/165.
        let iq = [106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0];
        let tv = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        let pairs: Vec<_> = iq.into_iter().zip(tv).collect();
        assert!((rank_correlation(&pairs) + 29.0 / 165.0).abs() < 1e-12);
    }

    #[test]
    fn constants_have_no_correlation() {
        assert!(rank_correlation(&[(1.0, 1.0), (1.0, 2.0)]).is_nan());
    }

    proptest! {
        #[test]
        fn only_the_order_matters(values in proptest::collection::vec(-1e6..1e6f64, 2..50)) {
            prop_assume!(values.iter().any(|v| *v != values[0]));
            let up: Vec<_> = values.iter().map(|v| (*v, v.cbrt() + 3.0)).collect();
            let down: Vec<_> = values.iter().map(|v| (*v, -v * 2.0)).collect();
            prop_assert!((rank_correlation(&up) - 1.0).abs() < 1e-9);
            prop_assert!((rank_correlation(&down) + 1.0).abs() < 1e-9);
        }
    }
}
