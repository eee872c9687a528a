//! Reads pprof: `profile.proto`, mostly compressed by gzip.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use prost::Message;

use super::excerpt;
use super::limits::{self, Frames, Names};
use super::proto;
use crate::calibration::calibrate;
use crate::profile::{Counts, Line, Location, Mapping, Profile, Sample};

/// A file that unpacks to more than this is refused.
const UNPACKED_MAX: u64 = 512 << 20;
/// The values that a heap profile has.
const TYPES: [&str; 4] = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"];
/// The names of the last two in profiles of live blocks alone, such as those of V8.
const LIVE: [&str; 2] = ["objects", "space"];

type Result<T> = std::result::Result<T, String>;

/// Returns the contents of a file that begins with gzip's mark.
pub(super) fn unpack(bytes: &[u8]) -> Result<Vec<u8>> {
    unpack_at_most(UNPACKED_MAX, bytes)
}

fn unpack_at_most(most: u64, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(bytes).take(most + 1);
    decoder.read_to_end(&mut unpacked).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the file is cut off".to_owned(),
        _ => format!("the compressed data are damaged ({error})"),
    })?;
    if unpacked.len() as u64 > most {
        return Err(format!("it unpacks to more than {} MiB", most >> 20));
    }
    Ok(unpacked)
}

/// Reads a file that is not compressed.
pub(super) fn read(bytes: &[u8]) -> Result<Profile> {
    let mut profile = unchecked(bytes)?;
    profile.check()?;
    calibrate(&mut profile);
    // The corrected sums may be larger.
    profile.check()?;
    Ok(profile)
}

/// Reads a file that is not compressed. If it is a difference, what was taken away is the second
/// profile.
pub(super) fn read_parts(bytes: &[u8]) -> Result<(Profile, Option<Profile>)> {
    match unchecked(bytes)?.parts() {
        (more, Some(less)) => {
            more.check()?;
            less.check()?;
            Ok((more, Some(less)))
        }
        _ => Ok((read(bytes)?, None)),
    }
}

fn unchecked(bytes: &[u8]) -> Result<Profile> {
    let file = decode(bytes)?;
    let tables = Tables::new(&file)?;
    let columns = columns(&file, &tables)?;
    let mut profile = Profile {
        period: u64::try_from(file.period).unwrap_or(0).max(1),
        time_nanos: Some(file.time_nanos).filter(|time| *time > 0),
        has_allocs: columns[0].is_some(),
        lacks_blocks: columns[2].is_none(),
        comments: comments(&file, &tables)?,
        mappings: mappings(&file, &tables)?,
        locations: locations(&file, &tables)?,
        ..Profile::default()
    };
    let mut stacks = HashMap::new();
    for sample in &file.sample {
        let stack: Vec<usize> = indices(&sample.location_id, &tables.locations, "location")?;
        let next = stacks.len();
        let index = *stacks.entry(stack).or_insert(next);
        let sample = one_sample(sample, index, &columns, &file, &tables)?;
        profile.samples.push(sample);
    }
    let mut ordered: Vec<(Vec<usize>, usize)> = stacks.into_iter().collect();
    ordered.sort_by_key(|(_, index)| *index);
    profile.stacks = ordered.into_iter().map(|(stack, _)| stack).collect();
    check_frames(&profile, Frames::default())?;
    Ok(profile)
}

/// Refuses a profile whose stacks have too many frames.
fn check_frames(profile: &Profile, mut left: Frames) -> Result<()> {
    // A place without functions has at least its address.
    let count = |place: &usize| profile.locations[*place].lines.len().max(1);
    profile.stacks.iter().try_for_each(|stack| {
        left.begin_stack();
        stack.iter().try_for_each(|place| left.take(count(place)))
    })
}

/// Reads the mappings and locations of a file that is not compressed, in the order of the file. The
/// values are not looked at.
pub(crate) fn places(bytes: &[u8]) -> Result<Profile> {
    let file = decode(bytes)?;
    let tables = Tables::new(&file)?;
    let (mappings, locations) = (mappings(&file, &tables)?, locations(&file, &tables)?);
    Ok(Profile { mappings, locations, ..Profile::default() })
}

/// Decodes a file that is not compressed.
pub(crate) fn decode(bytes: &[u8]) -> Result<proto::Profile> {
    limits::check(bytes)?;
    proto::Profile::decode(&*limits::with_valid_names(bytes))
        .map_err(|error| format!("it is no pprof file, or a damaged one ({error})"))
}

/// Where the ids of the file lead.
struct Tables<'a> {
    names: Names,
    strings: &'a [String],
    mappings: HashMap<u64, usize>,
    locations: HashMap<u64, usize>,
    functions: HashMap<u64, usize>,
}

impl<'a> Tables<'a> {
    fn new(file: &'a proto::Profile) -> Result<Tables<'a>> {
        Ok(Tables {
            names: Names::default(),
            strings: &file.string_table,
            mappings: by_id(file.mapping.iter().map(|mapping| mapping.id), "mapping")?,
            locations: by_id(file.location.iter().map(|location| location.id), "location")?,
            functions: by_id(file.function.iter().map(|function| function.id), "function")?,
        })
    }

    fn string(&self, index: i64) -> Result<&'a str> {
        let string = usize::try_from(index).ok().and_then(|index| self.strings.get(index));
        match string {
            Some(string) => Ok(string),
            // Even an empty table has the empty string.
            None if index == 0 => Ok(""),
            None => Err(format!("string {index} is missing")),
        }
    }

    /// Returns a copy of a string.
    fn name(&self, index: i64) -> Result<String> {
        self.names.copy(self.string(index)?)
    }
}

fn by_id(ids: impl Iterator<Item = u64>, kind: &str) -> Result<HashMap<u64, usize>> {
    let mut map = HashMap::new();
    for (index, id) in ids.enumerate() {
        if map.insert(id, index).is_some() {
            return Err(format!("{kind} {id} appears twice"));
        }
    }
    Ok(map)
}

fn indices(ids: &[u64], of: &HashMap<u64, usize>, kind: &str) -> Result<Vec<usize>> {
    let find = |id: &u64| of.get(id).copied().ok_or_else(|| format!("{kind} {id} is missing"));
    ids.iter().map(find).collect()
}

/// The column of each value of [`TYPES`]. A profile of live blocks alone is accepted, and one of
/// their bytes alone, as Rust programs on jemalloc write it (the crate jemalloc_pprof).
fn columns(file: &proto::Profile, tables: &Tables<'_>) -> Result<[Option<usize>; 4]> {
    let mut names = Vec::new();
    for kind in &file.sample_type {
        names.push((tables.string(kind.kind)?, tables.string(kind.unit)?));
    }
    let column = |wanted: &str| names.iter().position(|(name, _)| *name == wanted);
    let mut columns = TYPES.map(column);
    if columns == [None; 4] {
        [columns[2], columns[3]] = LIVE.map(column);
    }
    let is_heap = match columns {
        [allocs, alloc_bytes, Some(_), Some(_)] => allocs.is_some() == alloc_bytes.is_some(),
        columns => matches!(columns, [None, None, None, Some(_)]),
    };
    if is_heap {
        return Ok(columns);
    }
    let has = if names.is_empty() { "none".to_owned() } else { shortened(&names) };
    Err(format!("it is no heap profile: that has the values {}; this has {has}", TYPES.join(", ")))
}

/// The first values of a file, for a message. There may be many, and with long names.
fn shortened(names: &[(&str, &str)]) -> String {
    const MOST: usize = 8;
    let first = names.iter().take(MOST);
    let first = first.map(|(name, unit)| format!("{}/{}", excerpt(name), excerpt(unit)));
    let more = if names.len() > MOST { ", and others" } else { "" };
    first.collect::<Vec<_>>().join(", ") + more
}

fn one_sample(
    sample: &proto::Sample,
    stack: usize,
    columns: &[Option<usize>; 4],
    file: &proto::Profile,
    tables: &Tables<'_>,
) -> Result<Sample> {
    let (has, wants) = (sample.value.len(), file.sample_type.len());
    if has != wants {
        return Err(format!("a sample has {has} values in place of {wants}"));
    }
    let value = |column: usize| columns[column].map(|column| sample.value[column]);
    let (live, live_bytes) = (value(2).unwrap_or(0), value(3).unwrap_or(0));
    let counts = Counts {
        allocs: value(0).unwrap_or(live),
        alloc_bytes: value(1).unwrap_or(live_bytes),
        live,
        live_bytes,
    };
    let mut out = Sample { stack, counts, ..Sample::default() };
    for label in &sample.label {
        match tables.string(label.key)? {
            "bytes" => out.size = u64::try_from(label.num).ok(),
            "arena" => out.arena = Some(label.num),
            "thread" => out.thread = Some(label.num),
            "thread_name" => out.thread_name = Some(tables.name(label.str)?),
            _ => {}
        }
    }
    Ok(out)
}

fn comments(file: &proto::Profile, tables: &Tables<'_>) -> Result<Vec<(String, String)>> {
    let mut out = Vec::new();
    for comment in &file.comment {
        let text = tables.string(*comment)?;
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        out.push((tables.names.copy(name)?, tables.names.copy(value)?));
    }
    Ok(out)
}

fn mappings(file: &proto::Profile, tables: &Tables<'_>) -> Result<Vec<Mapping>> {
    let mapping = |mapping: &proto::Mapping| {
        Ok(Mapping {
            start: mapping.memory_start,
            limit: mapping.memory_limit,
            offset: mapping.file_offset,
            file: tables.name(mapping.filename)?,
            build_id: tables.name(mapping.build_id)?.to_lowercase(),
        })
    };
    file.mapping.iter().map(mapping).collect()
}

fn locations(file: &proto::Profile, tables: &Tables<'_>) -> Result<Vec<Location>> {
    let mut out = Vec::new();
    for location in &file.location {
        let mapping = match location.mapping_id {
            0 => None,
            id => Some(indices(&[id], &tables.mappings, "mapping")?[0]),
        };
        let mut lines = Vec::new();
        for line in &location.line {
            let function =
                &file.function[indices(&[line.function_id], &tables.functions, "function")?[0]];
            let (name, system) =
                (tables.string(function.name)?, tables.string(function.system_name)?);
            lines.push(Line {
                function: tables.names.copy(if name.is_empty() { system } else { name })?,
                file: tables.name(function.filename)?,
                line: u64::try_from(line.line).unwrap_or(0),
            });
        }
        out.push(Location { address: location.address, mapping, lines });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::read as read_gzip;
    use super::super::testing::{File, gzip};
    use super::*;

    fn error(file: &File) -> String {
        read(&file.encode()).expect_err("no profile")
    }

    fn one_stack() -> File {
        File::default()
            .mapping(0x1000, 0x3000, "/bin/x", "AB12")
            .comment("pid=7")
            .comment("alone")
            .stack(&[0x1010, 0x2020], &[5, 500, 2, 200], &[("bytes", 100), ("arena", 3)])
            .stack(&[0x1010, 0x2020], &[0, 0, 1, 100], &[("bytes", 100), ("thread", 9)])
            .text_label("thread_name", "worker")
    }

    #[test]
    fn everything_in_a_file_is_read() {
        let profile = read(&one_stack().encode()).expect("a profile");
        assert_eq!((profile.period, profile.has_allocs, profile.is_sampled()), (1, true, false));
        assert_eq!(profile.comment("pid"), Some("7"));
        assert_eq!(profile.comment("alone"), Some(""));
        let mapping = &profile.mappings[0];
        assert_eq!((mapping.file.as_str(), mapping.build_id.as_str()), ("/bin/x", "ab12"));
        assert_eq!(profile.stacks, [[0, 1]], "one stack of two samples");
        assert_eq!(profile.locations[1].mapping, Some(0));
        let [first, second] = profile.samples.as_slice() else { panic!("{:?}", profile.samples) };
        assert_eq!((first.size, first.arena, first.thread), (Some(100), Some(3), None));
        assert_eq!((second.thread, second.thread_name.as_deref()), (Some(9), Some("worker")));
        let total = Counts { allocs: 5, alloc_bytes: 500, live: 3, live_bytes: 300 };
        assert_eq!(profile.total(), total);
    }

    #[test]
    fn functions_of_the_file_are_read() {
        let profile = File::default().path("main > f", 8, 1, 1).read();
        let line = &profile.locations[profile.stacks[0][0]].lines[0];
        assert_eq!((line.function.as_str(), line.file.as_str(), line.line), ("f", "f.c", 2));
    }

    #[test]
    fn a_path_that_is_no_utf_8_is_read() {
        let mut file = one_stack();
        file.profile.mapping[0].filename = file.string("/bin/a\u{7f}\u{7f}b\u{e4}");
        let mut bytes = file.encode();
        bytes.iter_mut().filter(|byte| **byte == 0x7f).for_each(|byte| *byte = 0xff);
        let profile = read(&bytes).expect("a profile");
        assert_eq!(profile.mappings[0].file, "/bin/a??b\u{e4}");
        assert_eq!(profile.total(), read(&file.encode()).expect("a profile").total());
    }

    #[test]
    fn a_profile_of_live_blocks_alone_has_these_as_allocations() {
        let mut file = one_stack();
        file.profile.sample_type.drain(..2);
        file.profile.sample.iter_mut().for_each(|sample| drop(sample.value.drain(..2)));
        let profile = read(&file.encode()).expect("a profile");
        assert!(!profile.has_allocs);
        assert_eq!(profile.total().allocs, 3);
    }

    #[test]
    fn live_blocks_may_be_objects_and_their_space() {
        let mut file = one_stack();
        file.profile.sample_type.drain(..2);
        file.profile.sample.iter_mut().for_each(|sample| drop(sample.value.drain(..2)));
        let expected = read(&file.encode());
        for (at, name) in LIVE.iter().enumerate() {
            file.profile.sample_type[at].kind = file.string(name);
        }
        assert_eq!(read(&file.encode()), expected);
        file.profile.sample_type[1].kind = file.string("samples");
        assert!(error(&file).ends_with("; this has objects/count, samples/bytes"));
    }

    /// The crate jemalloc_pprof writes no other value.
    #[test]
    fn live_bytes_may_be_alone() {
        let mut file = one_stack();
        file.profile.sample_type.drain(..3);
        file.profile.sample.iter_mut().for_each(|sample| drop(sample.value.drain(..3)));
        let profile = read(&file.encode()).expect("a profile");
        assert!(profile.lacks_blocks && !profile.has_allocs);
        let whole = read(&one_stack().encode()).expect("a profile").total();
        assert_eq!((profile.total().live, profile.total().live_bytes), (0, whole.live_bytes));
        file.profile.sample_type[0].kind = file.string("alloc_space");
        assert!(error(&file).ends_with("; this has alloc_space/bytes"));
    }

    #[test]
    fn profiles_of_other_things_say_what_they_have() {
        let mut file = one_stack();
        file.profile.sample_type.truncate(1);
        let wants = "it is no heap profile: that has the values alloc_objects, alloc_space, \
                     inuse_objects, inuse_space; this has";
        assert_eq!(error(&file), format!("{wants} alloc_objects/count"));
        assert_eq!(read(&[]), Err(format!("{wants} none")));
        let long = format!("\x1b{}", "x".repeat(99));
        let kind = proto::ValueType { kind: file.string(&long), unit: file.string("count") };
        file.profile.sample_type = vec![kind; 9];
        let has = format!("\u{fffd}{}…/count, ", "x".repeat(39)).repeat(8);
        assert_eq!(error(&file), format!("{wants} {has}and others"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut file = one_stack();
        file.profile.sample[0].location_id[0] = 77;
        assert_eq!(error(&file), "location 77 is missing");
        let mut file = one_stack();
        file.profile.location[0].mapping_id = 5;
        assert_eq!(error(&file), "mapping 5 is missing");
        let mut file = one_stack();
        file.profile.mapping[0].filename = 999;
        assert_eq!(error(&file), "string 999 is missing");
        let mut file = one_stack();
        file.profile.comment[0] = -1;
        assert_eq!(error(&file), "string -1 is missing");
        let mut file = File::default().path("main > f", 8, 1, 1);
        file.profile.location[0].line[0].function_id = 8;
        assert_eq!(error(&file), "function 8 is missing");
        let mut file = one_stack();
        file.profile.location[1].id = 1;
        assert_eq!(error(&file), "location 1 appears twice");
        let mut file = one_stack();
        file.profile.sample[0].value.pop();
        assert_eq!(error(&file), "a sample has 3 values in place of 4");
    }

    #[test]
    fn a_long_name_that_is_used_often_is_refused() {
        let mut file = one_stack();
        let long = file.string(&"x".repeat(1 << 20));
        file.profile.comment = vec![long; 1 << 10];
        let text = "it has more than 512 MiB of names, where each use of a name counts";
        let refused = |file: &File| read(&file.encode()).err();
        assert_eq!(refused(&file).as_deref(), Some(text));
        file.profile.comment.clear();
        let function = proto::Function { id: 1, name: long, ..proto::Function::default() };
        file.profile.function.push(function);
        file.profile.location[0].line = vec![proto::Line { function_id: 1, line: 1 }; 1 << 10];
        assert_eq!(refused(&file).as_deref(), Some(text));
    }

    #[test]
    fn a_place_of_many_functions_that_is_used_often_is_refused() {
        let mut file = File::default().path("main > f", 8, 1, 1);
        let place = &mut file.profile.location[0];
        place.line = vec![place.line[0].clone(); 5000];
        let id = place.id;
        let sample = file.profile.sample[0].clone();
        let other = |count| {
            let location_id = vec![id; count];
            proto::Sample { location_id, ..sample.clone() }
        };
        file.profile.sample = vec![other(1), other(2)];
        let profile = read(&file.encode()).expect("a profile");
        assert_eq!(check_frames(&profile, Frames::at_most(15_000)), Ok(()));
        let most = "it has more than 14999 frames of stacks, where each use of a place counts";
        let refused = check_frames(&profile, Frames::at_most(14_999));
        assert_eq!(refused.err().as_deref(), Some(most));
        file.profile.sample.push(other(3));
        let most = "it has a stack of more than 10000 frames";
        assert_eq!(error(&file), most);
        assert_eq!(read_parts(&file.encode()).err().as_deref(), Some(most));
        // Places without functions count too, and of equal stacks one.
        let plain = read(&one_stack().encode()).expect("a profile");
        assert_eq!(check_frames(&plain, Frames::at_most(2)), Ok(()));
        assert!(check_frames(&plain, Frames::at_most(1)).is_err());
    }

    #[test]
    fn a_file_that_unpacks_to_too_much_is_refused() {
        let text = "it unpacks to more than 1 MiB";
        assert_eq!(unpack_at_most(1 << 20, &gzip(&vec![0; (1 << 20) + 1])), Err(text.into()));
        assert_eq!(unpack_at_most(1 << 20, &gzip(&vec![0; 1 << 20])), Ok(vec![0; 1 << 20]));
    }

    #[test]
    fn files_that_are_cut_off_or_damaged_are_refused() {
        let whole = gzip(&one_stack().encode());
        assert_eq!(read_gzip(&whole[..whole.len() / 2]), Err("the file is cut off".into()));
        let mut damaged = whole.clone();
        let at = damaged.len() - 8;
        damaged[at] ^= 1;
        let message = read_gzip(&damaged).expect_err("damage");
        assert!(message.starts_with("the compressed data are damaged ("), "{message}");
        let message = read(&one_stack().encode()[..40]).expect_err("no message");
        assert!(message.starts_with("it is no pprof file, or a damaged one ("), "{message}");
    }
}
