//! Values in shards, bounded in memory and in time.
//!
//! Each shard is a map and a queue of its keys in the order of writing. All values live equally
//! long. Therefore the front of the queue is the next value to expire, and the first to be dropped
//! when a shard exceeds its part of the bound. A key that is written again leaves a stale place in
//! the queue, which the stamp shows. The queue is rebuilt when most of it is stale.

use std::collections::hash_map::{Entry, RandomState};
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

const SHARDS: usize = 16;
/// Bytes that an entry is charged for map and queue, besides the value and two copies of the key.
const OVERHEAD: usize = 128;

/// The store, which all connections share.
pub(crate) struct Store {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    bound: usize,
    ttl: Duration,
}

/// The contents of the store in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Number of values.
    pub(crate) entries: usize,
    /// Bytes that the values are charged.
    pub(crate) bytes: usize,
}

#[derive(Default)]
struct Shard {
    map: HashMap<String, Value>,
    queue: VecDeque<(u64, String)>,
    stamp: u64,
    bytes: usize,
}

struct Value {
    bytes: Bytes,
    stamp: u64,
    expires: Instant,
}

impl Store {
    /// Makes an empty store for about `bound` bytes, whose values live for `ttl`.
    pub(crate) fn new(bound: usize, ttl: Duration) -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        Self { shards, hasher: RandomState::new(), bound: bound / SHARDS, ttl }
    }

    /// Returns the value, if it is there and not too old.
    pub(crate) fn get(&self, key: &str, now: Instant) -> Option<Bytes> {
        let shard = self.shard(key);
        shard.map.get(key).filter(|value| value.expires > now).map(|value| value.bytes.clone())
    }

    /// Stores the value. Returns whether one was there. The oldest values are dropped to make room.
    pub(crate) fn put(&self, key: &str, bytes: Bytes, now: Instant) -> bool {
        let mut shard = self.shard(key);
        shard.expire(now);
        let replaced = shard.insert(key, bytes, now + self.ttl);
        while shard.bytes > self.bound && shard.drop_oldest() {}
        replaced
    }

    /// Removes the value. Returns whether there was one.
    pub(crate) fn delete(&self, key: &str, now: Instant) -> bool {
        let mut shard = self.shard(key);
        shard.expire(now);
        let Some(value) = shard.map.remove(key) else { return false };
        shard.bytes -= cost(key, &value.bytes);
        true
    }

    /// Returns at most `limit` keys with this prefix, in order.
    pub(crate) fn list(&self, prefix: &str, limit: usize, now: Instant) -> Vec<String> {
        let mut keys = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let live = shard.map.iter().filter(|(_, value)| value.expires > now);
            keys.extend(live.map(|(key, _)| key).filter(|key| key.starts_with(prefix)).cloned());
        }
        keys.sort_unstable();
        keys.truncate(limit);
        keys
    }

    /// Drops everything that is too old.
    pub(crate) fn sweep(&self, now: Instant) {
        for shard in &self.shards {
            lock(shard).expire(now);
        }
    }

    /// Returns the current contents in numbers.
    pub(crate) fn usage(&self) -> Usage {
        self.shards.iter().map(lock).fold(Usage::default(), |sum, shard| Usage {
            entries: sum.entries + shard.map.len(),
            bytes: sum.bytes + shard.bytes,
        })
    }

    fn shard(&self, key: &str) -> MutexGuard<'_, Shard> {
        // The map hashes with other keys, so its buckets do not suffer from this choice.
        lock(&self.shards[self.hasher.hash_one(key) as usize % SHARDS])
    }
}

/// Locks a shard. No operation leaves a shard half changed, so a panic elsewhere does not spoil it.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cost(key: &str, bytes: &Bytes) -> usize {
    OVERHEAD + 2 * key.len() + bytes.len()
}

impl Shard {
    fn insert(&mut self, key: &str, bytes: Bytes, expires: Instant) -> bool {
        self.stamp += 1;
        self.bytes += cost(key, &bytes);
        self.queue.push_back((self.stamp, key.to_owned()));
        let value = Value { bytes, stamp: self.stamp, expires };
        let old = match self.map.entry(key.to_owned()) {
            Entry::Occupied(mut place) => Some(place.insert(value)),
            Entry::Vacant(place) => {
                place.insert(value);
                None
            }
        };
        if let Some(old) = &old {
            self.bytes -= cost(key, &old.bytes);
        }
        if self.queue.len() > 2 * self.map.len() + 64 {
            self.forget_stale_places();
        }
        old.is_some()
    }

    /// Removes the front of the queue, and its value unless the place is stale. `false` if it is
    /// empty.
    fn drop_oldest(&mut self) -> bool {
        let Some((stamp, key)) = self.queue.pop_front() else { return false };
        if self.map.get(&key).is_some_and(|value| value.stamp == stamp)
            && let Some(value) = self.map.remove(&key)
        {
            self.bytes -= cost(&key, &value.bytes);
        }
        true
    }

    fn expire(&mut self, now: Instant) {
        while let Some((stamp, key)) = self.queue.front() {
            let value = self.map.get(key).filter(|value| value.stamp == *stamp);
            if value.is_some_and(|value| value.expires > now) {
                return;
            }
            self.drop_oldest();
        }
    }

    fn forget_stale_places(&mut self) {
        let map = &self.map;
        self.queue.retain(|(stamp, key)| map.get(key).is_some_and(|value| value.stamp == *stamp));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[derive(Debug, Clone)]
    enum Step {
        Put(u8, usize),
        Get(u8),
        Delete(u8),
        List(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (any::<u8>(), 0..5000usize).prop_map(|(key, size)| Step::Put(key % 40, size)),
            4 => any::<u8>().prop_map(|key| Step::Get(key % 40)),
            2 => any::<u8>().prop_map(|key| Step::Delete(key % 40)),
            1 => any::<u8>().prop_map(|digit| Step::List(digit % 10)),
        ];
        proptest::collection::vec(step, 0..400)
    }

    fn name(key: u8) -> String {
        format!("k/{key}")
    }

    fn filled(key: u8, size: usize) -> Bytes {
        Bytes::from(vec![key; size])
    }

    proptest! {
        #[test]
        fn unbounded_it_is_a_hash_map(steps in steps()) {
            let (store, now) = (Store::new(1 << 30, HOUR), Instant::now());
            let mut model = HashMap::new();
            for step in steps {
                match step {
                    Step::Put(key, size) => {
                        let old = model.insert(name(key), filled(key, size));
                        let replaced = store.put(&name(key), filled(key, size), now);
                        prop_assert_eq!(replaced, old.is_some());
                    }
                    Step::Get(key) => {
                        let value = store.get(&name(key), now);
                        prop_assert_eq!(value.as_ref(), model.get(&name(key)));
                    }
                    Step::Delete(key) => {
                        let old = model.remove(&name(key));
                        prop_assert_eq!(store.delete(&name(key), now), old.is_some());
                    }
                    Step::List(digit) => {
                        let prefix = name(digit);
                        let found = model.keys().filter(|key| key.starts_with(&prefix));
                        let mut keys: Vec<_> = found.cloned().collect();
                        keys.sort();
                        keys.truncate(5);
                        prop_assert_eq!(store.list(&prefix, 5, now), keys);
                    }
                }
                let bytes = model.iter().map(|(key, value)| cost(key, value)).sum();
                prop_assert_eq!(store.usage(), Usage { entries: model.len(), bytes });
            }
        }

        #[test]
        fn bounded_it_forgets_but_never_lies(steps in steps()) {
            let bound = SHARDS * 12_000;
            let (store, mut model, now) = (Store::new(bound, HOUR), HashMap::new(), Instant::now());
            for step in steps {
                match step {
                    Step::Put(key, size) => {
                        model.insert(name(key), filled(key, size));
                        store.put(&name(key), filled(key, size), now);
                        prop_assert!(store.get(&name(key), now).is_some());
                    }
                    Step::Get(key) => {
                        let value = store.get(&name(key), now);
                        prop_assert!(value.is_none() || value.as_ref() == model.get(&name(key)));
                    }
                    Step::Delete(key) => {
                        model.remove(&name(key));
                        store.delete(&name(key), now);
                    }
                    Step::List(digit) => {
                        let keys = store.list(&name(digit), 5, now);
                        prop_assert!(keys.iter().all(|key| model.contains_key(key)));
                    }
                }
                prop_assert!(store.usage().bytes <= bound);
            }
        }
    }

    #[test]
    fn values_expire() {
        let (store, start) = (Store::new(1 << 20, Duration::from_secs(10)), Instant::now());
        store.put("old", Bytes::from_static(b"1"), start);
        store.put("new", Bytes::from_static(b"2"), start + Duration::from_secs(5));
        let later = start + Duration::from_secs(12);
        assert_eq!(store.get("old", later), None);
        assert_eq!(store.list("", 9, later), ["new"]);
        store.sweep(later);
        assert_eq!(store.usage().entries, 1);
        assert!(!store.delete("old", later));
        assert!(!store.put("new", Bytes::new(), start + Duration::from_secs(20)));
    }

    #[test]
    fn overwriting_does_not_grow_the_queue() {
        let (store, now) = (Store::new(1 << 20, HOUR), Instant::now());
        for _ in 0..10_000 {
            store.put("same", Bytes::from_static(b"x"), now);
        }
        assert!(store.shard("same").queue.len() < 100);
        assert_eq!(store.usage().entries, 1);
    }

    #[test]
    fn the_oldest_gives_way() {
        let (store, now) = (Store::new(SHARDS * 100_000, HOUR), Instant::now());
        for number in 0..1000 {
            store.put(&format!("{number}"), Bytes::from(vec![0; 10_000]), now);
        }
        assert_eq!(store.get("0", now), None);
        assert!(store.get("999", now).is_some());
    }
}
