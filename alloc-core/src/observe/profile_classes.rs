//! The samples of the heap profiler by the size class of their blocks. Source: jemalloc,
//! `prof.stats.*`.

use super::arena_stats::{BINS, LEXTENTS, lextent_size, slab_class_size};
use super::profile::{ProfileEntry, profile};
use crate::ground::size_class::MAX_CACHED;
use core::ops::Range;

/// Samples, and the bytes that were requested for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileSum {
    /// Bytes that were requested.
    pub requested: u64,
    /// Samples.
    pub count: u64,
}

/// The samples of one size class. They are those of [`profile`](fn@super::profile): a stack that
/// requested very many sizes counts some by their usable bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileClass {
    /// What is in use.
    pub live: ProfileSum,
    /// All samples since the start or the last reset.
    pub accum: ProfileSum,
}

/// Returns the samples of a small size class, or `None` from index [`nbins`](super::nbins) on. A
/// block of a small class's size counts here, even if it is a large block because of its alignment.
///
/// ```
/// // Without `opt.prof` there are none.
/// assert_eq!(lumalloc::observe::profile_bin(0), Some(Default::default()));
/// assert_eq!(lumalloc::observe::profile_bin(1000), None);
/// ```
#[must_use]
pub fn profile_bin(index: usize) -> Option<ProfileClass> {
    let above = |class: Option<usize>| class.map_or(0, slab_class_size) + 1;
    (index < BINS).then(|| sum(above(index.checked_sub(1))..above(Some(index))))
}

/// Returns the samples of a large size class, or `None` from index
/// [`nlextents`](super::nlextents) on.
///
/// ```
/// assert_eq!(lumalloc::observe::profile_lextent(0), Some(Default::default()));
/// assert_eq!(lumalloc::observe::profile_lextent(1000), None);
/// ```
#[must_use]
pub fn profile_lextent(index: usize) -> Option<ProfileClass> {
    let smaller = index.checked_sub(1).map_or(MAX_CACHED, lextent_size);
    (index < LEXTENTS).then(|| sum(smaller + 1..lextent_size(index) + 1))
}

/// Adds up the samples whose blocks have so many bytes.
fn sum(usable: Range<usize>) -> ProfileClass {
    let mut class = ProfileClass::default();
    profile(|entry| {
        if usable.contains(&entry.usable) {
            class.add(&entry);
        }
    });
    class
}

impl ProfileClass {
    fn add(&mut self, entry: &ProfileEntry) {
        self.live.add(entry.allocated.saturating_sub(entry.freed), entry.requested);
        self.accum.add(entry.allocated, entry.requested);
    }
}

impl ProfileSum {
    fn add(&mut self, count: u64, requested: usize) {
        self.count += count;
        self.requested += count * requested as u64;
    }
}
