//! Reads heap_v2, the text of jemalloc's heap profiler, as jeprof does.
//!
//! The numbers of a stack are those of samples. They become estimates by the mean size of the
//! stack's blocks: a block of `s` bytes is sampled with the chance `1 - e^(-s / R)`. Lines that
//! begin with `#` are notes of lumalloc.

use std::borrow::Cow;
use std::collections::HashMap;

use super::excerpt;
use super::limits::{Frames, Names, check_lines};
use super::moved_text::{self, Mapped};
use super::shares;
use crate::path_text;
use crate::profile::{Counts, Location, Mapping, Profile, Sample};
use crate::ranges;

type Result<T> = std::result::Result<T, String>;

/// Reads a whole file.
pub(super) fn read(bytes: &[u8]) -> Result<Profile> {
    let text = text(bytes);
    check_lines(&text)?;
    let mut lines = text.lines().map(str::trim).skip_while(|line| line.starts_with('%'));
    let rate = lines.next().and_then(|line| line.strip_prefix("heap_v2/")).ok_or(
        "it begins like heap_v2, but its first line is not heap_v2/ and a number of bytes",
    )?;
    let rate = rate.parse::<u64>().ok().filter(|rate| *rate > 0);
    let rate = rate.ok_or("the number after heap_v2/ is no number of bytes")?;
    let mut reader = Reader::new(rate);
    for line in lines.by_ref() {
        if line == "MAPPED_LIBRARIES:" {
            reader.is_whole = true;
            break;
        }
        reader.line(line)?;
    }
    if !reader.is_whole {
        return Err("the file is cut off: it has no line MAPPED_LIBRARIES:".into());
    }
    if reader.has_total && reader.stacks.is_empty() {
        return Err("the file is cut off: it has a total, and no stack".into());
    }
    if !text.ends_with('\n') {
        return Err("the file is cut off: its last line has no end".into());
    }
    let profile = reader.finish(mappings(lines))?;
    profile.check()?;
    Ok(profile)
}

/// The text of a file. Names of threads may be cut off inside a character, while paths keep all
/// their bytes.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let line = b"\nMAPPED_LIBRARIES:";
    let end = bytes.windows(line.len()).position(|window| window == line);
    let (stacks, mappings) = bytes.split_at(end.unwrap_or(bytes.len()));
    String::from_utf8_lossy(stacks) + path_text::text(mappings)
}

/// The numbers of one line: live blocks and bytes, and those since the start.
type Numbers = [u64; 4];

/// The lines below one stack.
#[derive(Default)]
struct Lines {
    all: Option<Numbers>,
    threads: Vec<(i64, Numbers)>,
}

struct Reader {
    rate: u64,
    is_whole: bool,
    /// Whether the line of all stacks, before them, has a number that is not 0.
    has_total: bool,
    /// Whether a line has numbers since the start. Without opt.prof_accum they are 0.
    has_allocs: bool,
    comments: Vec<(String, String)>,
    names: HashMap<i64, String>,
    stacks: Vec<Vec<u64>>,
    lines: Vec<Lines>,
    frames: Frames,
}

impl Reader {
    fn new(rate: u64) -> Reader {
        let (stacks, lines) = (Vec::new(), Vec::new());
        let (comments, names, frames) = (Vec::new(), HashMap::new(), Frames::default());
        let (is_whole, has_total, has_allocs) = (false, false, false);
        Reader { rate, is_whole, has_total, has_allocs, comments, names, stacks, lines, frames }
    }

    fn line(&mut self, line: &str) -> Result<()> {
        if let Some(addresses) = line.strip_prefix('@') {
            self.frames.begin_stack();
            let addresses = addresses.split_whitespace().map(|word| {
                self.frames.take(1)?;
                let digits = word.strip_prefix("0x").unwrap_or(word);
                u64::from_str_radix(digits, 16)
                    .map_err(|_| format!("{} is no address", excerpt(word)))
            });
            // A stack without addresses is written as 0, because of jeprof.
            let mut addresses = addresses.collect::<Result<Vec<u64>>>()?;
            addresses.retain(|address| *address != 0);
            self.stacks.push(addresses);
            self.lines.push(Lines::default());
        } else if let Some((thread, numbers, name)) = numbers(line) {
            self.has_allocs |= numbers[2..] != [0, 0];
            match (self.lines.last_mut(), thread) {
                (Some(lines), None) => {
                    // As jeprof, which adds lines up.
                    let all = lines.all.get_or_insert_default();
                    all.iter_mut().zip(numbers).for_each(|(sum, it)| *sum = sum.saturating_add(it));
                }
                (Some(lines), Some(thread)) => lines.threads.push((thread, numbers)),
                (None, Some(thread)) if !name.is_empty() => {
                    self.names.insert(thread, name.to_owned());
                }
                (None, None) => self.has_total |= numbers != Numbers::default(),
                (None, Some(_)) => {}
            }
        } else if let Some(note) = line.strip_prefix('#') {
            let (name, value) = note.split_once('=').unwrap_or((note, ""));
            self.comments.push((name.trim().to_owned(), value.trim().to_owned()));
        } else if !line.is_empty() {
            return Err(format!("a line of it is not understood: {}", excerpt(line)));
        }
        Ok(())
    }

    fn finish(self, mappings: Vec<Mapping>) -> Result<Profile> {
        let (period, has_allocs, comments) = (self.rate, self.has_allocs, self.comments);
        let mut profile = Profile { period, has_allocs, comments, mappings, ..Profile::default() };
        let (names, mut known) = (Names::default(), HashMap::new());
        for (addresses, lines) in self.stacks.iter().zip(&self.lines) {
            let stack = profile.stacks.len();
            for sample in samples(lines, self.rate, has_allocs) {
                let name = sample.thread.and_then(|thread| self.names.get(&thread));
                let thread_name = name.map(|name| names.copy(name)).transpose()?;
                profile.samples.push(Sample { stack, thread_name, ..sample });
            }
            let mut indices = Vec::new();
            for address in addresses {
                let index = *known.entry(*address).or_insert_with(|| {
                    // The call stands before its return address.
                    let address = address.saturating_sub(1);
                    profile.locations.push(Location { address, ..Location::default() });
                    profile.locations.len() - 1
                });
                indices.push(index);
            }
            profile.stacks.push(indices);
        }
        let addresses: Vec<_> = profile.locations.iter().map(|at| (at.address, 0)).collect();
        let found = ranges::find(&profile.mappings, &addresses);
        profile.locations.iter_mut().zip(found).for_each(|(at, mapping)| at.mapping = mapping);
        Ok(profile)
    }
}

/// The samples of one stack, which together have the numbers of its line `t*`: one for each thread,
/// and one for what belongs to no thread. That is what was freed, if the lines of threads have live
/// blocks only, as lumalloc's do.
fn samples(lines: &Lines, rate: u64, has_allocs: bool) -> Vec<Sample> {
    let apart = |numbers| apart(counts(numbers, rate, has_allocs));
    let mut parts: Vec<Apart> = lines.threads.iter().map(|(_, it)| apart(*it)).collect();
    let mut rest = lines.all.map(apart).unwrap_or_default();
    if lines.all.is_some() {
        for (at, rest) in rest.iter_mut().enumerate() {
            let mut column: Vec<i64> = parts.iter().map(|part| part[at]).collect();
            // The estimates of threads are of other mean sizes, and rounded. None is missing.
            shares::fit(&mut column, *rest, rate > 1);
            *rest -= column.iter().sum::<i64>();
            parts.iter_mut().zip(column).for_each(|(part, number)| part[at] = number);
        }
    }
    let threads = lines.threads.iter().map(|(thread, _)| Some(*thread));
    let of_threads = lines.threads.iter().map(|(_, numbers)| mean(*numbers));
    let mut all: Vec<_> = threads.zip(parts).zip(of_threads).collect();
    if all.is_empty() || rest != Apart::default() {
        all.push(((None, rest), mean_of_rest(lines)));
    }
    let sample =
        |((thread, [live, live_bytes, freed, freed_bytes]), mean_size): ((_, Apart), _)| {
            let (allocs, alloc_bytes) =
                (live.saturating_add(freed), live_bytes.saturating_add(freed_bytes));
            let counts = Counts { allocs, alloc_bytes, live, live_bytes };
            Sample { counts, thread, mean_size, ..Sample::default() }
        };
    all.into_iter().map(sample).collect()
}

/// The mean size of the blocks of a line. The estimate of their number is rounded, and may be 1 for
/// one and a half blocks.
fn mean(numbers: Numbers) -> Option<u64> {
    let [live, live_bytes, ever, ever_bytes] = numbers;
    let (count, bytes) = if ever > 0 { (ever, ever_bytes) } else { (live, live_bytes) };
    (count > 0).then(|| bytes.saturating_add(count / 2) / count)
}

/// The mean size of what the line of a stack has and no line of a thread has.
fn mean_of_rest(lines: &Lines) -> Option<u64> {
    let all = lines.all?;
    let sum = |sum: Numbers, (_, it): &(_, Numbers)| {
        [0, 1, 2, 3].map(|at| {
            // The blocks of a thread that has no numbers since the start are live.
            let own = if it[2..] == [0, 0] { it[at % 2] } else { it[at] };
            sum[at].saturating_add(own)
        })
    };
    let threads = lines.threads.iter().fold(Numbers::default(), sum);
    let rest = [0, 1, 2, 3].map(|at| all[at].saturating_sub(threads[at]));
    mean(rest).or(mean(all))
}

/// Live blocks and their bytes, and freed ones.
type Apart = [i64; 4];

/// No number is negative.
fn apart(counts: Counts) -> Apart {
    let Counts { allocs, alloc_bytes, live, live_bytes } = counts;
    [live, live_bytes, allocs - live, alloc_bytes - live_bytes]
}

/// The estimates from the numbers of samples.
fn counts(numbers: Numbers, rate: u64, has_allocs: bool) -> Counts {
    let estimate = |count: u64, bytes: u64| {
        if count == 0 || rate == 1 {
            let max = i64::MAX.unsigned_abs();
            return (count.min(max) as i64, bytes.min(max) as i64);
        }
        let chance = -f64::exp_m1(-(bytes as f64 / count as f64) / rate as f64);
        let scale = if chance > 0.0 { 1.0 / chance } else { 1.0 };
        ((count as f64 * scale).round() as i64, (bytes as f64 * scale).round() as i64)
    };
    let (live, live_bytes) = estimate(numbers[0], numbers[1]);
    let (allocs, alloc_bytes) =
        if has_allocs { estimate(numbers[2], numbers[3]) } else { (live, live_bytes) };
    // Estimates of freed blocks are never negative.
    let (allocs, alloc_bytes) = (allocs.max(live), alloc_bytes.max(live_bytes));
    Counts { allocs, alloc_bytes, live, live_bytes }
}

/// A line `t*: n: bytes [n: bytes] name`, and its thread.
fn numbers(line: &str) -> Option<(Option<i64>, Numbers, &str)> {
    let (thread, rest) = line.strip_prefix('t')?.split_once(": ")?;
    let thread = if thread == "*" { None } else { Some(thread.parse().ok()?) };
    let (live, rest) = rest.split_once('[')?;
    let (ever, name) = rest.split_once(']')?;
    let pair = |text: &str| {
        let (count, bytes) = text.split_once(':')?;
        Some((count.trim().parse().ok()?, bytes.trim().parse().ok()?))
    };
    let ((live, live_bytes), (ever, ever_bytes)) = (pair(live)?, pair(ever)?);
    Some((thread, [live, live_bytes, ever, ever_bytes], name.trim()))
}

/// The mappings of code in the lines of `/proc/self/maps`.
fn mappings<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Mapping> {
    let mut table: Vec<Mapped> = lines.filter_map(mapped).collect();
    moved_text::claim(&mut table);
    let code = |line: Mapped| line.is_code.then_some(line.mapping);
    table.into_iter().filter_map(code).collect()
}

/// A line of `/proc/self/maps`.
fn mapped(line: &str) -> Option<Mapped> {
    let (range, rest) = line.split_once(' ')?;
    let (start, limit) = range.split_once('-')?;
    let mut words = rest.splitn(5, ' ');
    let is_code = words.next()?.contains('x');
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let file = words.nth(2).unwrap_or("").trim();
    let mapping = Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        limit: u64::from_str_radix(limit, 16).ok()?,
        offset,
        file: file.to_owned(),
        build_id: String::new(),
    };
    Some(Mapped { mapping, is_code })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: &str = "heap_v2/1
  t*: 3: 300 [5: 500]
  t1: 1: 100 [1: 100] main
  t7: 2: 200 [4: 400] a worker
@ 0x401001 0x402002
  t*: 3: 300 [5: 500]
  t1: 1: 100 [1: 100]
  t7: 2: 200 [4: 400]

MAPPED_LIBRARIES:
00400000-00401000 r--p 00000000 08:01 12                         /bin/a program
00401000-00402000 r-xp 00001000 08:01 12                         /bin/a program
7fff0000-7fff2000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn stacks_threads_and_mappings_are_read() {
        let profile = read(EXACT.as_bytes()).expect("a profile");
        assert!(profile.has_allocs && !profile.is_sampled());
        let total = Counts { allocs: 5, alloc_bytes: 500, live: 3, live_bytes: 300 };
        assert_eq!(profile.total(), total);
        let names: Vec<_> = profile.samples.iter().map(|s| s.thread_name.as_deref()).collect();
        assert_eq!(names, [Some("main"), Some("a worker")]);
        let addresses: Vec<u64> = profile.locations.iter().map(|l| l.address).collect();
        assert_eq!(
            (addresses, profile.stacks.clone()),
            (vec![0x40_1000, 0x40_2001], vec![vec![0, 1]])
        );
        assert_eq!(profile.locations[0].mapping, Some(0));
        assert_eq!(profile.locations[1].mapping, None, "the range has an end");
        let mapping = &profile.mappings[0];
        assert_eq!((mapping.file.as_str(), mapping.offset), ("/bin/a program", 0x1000));
        assert_eq!(profile.mappings[1].file, "[vdso]");
    }

    #[test]
    fn paths_keep_all_bytes_and_names_are_shown() {
        let text = EXACT.replace("/bin/a program", "/bin/#").replace("a worker", "a worker#");
        let bytes: Vec<u8> =
            text.bytes().map(|byte| if byte == b'#' { 0xc3 } else { byte }).collect();
        let profile = read(&bytes).expect("a profile");
        assert_eq!(profile.mappings[0].file, "/bin/\\303");
        let names: Vec<_> = profile.samples.iter().map(|s| s.thread_name.as_deref()).collect();
        assert_eq!(names, [Some("main"), Some("a worker\u{fffd}")]);
    }

    /// The mappings of code: where they are, and the offsets and names of their files.
    fn code(table: &[&str]) -> Vec<(u64, u64, u64, String)> {
        let all = mappings(table.iter().copied()).into_iter();
        all.map(|it| (it.start, it.limit, it.offset, it.file)).collect()
    }

    #[test]
    fn code_between_two_mappings_of_a_file_belongs_to_it() {
        let table = [
            "10000-11000 r--p 00000000 00:01 7 /a b",
            "11000-12000 r-xp 00001000 00:00 0",
            "12000-14000 rwxp 00000000 00:00 0",
            "14000-15000 r--p 00004000 00:01 7 /a b",
            "15000-16000 r-xp 00000000 00:00 0",
        ];
        let file = |start, limit, offset| (start, limit, offset, "/a b".to_owned());
        let none = (0x15000, 0x16000, 0, String::new());
        let expected = [file(0x11000, 0x12000, 0x1000), file(0x12000, 0x14000, 0x2000), none];
        assert_eq!(code(&table), expected);
    }

    #[test]
    fn other_code_without_a_file_belongs_to_none() {
        let whole = [
            "11000-12000 rw-p 00001000 00:01 7 /a",
            "12000-15000 r-xp 00000000 00:00 0",
            "15000-16000 r--p 00005000 00:01 7 /a",
        ];
        let file = |table: &[&str]| code(table).pop().map(|(.., file)| file);
        assert_eq!(file(&whole).as_deref(), Some("/a"));
        assert_eq!(file(&whole[1..]).as_deref(), Some(""));
        assert_eq!(file(&whole[..2]).as_deref(), Some(""));
        for (at, other) in [
            (0, "11000-12000 rw-p 00001000 00:01 8 /b"),
            (0, "11000-12000 rw-p 00002000 00:01 7 /a"),
            (0, "10000-11000 rw-p 00000000 00:01 7 /a"),
            (1, "12000-14000 r-xp 00000000 00:00 0"),
            (1, "13000-15000 r-xp 00000000 00:00 0"),
        ] {
            let mut lines = whole;
            lines[at] = other;
            assert_eq!(file(&lines).as_deref(), Some(""), "{other}");
        }
        let [first, code, last] = whole.map(|line| line.replace("/a", "[heap]"));
        assert_eq!(file(&[&first, &code, &last]).as_deref(), Some(""));
    }

    #[test]
    fn notes_are_read() {
        let text = EXACT.replacen("\n@", "\n# stats.allocated=4096\n#pid = 7\n# else\n@", 1);
        let profile = read(text.as_bytes()).expect("a profile");
        assert_eq!(profile.comment("stats.allocated"), Some("4096"));
        assert_eq!((profile.comment("pid"), profile.comment("else")), (Some("7"), Some("")));
        assert_eq!(profile.total(), read(EXACT.as_bytes()).expect("a profile").total());
    }

    #[test]
    fn a_stack_may_have_no_addresses() {
        for stack in ["@", "@ 0x0", "@ 0x0000000000000000"] {
            let text = format!("heap_v2/1\n{stack}\n t*: 2: 40 [0: 0]\nMAPPED_LIBRARIES:\n");
            let profile = read(text.as_bytes()).expect("a profile");
            assert_eq!((profile.total().live_bytes, profile.stacks), (40, vec![vec![]]), "{stack}");
        }
    }

    #[test]
    fn samples_become_the_estimates_of_jeprof() {
        let text = "heap_v2/1000\n@ 0x5\n t*: 2: 2000 [0: 0]\nMAPPED_LIBRARIES:\n";
        let profile = read(text.as_bytes()).expect("a profile");
        // 1 / (1 - 1/e) = 1.58198
        let total = Counts { allocs: 3, alloc_bytes: 3164, live: 3, live_bytes: 3164 };
        assert_eq!(profile.total(), total);
        assert!(!profile.has_allocs && profile.is_sampled());
    }

    #[test]
    fn mean_sizes_are_those_of_the_file() {
        let of = |text: &str| -> Vec<_> {
            let profile = read(text.as_bytes()).expect("a profile");
            profile.samples.iter().map(|one| (one.thread, one.mean_size())).collect()
        };
        let file = |lines: &str| format!("heap_v2/1024\n@ 0x5\n{lines}\nMAPPED_LIBRARIES:\n");
        // The estimates are 2 blocks of 1620 bytes together.
        assert_eq!(of(&file("t*: 1: 1024 [0: 0]")), [(None, 1024)]);
        assert_eq!(of(&file("t*: 3: 3071 [0: 0]")), [(None, 1024)]);
        assert_eq!(of(&file("t*: 0: 0 [0: 0]")), [(None, 0)]);
        // What is freed belongs to no thread.
        let lines = "t*: 3: 3000 [5: 3400]\nt1: 1: 2000 [0: 0]\nt2: 2: 1000 [0: 0]";
        assert_eq!(of(&file(lines)), [(Some(1), 2000), (Some(2), 500), (None, 200)]);
        let exact = file("t*: 3: 3000 [5: 3400]\nt1: 1: 2000 [2: 2100]").replace("/1024", "/1");
        assert_eq!(of(&exact), [(Some(1), 1050), (None, 433)]);
    }

    #[test]
    fn allocations_are_counted_if_a_line_has_some() {
        let has_allocs = |lines: &str| {
            let text = format!("heap_v2/1\n{lines}\nMAPPED_LIBRARIES:\n");
            read(text.as_bytes()).expect("a profile").has_allocs
        };
        assert!(!has_allocs("t*: 0: 0 [0: 0]"), "there may have been some");
        assert!(!has_allocs("t*: 1: 10 [0: 0]\n@ 0x5\nt*: 1: 10 [0: 0]"));
        assert!(has_allocs("t*: 0: 0 [2: 20]\n@ 0x5\nt*: 0: 0 [0: 0]"), "the total");
        assert!(has_allocs("@ 0x5\nt1: 0: 0 [2: 20]"), "a thread");
    }

    #[test]
    fn lines_of_one_stack_are_added() {
        let lines = "t*: 1: 10 [2: 20]\nt*: 3: 30 [4: 40]\n";
        let text = format!("heap_v2/1\n@ 0x5\n{lines}@ 0x5\n{lines}MAPPED_LIBRARIES:\n");
        let total = Counts { allocs: 12, alloc_bytes: 120, live: 8, live_bytes: 80 };
        assert_eq!(read(text.as_bytes()).expect("a profile").total(), total);
        let most = u64::MAX;
        let line = format!("t*: {most}: {most} [{most}: {most}]\n").repeat(2);
        let refused =
            read(format!("heap_v2/1\n@ 5\n{line}@ 6\n{line}MAPPED_LIBRARIES:\n").as_bytes());
        assert_eq!(refused.err().as_deref(), Some("its numbers are too large to be added"));
    }

    #[test]
    fn many_mappings_and_many_addresses_are_read() {
        // With a look at each mapping for each address this takes minutes.
        let count = 150_000u64;
        let stack = |at| format!("@ {:#x}\n t*: 1: 1 [0: 0]\n", at * 32 + 9);
        let range = |at| format!("{:x}-{:x} r-xp 0 0:0 0 [{at}]\n", at * 32, at * 32 + 16);
        let stacks: String = (1..=count).map(stack).collect();
        let ranges: String = (1..=count).map(range).collect();
        let text = format!("heap_v2/1\n{stacks}MAPPED_LIBRARIES:\n{ranges}");
        let profile = read(text.as_bytes()).expect("a profile");
        let last = profile.locations.last().and_then(|last| last.mapping);
        assert_eq!(last.map(|last| profile.mappings[last].file.as_str()), Some("[150000]"));
    }

    #[test]
    fn counts_of_each_allocation_stay_as_they_are() {
        let text = "heap_v2/1\n@ 0x5\n t*: 9: 9 [9: 9]\nMAPPED_LIBRARIES:\n";
        let total = Counts { allocs: 9, alloc_bytes: 9, live: 9, live_bytes: 9 };
        assert_eq!(read(text.as_bytes()).expect("a profile").total(), total);
    }

    /// The thread, and the numbers of each sample as in a line of the file.
    fn seen(text: &str) -> Vec<(Option<i64>, [i64; 4])> {
        let profile = read(text.as_bytes()).expect("a profile");
        let numbers =
            |counts: Counts| [counts.live, counts.live_bytes, counts.allocs, counts.alloc_bytes];
        profile.samples.iter().map(|one| (one.thread, numbers(one.counts))).collect()
    }

    #[test]
    fn what_no_line_of_a_thread_has_belongs_to_no_thread() {
        let text = EXACT.replace("  t7: 2: 200 [4: 400]\n\n", "\n");
        let expected = [(Some(1), [1, 100, 1, 100]), (None, [2, 200, 4, 400])];
        assert_eq!(seen(&text), expected);
    }

    #[test]
    fn threads_may_have_live_blocks_only() {
        let text = EXACT.replace("t1: 1: 100 [1: 100]", "t1: 1: 100 [0: 0]");
        let text = text.replace("t7: 2: 200 [4: 400]", "t7: 2: 200 [0: 0]");
        let live = [(Some(1), [1, 100, 1, 100]), (Some(7), [2, 200, 2, 200])];
        assert_eq!(seen(&text), [live[0], live[1], (None, [0, 0, 2, 200])]);
        let text = text.replace("[5: 500]", "[0: 0]");
        assert_eq!(seen(&text), live);
    }

    #[test]
    fn estimates_of_threads_add_up_to_that_of_the_stack() {
        // 1000 samples of 10 bytes and 1 of 10000. Alone, they stand for 100501 and 1 blocks.
        let text = "heap_v2/1000\n@ 0x5\n t*: 1001: 20000 [0: 0]\n t1: 1000: 10000 [0: 0]\n \
                    t2: 1: 10000 [0: 0]\nMAPPED_LIBRARIES:\n";
        let alone = text.replace("t*: 1001: 20000", "t*: 1000: 10000");
        let alone = alone.replace(" t2: 1: 10000 [0: 0]\n", "");
        assert_eq!(seen(&alone), [(Some(1), [100_501, 1_005_008, 100_501, 1_005_008])]);
        let [(Some(1), [many, ..]), (Some(2), [one, ..])] = seen(text)[..] else {
            panic!("{:?}", seen(text))
        };
        assert_eq!((many, one), (50_601, 1));
        let whole = text.replace(" t1: 1000: 10000 [0: 0]\n t2: 1: 10000 [0: 0]\n", "");
        let total = |text: &str| read(text.as_bytes()).expect("a profile").total();
        assert_eq!(total(text), total(&whole));
    }

    #[test]
    fn threads_of_a_stack_without_a_line_for_all_are_read() {
        let text = EXACT.replace("\n  t*: 3: 300 [5: 500]\n  t1: 1: 100 [1: 100]\n  t7", "\n  t7");
        assert_eq!(seen(&text), [(Some(7), [2, 200, 4, 400])]);
    }

    #[test]
    fn a_file_with_too_much_is_refused() {
        let lines = "heap_v2/1\n".to_owned() + &"@\n".repeat(10_000_000);
        let refused = read(lines.as_bytes()).err();
        assert_eq!(refused.as_deref(), Some("it has more than 10000000 lines"));
        let mut reader = Reader { frames: Frames::at_most(3), ..Reader::new(1) };
        assert_eq!((reader.line("@ 5 6"), reader.line("@ 5")), (Ok(()), Ok(())));
        let most = "it has more than 3 frames of stacks, where each use of a place counts";
        assert_eq!(reader.line("@ 5").err().as_deref(), Some(most), "the stacks together");
        let deep = format!("heap_v2/1\n@{}\n", " 0x5".repeat(10_001));
        let most = "it has a stack of more than 10000 frames";
        assert_eq!(read(deep.as_bytes()).err().as_deref(), Some(most));
    }

    #[test]
    fn what_is_not_heap_v2_is_refused() {
        let error = |text: &str| read(text.as_bytes()).expect_err("no profile");
        assert_eq!(error("heap_v2/0\n"), "the number after heap_v2/ is no number of bytes");
        assert_eq!(error("heap_v2/x\n"), "the number after heap_v2/ is no number of bytes");
        let cut = "the file is cut off: it has no line MAPPED_LIBRARIES:";
        assert_eq!(error(&EXACT[..EXACT.find("MAPPED").expect("the line")]), cut);
        let cut = "the file is cut off: its last line has no end";
        assert_eq!(error("heap_v2/9\nt*: 0: 0 [0: 0]\nMAPPED_LIBRARIES:"), cut);
        assert_eq!(error(EXACT.trim_end()), cut);
        let stacks = |text: &str| text.find("@").expect("a stack")..text.find("\nM").expect("it");
        let mut without = EXACT.to_owned();
        without.replace_range(stacks(EXACT), "");
        let cut = "the file is cut off: it has a total, and no stack";
        assert_eq!(error(&without), cut);
        assert_eq!(error("heap_v2/9\nt*: 0: 0 [5: 500]\nMAPPED_LIBRARIES:\n"), cut);
        let empty = read(b"heap_v2/9\n  t*: 0: 0 [0: 0]\nMAPPED_LIBRARIES:\n").expect("a profile");
        assert_eq!(empty.total(), Counts::default());
        let begin =
            "it begins like heap_v2, but its first line is not heap_v2/ and a number of bytes";
        assert_eq!(error("help"), begin);
        assert_eq!(error("heap_v2/1\n@ 0xzz\n"), "0xzz is no address");
        let other = "a line of it is not understood: what is this";
        assert_eq!(error("heap_v2/1\nwhat is this\n"), other);
        let long = format!("heap_v2/1\n@ \x1b{}\n", "z".repeat(40));
        assert_eq!(error(&long), format!("\u{fffd}{}… is no address", "z".repeat(39)));
        let name = "x".repeat(1 << 20);
        let samples = "t7: 1: 1 [1: 1]\n".repeat(513);
        let text = format!("heap_v2/1\nt7: 1: 1 [1: 1] {name}\n@ 0x5\n{samples}");
        let most = "it has more than 512 MiB of names, where each use of a name counts";
        let refused = read(format!("{text}MAPPED_LIBRARIES:\n").as_bytes()).err();
        assert_eq!(refused.as_deref(), Some(most));
    }
}
