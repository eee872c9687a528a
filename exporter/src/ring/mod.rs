//! Snapshots that are kept in memory, of the moments when a limit was reached or when the program
//! held more memory than ever before. They show later what such a moment was like.
//!
//! The reading thread looks for such moments after each request, before one for the snapshots
//! themselves, and when it gives memory back. It never wakes up for them. A peak has at least 10 %
//! and at least 16 MiB more memory in use than the last peak. For limits, one snapshot in a minute
//! is enough; the next one says how long before it a limit was reached. A moment for which there
//! was no memory gets its snapshot at a later look. The oldest snapshots are dropped when there are
//! more than [`MOST`]. When they have more than [`MOST_BYTES`], first the oldest heap profiles are
//! dropped, and then the oldest snapshots. A snapshot that is too large alone is kept without its
//! profile.
mod judge;

use crate::heap_profile;
use crate::memory::{Kind, OwnMemory};
use crate::namespace::{Namespace, Target};
use crate::snapshot;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use judge::{Judge, Seen};
use lumalloc_ctl::{Snapshot, Value};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The most snapshots that are kept.
pub(crate) const MOST: usize = 32;
/// The most compressed bytes of all snapshots.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// A snapshot that is kept.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) id: u64,
    /// When the snapshot was taken, in milliseconds since 1970.
    pub(crate) unix_ms: u64,
    /// Why the snapshot was taken.
    pub(crate) reason: String,
    pub(crate) allocated: usize,
    pub(crate) resident: usize,
    /// The snapshot as JSON, compressed.
    packed: Vec<u8>,
    /// The heap profile of that moment for pprof, or empty if none is taken in this process.
    profile: Vec<u8>,
}

impl Kept {
    /// Returns the number of compressed bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.packed.len() + self.profile.len()
    }

    /// Returns the heap profile, gzipped for pprof, if there is one.
    pub(crate) fn profile(&self) -> Option<&[u8]> {
        Some(self.profile.as_slice()).filter(|profile| !profile.is_empty())
    }

    /// Returns the snapshot as JSON.
    pub(crate) fn json(&self) -> Option<Vec<u8>> {
        let mut json = Vec::new();
        ZlibDecoder::new(self.packed.as_slice()).read_to_end(&mut json).ok()?;
        Some(json)
    }
}

/// The ring of kept snapshots.
#[derive(Default)]
pub(crate) struct Ring(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    kept: VecDeque<Kept>,
    last: u64,
    judge: Judge,
    keys: Option<Keys>,
}

/// The keys that are read to find such a moment.
#[derive(Clone, Copy)]
struct Keys {
    soft: Target,
    hard: Target,
    active: Target,
}

impl Ring {
    /// Keeps a snapshot if this moment is worth one, and there is memory for it. Only for the
    /// reading thread.
    pub(crate) fn look_within(&self, memory: &OwnMemory, namespace: &dyn Namespace, now: Instant) {
        let may = || memory.has_for_job(Kind::Kept);
        if let Some(length) = self.look(namespace, now, may) {
            memory.note(Kind::Kept, length);
        }
    }

    /// Keeps a snapshot if this moment is worth one. `may` returns whether there is memory for it.
    /// Returns the compressed bytes of what was made, even if it is too long to be kept.
    pub(crate) fn look(
        &self,
        namespace: &dyn Namespace,
        now: Instant,
        may: impl FnOnce() -> bool,
    ) -> Option<usize> {
        let mut inner = self.lock();
        let seen = inner.seen(namespace)?;
        let worth = inner.judge.judge(seen, now)?;
        if !may() {
            return None;
        }
        let snapshot = snapshot::take(namespace).ok()?;
        inner.judge.kept(&worth, seen, now);
        let profile = heap_profile::compressed(namespace).unwrap_or_default();
        Some(inner.keep(worth.reason, &snapshot, profile))
    }

    /// Returns all snapshots, the oldest first.
    pub(crate) fn kept(&self) -> Vec<Kept> {
        self.lock().kept.iter().cloned().collect()
    }

    /// Returns the snapshot with that number.
    pub(crate) fn get(&self, id: u64) -> Option<Kept> {
        self.lock().kept.iter().find(|kept| kept.id == id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn seen(&mut self, namespace: &dyn Namespace) -> Option<Seen> {
        if self.keys.is_none() {
            let find = |name| namespace.find(name).ok();
            self.keys = Some(Keys {
                soft: find("limit.soft_reached")?,
                hard: find("limit.hard_reached")?,
                active: find("approximate_stats.active")?,
            });
        }
        let keys = self.keys?;
        let count = |target: &Target| match namespace.read(target) {
            Ok(Value::U64(count)) => Some(count),
            _ => None,
        };
        let Ok(Value::Size(active)) = namespace.read(&keys.active) else { return None };
        Some(Seen { soft: count(&keys.soft)?, hard: count(&keys.hard)?, active })
    }

    /// Keeps a snapshot. Returns its compressed bytes and those of the profile.
    fn keep(&mut self, reason: String, snapshot: &Snapshot, profile: Vec<u8>) -> usize {
        let packed = packed(snapshot).unwrap_or_default();
        let length = packed.len() + profile.len();
        if packed.is_empty() || packed.len() > MOST_BYTES {
            return length;
        }
        let has_room = length <= MOST_BYTES;
        let profile = if has_room { profile } else { Vec::new() };
        self.last += 1;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.kept.push_back(Kept {
            id: self.last,
            unix_ms: since.as_millis() as u64,
            reason,
            allocated: snapshot.totals.allocated,
            resident: snapshot.totals.resident,
            packed,
            profile,
        });
        while self.kept.len() > MOST {
            self.kept.pop_front();
        }
        while self.kept.iter().map(Kept::bytes).sum::<usize>() > MOST_BYTES {
            match self.kept.iter_mut().find(|kept| kept.profile().is_some()) {
                Some(oldest) => oldest.profile = Vec::new(),
                None => drop(self.kept.pop_front()),
            }
        }
        length
    }
}

fn packed(snapshot: &Snapshot) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    serde_json::to_writer(&mut encoder, snapshot).ok()?;
    encoder.flush().ok()?;
    let mut packed = encoder.finish().ok()?;
    packed.shrink_to_fit();
    Some(packed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Linked;

    fn snapshot(allocated: usize) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.totals.allocated = allocated;
        snapshot
    }

    #[test]
    fn what_is_kept_comes_out_as_it_was() {
        let ring = Ring::default();
        let whole = snapshot::take(&Linked).unwrap();
        ring.lock().keep("a test".into(), &whole, Vec::new());
        let kept = ring.get(1).unwrap();
        assert_eq!((kept.reason.as_str(), kept.allocated), ("a test", whole.totals.allocated));
        let json = kept.json().unwrap();
        assert!(json.len() > kept.bytes());
        assert_eq!(serde_json::from_slice::<Snapshot>(&json).unwrap(), whole);
        assert!(ring.get(2).is_none());
    }

    #[test]
    fn the_oldest_go_first() {
        let ring = Ring::default();
        for allocated in 1..=MOST + 3 {
            ring.lock().keep("a test".into(), &snapshot(allocated), Vec::new());
        }
        let kept = ring.kept();
        assert_eq!(kept.len(), MOST);
        assert_eq!((kept[0].id, kept[0].allocated), (4, 4));
        assert!(ring.get(3).is_none());
    }

    /// A ring of snapshots of these lengths: without the profile, and the profile.
    fn ring_of(lengths: &[(usize, usize)]) -> Ring {
        let ring = Ring::default();
        for (id, (packed, profile)) in (0..).zip(lengths) {
            let kept = Kept {
                id,
                unix_ms: 0,
                reason: String::new(),
                allocated: 0,
                resident: 0,
                packed: vec![0; *packed],
                profile: vec![0; *profile],
            };
            ring.lock().kept.push_back(kept);
        }
        ring
    }

    /// The numbers of the snapshots that are kept, and whether they have profiles.
    fn numbers(ring: &Ring) -> Vec<(u64, bool)> {
        let kept = ring.kept();
        assert!(kept.iter().map(Kept::bytes).sum::<usize>() <= MOST_BYTES);
        kept.iter().map(|kept| (kept.id, kept.profile().is_some())).collect()
    }

    #[test]
    fn bytes_are_bounded_and_the_oldest_profiles_go_first() {
        let ring = ring_of(&[(MOST_BYTES / 6, MOST_BYTES / 6); 3]);
        ring.lock().keep("a test".into(), &snapshot(1), vec![1; 100]);
        assert_eq!(numbers(&ring), [(0, false), (1, true), (2, true), (1, true)]);
        let ring = ring_of(&[(MOST_BYTES / 2, 1), (MOST_BYTES / 2, 1)]);
        ring.lock().keep("a test".into(), &snapshot(1), Vec::new());
        assert_eq!(numbers(&ring), [(1, false), (1, false)]);
    }

    #[test]
    fn a_profile_that_is_too_large_alone_is_left_out() {
        let ring = ring_of(&[(1000, 1000)]);
        let length = ring.lock().keep("a test".into(), &snapshot(1), vec![1; MOST_BYTES]);
        assert!(length > MOST_BYTES, "what was made, not what is kept");
        assert_eq!(numbers(&ring), [(0, true), (1, false)]);
        assert!(ring.get(1).unwrap().json().is_some());
    }

    #[test]
    fn without_memory_nothing_is_taken() {
        // No peak is lower, whatever other tests free meanwhile.
        let _held = std::hint::black_box(Vec::<u8>::with_capacity(32 << 20));
        let ring = Ring::default();
        let namespace: &dyn Namespace = &Linked;
        ring.look(namespace, Instant::now(), || true);
        ring.lock().judge.forget_peak();
        assert_eq!(ring.look(namespace, Instant::now(), || false), None);
        assert!(ring.kept().is_empty());
        assert!(ring.look(namespace, Instant::now(), || true).is_some(), "later, with memory");
        assert_eq!(ring.kept().len(), 1);
    }

    /// The limit is set for a separate arena, so that other tests have their memory.
    #[test]
    fn a_limit_that_is_reached_is_kept() {
        let ring = Ring::default();
        let namespace: &dyn Namespace = &Linked;
        ring.look(namespace, Instant::now(), || true);
        let arena = namespace.create(&namespace.find("arenas.create").unwrap()).unwrap();
        let write = |name: &str, value| {
            namespace.write(&namespace.find(name).unwrap(), value).unwrap();
        };
        namespace.set_arena_name(arena, c"of a test").unwrap();
        write(&format!("arena.{arena}.limit"), Value::Size(1 << 20));
        write("thread.arena", Value::Unsigned(arena));
        assert!(Vec::<u8>::new().try_reserve_exact(256 << 20).is_err());
        write(&format!("arena.{arena}.limit"), Value::Size(0));
        ring.look(namespace, Instant::now(), || true);
        let kept = ring.kept();
        assert_eq!(kept.len(), 1);
        assert!(kept[0].reason.starts_with("limit.hard was reached "), "{}", kept[0].reason);
    }
}
