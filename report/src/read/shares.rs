//! Estimates of parts that add up to the estimate of the whole.

/// Changes parts of a whole so that they are not more than it. If they are all of its parts
/// (`are_all`), they add up to it unless each of them is 0. No number is negative.
pub(super) fn fit(parts: &mut [i64], whole: i64, are_all: bool) {
    let sum: i128 = parts.iter().map(|part| i128::from(*part)).sum();
    if sum == i128::from(whole) || sum < i128::from(whole) && !are_all || sum == 0 {
        return;
    }
    // Sums are rounded, not parts, so that no error adds up.
    let (mut before, mut given) = (0, 0);
    for part in parts {
        before += i128::from(*part);
        let up_to = match before == sum {
            true => whole,
            false => (before as f64 / sum as f64 * whole as f64).round() as i64,
        };
        *part = up_to.clamp(given, whole) - given;
        given += *part;
    }
}

#[cfg(test)]
mod tests {
    use super::fit;
    use proptest::prelude::*;

    #[test]
    fn parts_add_up() {
        for (parts, whole, are_all, fitted) in [
            (&[1, 2][..], 3, false, &[1, 2][..]),
            (&[1, 2], 5, false, &[1, 2]),
            (&[1, 2], 6, true, &[2, 4]),
            (&[1, 1, 1], 2, false, &[1, 0, 1]),
            (&[7, 0, 7], 7, true, &[4, 0, 3]),
            (&[0, 0], 5, true, &[0, 0]),
            (&[3], 0, true, &[0]),
            (&[], 4, true, &[]),
        ] {
            let mut changed = parts.to_vec();
            fit(&mut changed, whole, are_all);
            assert_eq!(changed, fitted, "{parts:?} {whole}");
        }
    }

    proptest! {
        #[test]
        fn no_sum_is_more_than_the_whole(
            parts in proptest::collection::vec(0..=i64::MAX, 1..9), whole in 0..=i64::MAX
        ) {
            let mut changed = parts.clone();
            fit(&mut changed, whole, true);
            prop_assert!(changed.iter().all(|part| *part >= 0));
            let sum: i128 = changed.iter().map(|part| i128::from(*part)).sum();
            prop_assert!(sum == i128::from(whole) || parts.iter().all(|part| *part == 0));
        }
    }
}
