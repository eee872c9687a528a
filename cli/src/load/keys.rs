//! The keys that are asked for: few very often, most hardly ever.

use super::random::Random;

/// The number of keys.
pub(crate) const KEYS: usize = 20_000;
/// The usual exponent for caches.
const EXPONENT: f64 = 0.99;
const KINDS: [&str; 4] = ["user", "session", "item/picture", "cart"];

/// Ranks by Zipf's law. Rank n comes with a probability proportional to 1/n^0.99.
pub(crate) struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    /// Makes the table for this many ranks.
    pub(crate) fn new(ranks: usize) -> Self {
        let mut sum = 0.0;
        let weights = (1..=ranks).map(|rank| (rank as f64).powf(-EXPONENT));
        let cumulative = weights.map(|weight| {
            sum += weight;
            sum
        });
        Self { cumulative: cumulative.collect() }
    }

    /// Draws a rank, counted from 0.
    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        let (Some(total), last) = (self.cumulative.last(), self.cumulative.len() - 1) else {
            return 0;
        };
        let at = random.fraction() * total;
        self.cumulative.partition_point(|&sum| sum <= at).min(last)
    }
}

/// Appends the key of a rank, which is written behind `/kv/`.
pub(crate) fn push_key(path: &mut Vec<u8>, rank: usize) {
    use std::io::Write;
    let kind = KINDS[rank % KINDS.len()];
    // Writing to a vector cannot fail.
    let _ = write!(path, "{kind}/{:08x}", (rank as u32).wrapping_mul(0x9E37_79B1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_falls_with_the_rank() {
        let (zipf, mut random) = (Zipf::new(KEYS), Random::new(3, 0));
        let mut counts = vec![0u32; KEYS];
        for _ in 0..200_000 {
            counts[zipf.draw(&mut random)] += 1;
        }
        let part = |ranks: std::ops::Range<usize>| counts[ranks].iter().sum::<u32>();
        assert!(counts[0] > counts[9] && counts[9] > counts[99]);
        assert!(part(0..100) > part(100..1000));
        assert!(part(10_000..20_000) > 0);
    }

    #[test]
    fn keys_are_distinct_and_allowed() {
        let mut keys: Vec<_> = (0..KEYS)
            .map(|rank| {
                let mut key = Vec::new();
                push_key(&mut key, rank);
                String::from_utf8(key).unwrap()
            })
            .collect();
        assert!(keys.iter().all(|key| key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'/')));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), KEYS);
    }
}
