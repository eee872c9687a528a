//! Larson's idea: a server whose threads die, and whose successors free what they left behind. One
//! to 64 chains of threads run at once; each generation takes over the next chain's blocks.

use super::{Random, Workload, mixed_block};
use std::thread;

const LIVE: usize = 1000;
/// Of all chains together.
const THREADS: u64 = 400;

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

struct Larson {
    name: &'static str,
    chains: u64,
    posts: Vec<Post>,
}

impl Workload for Larson {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        16_000_000
    }

    fn prepare(&mut self) {
        let post = |chain| Post { slots: vec![Vec::new(); LIVE], random: Random::of(chain) };
        self.posts = (0..self.chains).map(post).collect();
    }

    fn run(&mut self, operations: u64) -> u64 {
        let replacements = operations.div_ceil(THREADS);
        let generations = THREADS / self.chains;
        for _ in 0..generations {
            thread::scope(|scope| {
                for post in &mut self.posts {
                    scope.spawn(|| post.serve(replacements));
                }
            });
            self.posts.rotate_left(1);
        }
        replacements * generations * self.chains
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    let row = |name, chains| -> Box<dyn Workload> {
        Box::new(Larson { name, chains, posts: Vec::new() })
    };
    vec![
        row("larson-1", 1),
        row("larson", 2),
        row("larson-4", 4),
        row("larson-16", 16),
        row("larson-64", 64),
    ]
}
