//! An event: 200 tasks, each with strings and a buffer, that wait for something else, as for a
//! database, and then answer. The answers become one text. A few of them stay in a cache.

use lumalloc_bench_service::Random;
use std::sync::{Mutex, PoisonError};
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, sleep_until};

const TASKS: u64 = 200;
/// How long an event waits at least.
pub(crate) const WAIT: Duration = Duration::from_millis(60);
/// The answers of an event that stay, and how many the cache holds.
const KEPT: u64 = 16;
const CACHE: usize = 16_384;

/// Answers of earlier events. A new one takes the place of another, chosen at random.
pub(crate) struct Cache(Mutex<Vec<String>>);

impl Cache {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(vec![String::new(); CACHE]))
    }

    fn keep(&self, place: u64, answer: String) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut places[place as usize], answer);
        drop(places);
        drop(old);
    }
}

/// Handles the event with a number. Returns the length of its text.
pub(crate) async fn handle(number: u64, cache: &Cache) -> usize {
    let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let answered = Instant::now() + WAIT;
    let mut start = |_| tokio::spawn(task(random.below(u64::MAX) | 1, answered));
    let tasks: Vec<JoinHandle<String>> = (0..TASKS).map(&mut start).collect();
    let mut text = String::new();
    for (number, task) in tasks.into_iter().enumerate() {
        let Ok(answer) = task.await else { continue };
        text.push_str(&answer);
        if (number as u64) < KEPT {
            cache.keep(random.below(CACHE as u64), answer);
        }
    }
    text.len()
}

/// One task. Its buffer has 256 bytes to 4.5 KiB, short ones more often than long
/// ones.
async fn task(seed: u64, answered: Instant) -> String {
    let mut random = Random(seed);
    let words: Vec<String> = (0..4).map(|_| random.word(8, 120)).collect();
    let length = (256 << random.below(5)) + random.below(512) as usize;
    let mut buffer = vec![0_u8; length];
    sleep_until(answered).await;
    let text = words.join(" ");
    for piece in buffer.chunks_mut(text.len()) {
        piece.copy_from_slice(&text.as_bytes()[..piece.len()]);
    }
    let sum: u64 = buffer.iter().copied().map(u64::from).sum();
    format!("{sum} {text}")
}
