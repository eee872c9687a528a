//! What changed between two pprof files of one process, as a pprof file.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::profile::Mapping;
use crate::ranges;
use crate::read::proto::{Label, Location, Profile, Sample};
use crate::read::{self, unpacked};

/// A stack and the notes on its blocks, by which samples of both files are told apart.
type Key = (Vec<u64>, Vec<(String, String, i64, String)>);

/// Returns the newer file with the values of the older one taken away, gzipped. Values may be
/// negative. Samples without a change are left out.
///
/// Both files must be of one process, because stacks are compared by their addresses.
///
/// # Errors
///
/// [`NoDifference`] says what is wrong.
pub fn difference(newer: &[u8], older: &[u8]) -> Result<Vec<u8>, NoDifference> {
    let mut new = decode(newer)?;
    let old = decode(older)?;
    if types(&new) != types(&old) {
        return Err(NoDifference::Files("the two profiles have different values".into()));
    }
    if were_reset(&new, &old) {
        return Err(NoDifference::Reset);
    }
    subtract(&mut new, &old)?;
    leave_out_counts(&mut new);
    new.duration_nanos = new.time_nanos.saturating_sub(old.time_nanos).max(0);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = packed.write_all(&new.encode_to_vec()).and_then(|()| packed.finish());
    packed.map_err(|error| NoDifference::Files(error.to_string()))
}

/// Why two profiles have no difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoDifference {
    /// One of them is no pprof file, or they have other values.
    Files(String),
    /// The samples were reset between the two.
    Reset,
}

impl fmt::Display for NoDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoDifference::Files(what) => f.write_str(what),
            NoDifference::Reset => f.write_str("the samples were reset between the two profiles"),
        }
    }
}

impl std::error::Error for NoDifference {}

impl From<String> for NoDifference {
    fn from(what: String) -> NoDifference {
        NoDifference::Files(what)
    }
}

/// Whether the samples were reset between the two, or while one of them was written. Files of other
/// writers do not tell how often they were, so what counts there is that nothing else makes the
/// number of allocations smaller.
fn were_reset(new: &Profile, old: &Profile) -> bool {
    let counts = [new, old].map(|file| RESETS.map(|begin| comment(file, begin)));
    let [[first, ..], _] = counts;
    match first {
        None => allocations(new) < allocations(old),
        first => counts.as_flattened().iter().any(|count| *count != first),
    }
}

/// The comments with a count that changes when the samples of a process begin to be forgotten, and
/// when they are: before the samples of the file were written, and after that.
const RESETS: [&str; 2] = ["prof.resets=", "prof.resets.after="];

/// The comment that begins so.
fn comment<'a>(file: &'a Profile, begin: &str) -> Option<&'a str> {
    let mut texts = file.comment.iter().map(|comment| string(file, *comment));
    texts.find_map(|text| text.strip_prefix(begin))
}

/// The allocations of all samples.
fn allocations(file: &Profile) -> i64 {
    let Some(at) = types(file).iter().position(|kind| *kind == "alloc_objects") else { return 0 };
    let values = file.sample.iter().filter_map(|sample| sample.value.get(at));
    values.fold(0, |sum: i64, value| sum.saturating_add(*value))
}

/// Leaves out the exact counts of size classes, which are those since the start.
fn leave_out_counts(new: &mut Profile) {
    let mut comments = std::mem::take(&mut new.comment);
    comments.retain(|comment| {
        let text = string(new, *comment);
        !text.starts_with("class.") && !text.starts_with("prof.since_start=")
    });
    new.comment = comments;
}

fn decode(file: &[u8]) -> Result<Profile, String> {
    read::decode(&unpacked(file)?)
}

fn types(file: &Profile) -> Vec<&str> {
    file.sample_type.iter().map(|kind| string(file, kind.kind)).collect()
}

fn string(file: &Profile, index: i64) -> &str {
    usize::try_from(index).ok().and_then(|index| file.string_table.get(index)).map_or("", |s| s)
}

/// The address of each location.
fn addresses(file: &Profile) -> HashMap<u64, u64> {
    file.location.iter().map(|location| (location.id, location.address)).collect()
}

fn key(file: &Profile, addresses: &HashMap<u64, u64>, sample: &Sample) -> Option<Key> {
    let stack: Option<Vec<u64>> =
        sample.location_id.iter().map(|id| addresses.get(id).copied()).collect();
    let note = |label: &Label| {
        let text = |index| string(file, index).to_owned();
        (text(label.key), text(label.str), label.num, text(label.num_unit))
    };
    let mut notes: Vec<_> = sample.label.iter().map(note).collect();
    notes.sort_unstable();
    Some((stack?, notes))
}

const LOST: &str = "a sample has a location that is not in the file";

fn subtract(new: &mut Profile, old: &Profile) -> Result<(), String> {
    let mut left: HashMap<Key, Vec<i64>> = HashMap::new();
    let old_addresses = addresses(old);
    for sample in &old.sample {
        let key = key(old, &old_addresses, sample).ok_or(LOST)?;
        let sum = left.entry(key).or_insert_with(|| vec![0; sample.value.len()]);
        add(sum, &sample.value, i64::saturating_add);
    }
    let new_addresses = addresses(new);
    let mut samples = std::mem::take(&mut new.sample);
    for sample in &mut samples {
        let key = key(new, &new_addresses, sample).ok_or(LOST)?;
        if let Some(before) = left.remove(&key) {
            add(&mut sample.value, &before, i64::saturating_sub);
        }
    }
    let mut adder = Adder::new(new);
    let mut gone: Vec<(Key, Vec<i64>)> = left.into_iter().collect();
    gone.sort_unstable();
    for ((stack, notes), before) in gone {
        samples.push(adder.sample(
            &stack,
            notes,
            before.iter().map(|value| value.saturating_neg()),
        ));
    }
    adder.find_mappings();
    samples.retain(|sample| sample.value.iter().any(|value| *value != 0));
    new.sample = samples;
    Ok(())
}

fn add(to: &mut [i64], values: &[i64], with: fn(i64, i64) -> i64) {
    for (to, value) in to.iter_mut().zip(values) {
        *to = with(*to, *value);
    }
}

/// Adds samples of the older file to the newer one.
struct Adder<'a> {
    file: &'a mut Profile,
    /// How many locations the file had before.
    known: usize,
    locations: HashMap<u64, u64>,
    strings: HashMap<String, i64>,
    last: u64,
}

impl Adder<'_> {
    fn new(file: &mut Profile) -> Adder<'_> {
        let known = file.location.len();
        let locations = file.location.iter().map(|at| (at.address, at.id)).collect();
        let strings = file.string_table.iter().cloned().zip(0..).collect();
        let last = file.location.iter().map(|location| location.id).max().unwrap_or(0);
        Adder { file, known, locations, strings, last }
    }

    fn sample(
        &mut self,
        stack: &[u64],
        notes: Vec<(String, String, i64, String)>,
        values: impl Iterator<Item = i64>,
    ) -> Sample {
        let location_id = stack.iter().map(|address| self.location(*address)).collect();
        let label = notes.into_iter().map(|(key, str, num, unit)| Label {
            key: self.string(key),
            str: self.string(str),
            num,
            num_unit: self.string(unit),
        });
        let label = label.collect();
        Sample { location_id, value: values.collect(), label }
    }

    fn location(&mut self, address: u64) -> u64 {
        if let Some(id) = self.locations.get(&address) {
            return *id;
        }
        self.last = self.last.wrapping_add(1);
        let location = Location { id: self.last, address, ..Location::default() };
        self.file.location.push(location);
        self.locations.insert(address, self.last);
        self.last
    }

    /// Finds the mappings of the locations that were added: for each the first one that contains
    /// it.
    fn find_mappings(self) {
        let Profile { mapping: mappings, location: locations, .. } = self.file;
        let added = locations.get_mut(self.known..).unwrap_or_default();
        let asked: Vec<ranges::Asked> = added.iter().map(|at| (at.address, 0)).collect();
        let bounds = mappings.iter().map(|mapping| Mapping {
            start: mapping.memory_start,
            limit: mapping.memory_limit,
            ..Mapping::default()
        });
        let found = ranges::find(&bounds.collect::<Vec<_>>(), &asked);
        for (at, mapping) in added.iter_mut().zip(found) {
            at.mapping_id = mapping.map_or(0, |index| mappings[index].id);
        }
    }

    fn string(&mut self, text: String) -> i64 {
        if let Some(index) = self.strings.get(&text) {
            return *index;
        }
        let index = self.file.string_table.len() as i64;
        self.file.string_table.push(text.clone());
        self.strings.insert(text, index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read;
    use crate::read::testing::{File, gzip};

    fn live(file: &[u8]) -> Vec<(Option<u64>, i64, i64)> {
        let file = decode(file).expect("a profile");
        let of =
            |sample: &Sample| (Some(sample.label.len() as u64), sample.value[2], sample.value[3]);
        file.sample.iter().map(of).collect()
    }

    #[test]
    fn what_was_taken_away_is_read_apart() {
        let file = |live| File::default().comment("pid=7").path("main > f", 10, 9, live);
        let (old, new) = (file(9), file(4).path("main > g", 8, 3, 3));
        let difference = difference(&new.encode(), &old.encode()).expect("a difference");
        let path = std::env::temp_dir().join(format!("lumalloc-delta-{}", std::process::id()));
        std::fs::write(&path, &difference).expect("written");
        let refused = read::read_file(&path).expect_err("it has negative numbers").to_string();
        let (more, less) = read::read_parts(&path).expect("a difference");
        std::fs::remove_file(&path).expect("it is there");
        assert!(refused.contains("has negative numbers"), "{refused}");
        let live = |profile: &crate::profile::Profile| {
            let total = profile.total();
            (total.allocs, total.live, profile.comment("pid").is_some())
        };
        assert_eq!(live(&more), (3, 3, true));
        assert_eq!(less.as_ref().map(live), Some((0, 5, false)));
        std::fs::write(&path, new.encode()).expect("written");
        let whole = read::read_parts(&path).expect("a profile");
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(whole, (read(&new.encode()).expect("a profile"), None));
    }

    #[test]
    fn profiles_before_and_after_a_reset_have_no_difference() {
        let file = |allocs| File::default().path("main > f", 10, allocs, 1).encode();
        let refused = difference(&file(8), &file(9)).expect_err("fewer allocations");
        assert_eq!(refused, NoDifference::Reset);
        assert_eq!(refused.to_string(), "the samples were reset between the two profiles");
        assert!(difference(&file(9), &file(9)).is_ok());
        // By then the program can have allocated more than before.
        let file = |resets: [u32; 2], allocs| {
            let [before, after] = resets;
            let file = File::default().comment(&format!("prof.resets={before}"));
            let file = file.comment(&format!("prof.resets.after={after}"));
            file.path("main > f", 10, allocs, 1).encode()
        };
        for (new, old) in [([1, 1], [0, 0]), ([0, 1], [0, 0]), ([1, 1], [0, 1])] {
            let refused = difference(&file(new, 90), &file(old, 9)).err();
            assert_eq!(refused, Some(NoDifference::Reset), "{new:?} {old:?}");
        }
        // A sampled block that grows in place may stand for fewer allocations.
        assert!(difference(&file([1, 1], 8), &file([1, 1], 9)).is_ok());
    }

    #[test]
    fn values_are_subtracted_by_stack_and_labels() {
        let old = File::default()
            .mapping(0x1000, 0x9000, "/bin/x", "ab")
            .stack(&[0x1011, 0x2022], &[5, 50, 5, 50], &[("bytes", 10)])
            .stack(&[0x3033], &[2, 20, 2, 20], &[("bytes", 10)])
            .stack(&[0x4044], &[1, 7, 1, 7], &[("bytes", 7), ("thread", 3)]);
        let new = File::default()
            .comment("prof.since_start=1")
            .comment("pid=7")
            .comment("class.16=3 4")
            .mapping(0x1000, 0x9000, "/bin/x", "ab")
            .stack(&[0x3033], &[2, 20, 2, 20], &[("bytes", 10)])
            .stack(&[0x1011, 0x2022], &[9, 90, 8, 80], &[("bytes", 10)])
            .stack(&[0x1011, 0x2022], &[1, 20, 1, 20], &[("bytes", 20)]);
        let (old, new) = (old.encode(), gzip(&new.encode()));
        let file = difference(&new, &old).expect("a difference");
        assert_eq!(live(&file), [(Some(1), 3, 30), (Some(1), 1, 20), (Some(2), -1, -7)]);
        let plain = decode(&file).expect("a profile");
        let gone = plain.sample.last().expect("three samples");
        let at = plain.location.iter().find(|at| at.id == gone.location_id[0]).expect("a location");
        assert_eq!((at.address, at.mapping_id), (0x4044, plain.mapping[0].id));
        assert_eq!(string(&plain, gone.label[1].key), "thread");
        let comments: Vec<&str> =
            plain.comment.iter().map(|comment| string(&plain, *comment)).collect();
        assert_eq!(comments, ["pid=7"], "no counts since the start");
        let nothing = difference(&new, &new).expect("a difference");
        assert!(live(&nothing).is_empty() && read(&nothing).is_ok());
    }

    /// With a look at each mapping for each address this takes minutes.
    #[test]
    fn many_locations_find_their_mappings_among_many() {
        use crate::read::proto::Mapping;
        const MANY: u64 = 300_000;
        let mapping = |n| Mapping {
            id: n + 1,
            memory_start: n * 16,
            memory_limit: n * 16 + 8,
            ..Mapping::default()
        };
        let location = |n| Location { id: n + 1, address: n * 16 + 7, ..Location::default() };
        let mut new = File::default();
        new.profile.mapping = (0..MANY).map(mapping).collect();
        let mut old = File::default();
        old.profile.location = (0..MANY).map(location).collect();
        let value = vec![0, 0, 1, 1];
        let location_id = (1..=MANY).collect();
        old.profile.sample = vec![Sample { location_id, value, ..Sample::default() }];
        let difference = difference(&new.encode(), &old.encode()).expect("a difference");
        let file = decode(&difference).expect("a profile");
        assert_eq!(file.location.len() as u64, MANY);
        assert!(file.location.iter().all(|at| at.mapping_id == at.address / 16 + 1));
    }

    #[test]
    fn what_is_no_pprof_file_is_refused() {
        let file = File::default().stack(&[0x1], &[1, 1, 1, 1], &[]).encode();
        assert_eq!(difference(&file, b"\x1f\x8b").unwrap_err().to_string(), "the file is cut off");
        assert!(
            difference(b"heap_v2/1\n", &file)
                .unwrap_err()
                .to_string()
                .starts_with("it is no pprof file")
        );
        let other = Profile::default().encode_to_vec();
        let expected = "the two profiles have different values";
        assert_eq!(difference(&file, &other).unwrap_err().to_string(), expected);
        let lost = Profile {
            sample: vec![Sample { location_id: vec![9], value: vec![1; 4], label: vec![] }],
            ..decode(&file).unwrap()
        };
        let expected = "a sample has a location that is not in the file";
        assert_eq!(difference(&lost.encode_to_vec(), &file).unwrap_err().to_string(), expected);
        assert_eq!(difference(&file, &lost.encode_to_vec()).unwrap_err().to_string(), expected);
    }
}
