//! Larson's idea: a server whose threads die, and whose successors free what they left behind. Two
//! chains of threads run at once; each generation takes over the other chain's blocks.

use super::{Random, Workload, mixed_block};
use std::thread;

const LIVE: usize = 1000;
const GENERATIONS: u64 = 200;

/// What a dying thread leaves to its successor.
struct Post {
    slots: Vec<Vec<u8>>,
    random: Random,
}

impl Post {
    fn serve(&mut self, replacements: u64) {
        // The two posts lie side by side: what is written at every step must not be in them.
        let mut random = self.random.clone();
        for _ in 0..replacements {
            let at = random.below(LIVE);
            self.slots[at] = Vec::new();
            self.slots[at] = mixed_block(random.next() >> 20);
        }
        self.random = random;
    }
}

#[derive(Default)]
struct Larson(Vec<Post>);

impl Workload for Larson {
    fn name(&self) -> &'static str {
        "larson"
    }

    fn full(&self) -> u64 {
        16_000_000
    }

    fn prepare(&mut self) {
        let post = || Post { slots: vec![Vec::new(); LIVE], random: Random::new() };
        self.0 = vec![post(), post()];
    }

    fn run(&mut self, operations: u64) -> u64 {
        let replacements = operations.div_ceil(GENERATIONS * self.0.len() as u64);
        for _ in 0..GENERATIONS {
            thread::scope(|scope| {
                for post in &mut self.0 {
                    scope.spawn(|| post.serve(replacements));
                }
            });
            self.0.reverse();
        }
        replacements * GENERATIONS * self.0.len() as u64
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    vec![Box::new(Larson::default())]
}
