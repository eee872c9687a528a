//! A heap profile as it was read: counted samples, their stacks of addresses, and what was mapped.

use std::ops::{Add, AddAssign, Sub};

/// What was counted: allocations and bytes, since the start and still live.
///
/// The readers check that the sum of all samples of a profile fits, so sums never overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Allocations since the start.
    pub allocs: i64,
    /// Their bytes.
    pub alloc_bytes: i64,
    /// Blocks that are not freed.
    pub live: i64,
    /// Their bytes.
    pub live_bytes: i64,
}

impl Counts {
    /// All four numbers.
    fn numbers(self) -> [i64; 4] {
        [self.allocs, self.alloc_bytes, self.live, self.live_bytes]
    }

    /// Changes each number.
    fn map(self, change: impl Fn(i64) -> i64) -> Counts {
        let [allocs, alloc_bytes, live, live_bytes] = self.numbers().map(change);
        Counts { allocs, alloc_bytes, live, live_bytes }
    }

    /// Adds with a check for overflow.
    pub(crate) fn checked_add(self, other: Counts) -> Option<Counts> {
        Some(Counts {
            allocs: self.allocs.checked_add(other.allocs)?,
            alloc_bytes: self.alloc_bytes.checked_add(other.alloc_bytes)?,
            live: self.live.checked_add(other.live)?,
            live_bytes: self.live_bytes.checked_add(other.live_bytes)?,
        })
    }
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            allocs: self.allocs + other.allocs,
            alloc_bytes: self.alloc_bytes + other.alloc_bytes,
            live: self.live + other.live,
            live_bytes: self.live_bytes + other.live_bytes,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        *self = *self + other;
    }
}

impl Sub for Counts {
    type Output = Counts;

    fn sub(self, other: Counts) -> Counts {
        Counts {
            allocs: self.allocs - other.allocs,
            alloc_bytes: self.alloc_bytes - other.alloc_bytes,
            live: self.live - other.live,
            live_bytes: self.live_bytes - other.live_bytes,
        }
    }
}

/// Counts of one stack, and what is known about the blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Index into [`Profile::stacks`].
    pub stack: usize,
    /// The numbers; estimates if the profile is sampled.
    pub counts: Counts,
    /// The requested size of each block.
    pub size: Option<u64>,
    /// The arena of the blocks.
    pub arena: Option<i64>,
    /// The number of the thread that allocated them.
    pub thread: Option<i64>,
    /// Its name.
    pub thread_name: Option<String>,
    /// Index into the classes of the profile, if the blocks belong to one.
    pub(crate) class: Option<usize>,
    /// The mean size of the blocks, where the file has numbers that tell it better than `counts`.
    pub(crate) mean_size: Option<u64>,
    /// What was added to the counts because the exact ones of the class are known.
    pub(crate) correction: Counts,
}

impl Sample {
    /// The mean size of the blocks.
    pub(crate) fn mean_size(&self) -> u64 {
        let Counts { allocs, alloc_bytes, live, live_bytes } = self.counts;
        let mean = match (allocs, live) {
            (0, 0) => 0,
            (0, live) => live_bytes / live,
            (allocs, _) => alloc_bytes / allocs,
        };
        self.mean_size.unwrap_or(mean.unsigned_abs())
    }
}

/// A size class of which the allocator has exact counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Class {
    /// The bytes of a block.
    pub(crate) size: f64,
    /// Indices into [`Profile::pools`], of what is live and of all allocations.
    pub(crate) pools: [usize; 2],
}

/// What all samples of neighbouring size classes add up to. Their estimates are corrected together,
/// by the bytes of these classes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pool {
    /// The variance of the bytes before the counts were corrected; 0 if they were not.
    pub(crate) variance: f64,
    /// The number of samples.
    pub(crate) samples: f64,
    /// The variance of the number of all blocks, whose bytes are known.
    pub(crate) spread: f64,
}

/// A file, or other memory, that addresses of the process belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub limit: u64,
    /// The place of the first address in the file.
    pub offset: u64,
    /// The file's path; empty or in brackets for memory without a file.
    pub file: String,
    /// The build-id in hexadecimal digits; may be empty.
    pub build_id: String,
}

/// A line of source that a location belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The function, demangled or not.
    pub function: String,
    /// The source file; may be empty.
    pub file: String,
    /// The number of the line; 0 if it is not known.
    pub line: u64,
}

/// A place in the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The return address of the call, minus 1.
    pub address: u64,
    /// Index into [`Profile::mappings`].
    pub mapping: Option<usize>,
    /// The functions, innermost first, if the file has them. All but the last are inlined.
    pub lines: Vec<Line>,
}

/// A whole profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The mean number of bytes between two samples; 1 if each allocation was counted.
    pub period: u64,
    /// When it was written, in nanoseconds since 1970.
    pub time_nanos: Option<i64>,
    /// Whether allocations since the start were counted. If not, they are the live ones.
    pub has_allocs: bool,
    /// Whether the file has bytes alone, and no numbers of blocks.
    pub lacks_blocks: bool,
    /// Notes of the writer, `name=value`, in order.
    pub comments: Vec<(String, String)>,
    /// What was mapped.
    pub mappings: Vec<Mapping>,
    /// The places of all stacks.
    pub locations: Vec<Location>,
    /// Indices into `locations`, innermost first.
    pub stacks: Vec<Vec<usize>>,
    /// The counts.
    pub samples: Vec<Sample>,
    /// The size classes, if the counts were corrected.
    pub(crate) classes: Vec<Class>,
    /// The pools of these, of what is live and of all allocations.
    pub(crate) pools: [Vec<Pool>; 2],
    /// Whether the counts of some size classes were left as they are, because the exact ones are
    /// too far away.
    pub(crate) lacks_corrections: bool,
}

/// Why most commands refuse a profile with negative numbers.
const IS_DIFFERENCE: &str =
    "it has negative numbers, as a difference of two profiles has; lumalloc heap shows it";

impl Profile {
    /// Takes a profile with negative numbers apart: what was added, and what was taken away.
    /// Returns the profile unchanged if it has none.
    pub(crate) fn parts(mut self) -> (Profile, Option<Profile>) {
        let is_negative = |sample: &Sample| sample.counts.numbers().iter().any(|it| *it < 0);
        if !self.samples.iter().any(is_negative) {
            return (self, None);
        }
        let mut less = self.clone();
        for (more, less) in self.samples.iter_mut().zip(&mut less.samples) {
            let change = more.counts;
            more.counts = change.map(|number| number.max(0));
            less.counts = change.map(|number| number.saturating_neg().max(0));
        }
        for part in [&mut self, &mut less] {
            part.samples.retain(|sample| sample.counts != Counts::default());
        }
        // The notes are of the newer moment.
        less.comments.clear();
        (self, Some(less))
    }

    /// Returns whether the numbers are estimates from samples.
    pub fn is_sampled(&self) -> bool {
        self.period > 1
    }

    /// Returns whether the numbers are estimates of blocks whose sizes are not known.
    pub(crate) fn lacks_sizes(&self) -> bool {
        self.is_sampled() && self.samples.iter().any(|sample| sample.size.is_none())
    }

    /// Returns the sum of all samples.
    pub fn total(&self) -> Counts {
        self.samples.iter().fold(Counts::default(), |sum, sample| sum + sample.counts)
    }

    /// Returns the value of a note.
    pub fn comment(&self, name: &str) -> Option<&str> {
        self.comments.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether samples were forgotten while the profile was written (`prof.reset`): the
    /// count of resets is odd while that is done, and changes when it has been.
    pub(crate) fn was_reset_meanwhile(&self) -> bool {
        let count = |name| self.comment(name).and_then(|count| count.parse::<u64>().ok());
        let (before, after) = (count("prof.resets"), count("prof.resets.after"));
        before.is_some_and(|before| before % 2 == 1 || after.is_some_and(|after| after != before))
    }

    /// Says what was counted, where the numbers are no estimates.
    pub(crate) fn what_was_counted(&self) -> &'static str {
        let is_missed = |text: &str| text.parse::<u64>().is_ok_and(|missed| missed > 0);
        let misses = self.comment("prof.samples.missed").is_some_and(is_missed);
        match (misses, self.is_behind()) {
            _ if self.comment("prof.since_start") == Some("1") => "each allocation was counted",
            (false, false) => {
                "each allocation while sampling was on, and after any reset, was counted"
            }
            (true, false) => {
                "each allocation while sampling was on, and after any reset, was counted, \
                 except those missed"
            }
            (false, true) => {
                "each allocation while sampling was on, and after any reset, was counted, \
                 except some of the first ones of threads after a reset"
            }
            (true, true) => {
                "each allocation while sampling was on, and after any reset, was counted, \
                 except those missed, and some of the first ones of threads after a reset"
            }
        }
    }

    /// Returns whether threads may have gone on at a former rate for some time after a reset.
    pub(crate) fn is_behind(&self) -> bool {
        self.comment("prof.behind") == Some("1")
    }

    /// Checks what every other part relies on: indices exist, no number is negative, no sum
    /// overflows.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut total = Counts::default();
        let mut requested: i64 = 0;
        for sample in &self.samples {
            let counts = sample.counts;
            if counts.numbers().iter().any(|number| *number < 0) {
                return Err(IS_DIFFERENCE.into());
            }
            let blocks = counts.allocs.max(counts.live);
            let bytes = i64::try_from(sample.size.unwrap_or(0)).ok();
            let next = bytes.and_then(|bytes| bytes.checked_mul(blocks));
            requested = next
                .and_then(|next| next.checked_add(requested))
                .ok_or("its numbers are too large to be added")?;
            total = total.checked_add(counts).ok_or("its numbers are too large to be added")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(allocs: i64, alloc_bytes: i64, live: i64, live_bytes: i64) -> Counts {
        Counts { allocs, alloc_bytes, live, live_bytes }
    }

    #[test]
    fn counts_are_added_and_subtracted_by_member() {
        let (a, b) = (counts(5, 50, 3, 30), counts(1, 10, 1, 10));
        assert_eq!(a + b, counts(6, 60, 4, 40));
        assert_eq!(a - b, counts(4, 40, 2, 20));
    }

    #[test]
    fn numbers_that_cannot_be_added_are_refused() {
        let of = |counts: Counts, size| {
            let sample = Sample { counts, size, ..Sample::default() };
            Profile { samples: vec![sample.clone(), sample], ..Profile::default() }.check()
        };
        let overflow = Err("its numbers are too large to be added".to_owned());
        assert_eq!(of(counts(1, 2, 1, 2), Some(2)), Ok(()));
        assert_eq!(of(counts(1, i64::MAX, 0, 0), None), overflow);
        assert_eq!(of(counts(1, 1, 1, 1), Some(u64::MAX)), overflow);
        assert_eq!(of(counts(1 << 40, 1, 1, 1), Some(1 << 40)), overflow);
        let negative =
            "it has negative numbers, as a difference of two profiles has; lumalloc heap shows it";
        assert_eq!(of(counts(1, 1, -1, 1), None), Err(negative.to_owned()));
    }

    #[test]
    fn what_was_counted_is_said() {
        let of = |notes: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| (String::from(*name), String::from(*value));
            let comments = notes.iter().map(own).collect();
            Profile { comments, ..Profile::default() }.what_was_counted()
        };
        let (whole, part) = (
            "each allocation was counted",
            "each allocation while sampling was \
                             on, and after any reset, was counted",
        );
        let missed = format!("{part}, except those missed");
        assert_eq!(of(&[("prof.since_start", "1")]), whole);
        assert_eq!(of(&[("prof.since_start", "1"), ("prof.samples.missed", "0")]), whole);
        assert_eq!(of(&[("prof.since_start", "0"), ("prof.samples.missed", "0")]), part);
        assert_eq!(of(&[]), part);
        assert_eq!(of(&[("prof.since_start", "0"), ("prof.samples.missed", "3")]), missed);
        let behind = "each allocation while sampling was on, and after any reset, was counted, \
                      except some of the first ones of threads after a reset";
        assert_eq!(of(&[("prof.since_start", "0"), ("prof.behind", "1")]), behind);
        let both = "each allocation while sampling was on, and after any reset, was counted, \
                    except those missed, and some of the first ones of threads after a reset";
        assert_eq!(of(&[("prof.samples.missed", "3"), ("prof.behind", "1")]), both);
    }

    #[test]
    fn a_reset_while_a_profile_was_written_is_noticed() {
        let of = |before: Option<&str>, after: Option<&str>| {
            let note = |name: &str, count: &str| (name.to_owned(), count.to_owned());
            let before = before.map(|count| note("prof.resets", count));
            let after = after.map(|count| note("prof.resets.after", count));
            let comments = before.into_iter().chain(after).collect();
            Profile { comments, ..Profile::default() }.was_reset_meanwhile()
        };
        for (before, after) in [("0", "0"), ("4", "4"), ("x", "2"), ("2", "x")] {
            assert!(!of(Some(before), Some(after)), "{before} {after}");
        }
        for (before, after) in [("0", "1"), ("0", "2"), ("1", "1"), ("1", "2")] {
            assert!(of(Some(before), Some(after)), "{before} {after}");
        }
        assert!(!of(None, None) && !of(Some("2"), None) && of(Some("3"), None));
    }

    #[test]
    fn a_difference_has_two_parts() {
        let of = |all: &[Counts]| {
            let sample = |counts: &Counts| Sample { counts: *counts, ..Sample::default() };
            Profile { samples: all.iter().map(sample).collect(), ..Profile::default() }
        };
        let plain = of(&[counts(1, 2, 0, 0)]);
        assert_eq!(plain.clone().parts(), (plain, None));
        let mixed = of(&[counts(5, 50, -3, -30), counts(2, 20, 0, 0), counts(0, 0, i64::MIN, 0)]);
        let (more, less) = mixed.parts();
        assert_eq!(more, of(&[counts(5, 50, 0, 0), counts(2, 20, 0, 0)]));
        assert_eq!(less, Some(of(&[counts(0, 0, 3, 30), counts(0, 0, i64::MAX, 0)])));
    }

    #[test]
    fn notes_are_found_by_name() {
        let comments = vec![("pid".to_owned(), "7".to_owned())];
        let profile = Profile { comments, ..Profile::default() };
        assert_eq!((profile.comment("pid"), profile.comment("p")), (Some("7"), None));
    }
}
