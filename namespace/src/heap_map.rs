//! The heap as a map, as JSON: see [`lumalloc::observe::heap_map`].
//!
//! The text is written while the heap is looked at, run by run, so it needs no memory. Addresses
//! are texts of hexadecimal digits, `"0x7f0000001000"`.
use crate::writer::Writer;
use core::time::Duration;
use lumalloc::observe::{self, LiveSample, Run};

/// The page of the heap: the unit that a map is drawn in.
pub const PAGE: usize = 4096;

/// The part of a map that [`print()`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Runs of this arena alone. `None`: all.
    pub arena: Option<u32>,
    /// The lowest address.
    pub from: usize,
    /// The largest number of runs. 0: no bound.
    pub most: usize,
}

/// Writes `{"page":4096,"runs":[{…},…],"next":…}`. `next` is the `from` of the next part, and
/// `null` after the last run. No lock is held while the callback of the writer runs.
pub fn print(writer: &mut Writer, part: Part) {
    begin(writer);
    writer.text(",\"runs\":[");
    let is_wanted = |run: &Run| part.arena.is_none_or(|arena| run.arena == Some(arena));
    let mut runs = observe::heap_map_from(part.from).filter(is_wanted);
    let most = if part.most == 0 { usize::MAX } else { part.most };
    for (n, run) in runs.by_ref().take(most).enumerate() {
        writer.text(if n == 0 { "\n" } else { ",\n" });
        write_run(writer, &run);
    }
    writer.text("\n],\"next\":");
    match runs.next() {
        Some(run) => write_address(writer, run.base),
        None => writer.text("null"),
    }
    writer.text("}\n");
}

/// Writes the run around an address, and the sites whose samples are in use in it:
/// `{"page":4096,"run":{…},"sites":[{…},…],"others":{…}}`. `run` is `null` if there is no run, and
/// the sites are empty without the heap profiler (`opt.prof`). The first 64 sites by address have
/// an element each. The `others` are counted together.
pub fn print_at(writer: &mut Writer, address: usize) {
    begin(writer);
    writer.text(",\"run\":");
    let mut sites = Sites { first: [Site::NONE; MOST_SITES], others: Site::NONE };
    match observe::heap_map().find(|run| address.wrapping_sub(run.base) < run.bytes) {
        Some(run) => {
            write_run(writer, &run);
            run.samples(|sample| sites.add(&sample));
        }
        None => writer.text("null"),
    }
    writer.text(",\"sites\":[");
    let named = sites.first.iter().filter(|site| site.objects > 0);
    for (n, site) in named.enumerate() {
        writer.text(if n == 0 { "\n" } else { ",\n" });
        site.write(writer);
    }
    writer.text("\n],\"others\":");
    sites.others.write(writer);
    writer.text("}\n");
}

fn begin(writer: &mut Writer) {
    writer.text("{\"page\":");
    writer.number(PAGE as u64);
}

fn write_run(writer: &mut Writer, run: &Run) {
    writer.text("{\"base\":");
    write_address(writer, run.base);
    member(writer, ",\"bytes\":", run.bytes);
    writer.text(",\"state\":\"");
    writer.text(run.state.name());
    writer.text("\",\"arena\":");
    match run.arena {
        Some(arena) => writer.number(u64::from(arena)),
        None => writer.text("null"),
    }
    member(writer, ",\"block\":", run.block);
    member(writer, ",\"blocks\":", run.blocks);
    member(writer, ",\"used\":", run.used);
    writer.text(if run.huge { ",\"huge\":true" } else { ",\"huge\":false" });
    member(writer, ",\"purgeable\":", run.purgeable);
    member(writer, ",\"absent\":", run.absent);
    write_age(writer, run.oldest());
    writer.text("}");
}

fn member(writer: &mut Writer, key: &str, number: usize) {
    writer.text(key);
    writer.number(number as u64);
}

fn write_age(writer: &mut Writer, age: Option<Duration>) {
    writer.text(",\"oldest_ms\":");
    match age {
        Some(age) => writer.number(u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        None => writer.text("null"),
    }
}

fn write_address(writer: &mut Writer, address: usize) {
    writer.text("\"0x");
    let digits = (usize::BITS - address.leading_zeros()).div_ceil(4).max(1);
    for n in (0..digits).rev() {
        let digit = (address >> (4 * n) & 15) as u8;
        writer.bytes(&[if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }]);
    }
    writer.text("\"");
}

/// Sites that have an element of their own.
const MOST_SITES: usize = 64;

/// What the samples of one stack in a run add up to.
#[derive(Clone, Copy)]
struct Site {
    stack: &'static [usize],
    objects: usize,
    requested: usize,
    usable: usize,
    oldest: Option<Duration>,
}

impl Site {
    const NONE: Site = Site { stack: &[], objects: 0, requested: 0, usable: 0, oldest: None };

    fn add(&mut self, sample: &LiveSample) {
        self.objects += 1;
        self.requested = self.requested.saturating_add(sample.requested);
        self.usable = self.usable.saturating_add(sample.usable);
        self.oldest = self.oldest.max(Some(sample.age()));
    }

    fn write(&self, writer: &mut Writer) {
        member(writer, "{\"objects\":", self.objects);
        member(writer, ",\"requested\":", self.requested);
        member(writer, ",\"usable\":", self.usable);
        write_age(writer, self.oldest);
        writer.text(",\"stack\":[");
        for (n, frame) in self.stack.iter().enumerate() {
            writer.text(if n == 0 { "" } else { "," });
            write_address(writer, *frame);
        }
        writer.text("]}");
    }
}

struct Sites {
    first: [Site; MOST_SITES],
    others: Site,
}

impl Sites {
    /// A stack is stored once, so its place tells it from others.
    fn add(&mut self, sample: &LiveSample) {
        let is_it = |site: &&mut Site| {
            site.objects == 0 || core::ptr::eq(site.stack.as_ptr(), sample.stack.as_ptr())
        };
        match self.first.iter_mut().find(is_it) {
            Some(site) => {
                site.stack = sample.stack;
                site.add(sample);
            }
            None => self.others.add(sample),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::tests::collected;
    use lumalloc::raw;

    #[test]
    fn addresses_are_hexadecimal() {
        for (address, expected) in [
            (0, "\"0x0\""),
            (0xabc, "\"0xabc\""),
            (0x7f00_1234_5000, "\"0x7f0012345000\""),
            (usize::MAX, "\"0xffffffffffffffff\""),
        ] {
            assert_eq!(collected(|writer| write_address(writer, address)), expected);
        }
    }

    #[test]
    fn a_run_has_all_its_facts() {
        let block = raw::malloc(1 << 20);
        let run = observe::heap_map().find(|run| run.base == block.addr()).expect("a run");
        let text = collected(|writer| print_at(writer, block.addr() + 70_000));
        let expected = std::format!(
            "{{\"page\":4096,\"run\":{{\"base\":\"{:#x}\",\"bytes\":1048576,\"state\":\"large\",\
             \"arena\":{},\"block\":1048576,\"blocks\":1,\"used\":1,\"huge\":{},\"purgeable\":0,\
             \"absent\":0,\"oldest_ms\":null}},\"sites\":[\n],\"others\":{{\"objects\":0,\
             \"requested\":0,\"usable\":0,\"oldest_ms\":null,\"stack\":[]}}}}\n",
            run.base,
            run.arena.unwrap(),
            run.huge
        );
        assert_eq!(text, expected);
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(block) };
    }

    #[test]
    fn no_run_is_null() {
        let text = collected(|writer| print_at(writer, 64));
        assert!(text.starts_with("{\"page\":4096,\"run\":null,\"sites\":[\n],"), "{text}");
    }

    #[test]
    fn parts_end_where_the_next_begins() {
        let _block = raw::malloc(1 << 20);
        let one = |from| collected(|writer| print(writer, Part { arena: None, from, most: 1 }));
        let (mut from, mut seen) = (0, 0);
        loop {
            let text = one(from);
            assert!(text.matches("\"base\":").count() <= 1, "{text}");
            seen += 1;
            let next = text.rsplit_once("\"next\":").expect("next").1.trim_end_matches("}\n");
            if next == "null" {
                break;
            }
            let digits = next.trim_matches('"').strip_prefix("0x").expect("an address");
            let next = usize::from_str_radix(digits, 16).expect("digits");
            assert!(next > from, "{next:x} after {from:x}");
            from = next;
        }
        assert!(seen > 1);
        let none = Part { arena: Some(4000), from: 0, most: 0 };
        let text = collected(|writer| print(writer, none));
        assert_eq!(text, "{\"page\":4096,\"runs\":[\n],\"next\":null}\n");
    }

    #[test]
    fn sites_are_told_apart_up_to_a_number() {
        static STACKS: [[usize; 2]; MOST_SITES + 2] = [[0x10, 0x20]; MOST_SITES + 2];
        let mut sites = Sites { first: [Site::NONE; MOST_SITES], others: Site::NONE };
        for (n, stack) in STACKS.iter().chain(&STACKS[..3]).enumerate() {
            let address = n * 64;
            sites.add(&LiveSample {
                address,
                stack,
                requested: 10,
                usable: 16,
                arena: 0,
                thread: 1,
                thread_name: "",
                time: 0,
            });
        }
        let counts = |site: &Site| (site.objects, site.requested, site.usable);
        assert_eq!(counts(&sites.first[0]), (2, 20, 32));
        assert_eq!(counts(&sites.first[3]), (1, 10, 16));
        assert_eq!((counts(&sites.others), sites.others.stack.len()), ((2, 20, 32), 0));
        let text = collected(|writer| sites.first[3].write(writer));
        assert!(text.starts_with("{\"objects\":1,\"requested\":10,\"usable\":16,\"oldest_ms\":"));
        assert!(text.ends_with(",\"stack\":[\"0x10\",\"0x20\"]}"), "{text}");
    }
}
