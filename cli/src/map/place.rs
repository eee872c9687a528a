//! What lies at an address: the run, its blocks, and the sites that hold them.

use std::fmt::Write;

use serde::Deserialize;

use super::heap::{Address, Run, State};
use super::picture::{age, size};
use crate::failure::printable;

/// What the exporter tells of an address.
#[derive(Debug, Deserialize)]
pub(crate) struct Place {
    run: Option<Run>,
    sites: Vec<Site>,
    others: Counts,
    /// A file tells no sites.
    #[serde(skip)]
    is_from_file: bool,
}

/// The samples of one stack.
#[derive(Debug, Deserialize)]
struct Site {
    #[serde(flatten)]
    counts: Counts,
    stack: Vec<Frame>,
}

#[derive(Debug, Default, Deserialize)]
struct Counts {
    objects: u64,
    requested: u64,
    oldest_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Frame {
    address: Address,
    module: Option<String>,
    offset: Option<Address>,
    symbol: Option<String>,
}

impl Place {
    /// A place in a file, which has no sites.
    pub(crate) fn in_file(run: Option<&Run>) -> Place {
        let (sites, others) = (Vec::new(), Counts::default());
        Place { run: run.cloned(), sites, others, is_from_file: true }
    }

    /// Parses the exporter's JSON.
    pub(crate) fn parse(json: &[u8]) -> Result<Place, String> {
        serde_json::from_slice(json).map_err(|error| error.to_string())
    }

    /// Returns the text for a person, or `None` if no run is there.
    pub(crate) fn describe(&self, address: Address) -> Option<String> {
        let mut text = String::new();
        let run = self.run.as_ref().filter(|run| run.contains(address))?;
        about_run(&mut text, run, address);
        if self.is_from_file {
            text.push_str("a file does not tell who holds it\n");
        } else if self.sites.is_empty() {
            text.push_str("no sampled block is in use here\n");
        }
        for site in &self.sites {
            about(&mut text, &site.counts, "held by");
            site.stack.iter().for_each(|frame| about_frame(&mut text, frame));
        }
        if self.others.objects > 0 {
            about(&mut text, &self.others, "other sites hold");
        }
        Some(text)
    }
}

// Writing to a string does not fail.
fn about_run(text: &mut String, run: &Run, address: Address) {
    let (name, meaning) = run.state.words();
    let _ = write!(text, "{:#x}: {name}, {} from {:#x} on", address.0, size(run.bytes), run.base.0);
    let _ = match run.arena {
        Some(arena) => writeln!(text, ", arena {arena}"),
        None => writeln!(text),
    };
    match run.state {
        State::Slab | State::Samples => about_blocks(text, run, address),
        _ => drop(writeln!(text, "  {meaning}")),
    }
    let huge = if run.huge { "asked for" } else { "not asked for" };
    let _ = writeln!(text, "  huge pages {huge}");
    let (purgeable, absent) = (size(run.purgeable), size(run.absent));
    let _ = writeln!(text, "  a purge would give back {purgeable}; {absent} are without memory");
    if let Some(oldest) = run.oldest_ms {
        let _ = writeln!(text, "  the oldest sample in use is {} old", age(oldest));
    }
}

fn about_blocks(text: &mut String, run: &Run, address: Address) {
    let Run { block, blocks, used, .. } = run;
    let percent = used.saturating_mul(100) / (*blocks).max(1);
    let _ = writeln!(text, "  {used} of {blocks} blocks of {block} bytes are in use ({percent} %)");
    let number = (address.0 - run.base.0) / (*block).max(1);
    if number < *blocks {
        let base = run.base.0 + number * block;
        let _ = writeln!(text, "  the address lies in block {number}, which begins at {base:#x}");
    } else {
        let _ = writeln!(text, "  the address lies behind the last block");
    }
}

fn about(text: &mut String, counts: &Counts, what: &str) {
    let Counts { objects, requested, oldest_ms } = counts;
    let _ = write!(text, "{what} {objects} sampled blocks, {} asked for", size(*requested));
    let _ = match oldest_ms {
        Some(oldest) => writeln!(text, ", the oldest {} old:", age(*oldest)),
        None => writeln!(text, ":"),
    };
}

fn about_frame(text: &mut String, frame: &Frame) {
    let Frame { address, module, offset, symbol } = frame;
    let place = match (module, offset) {
        (Some(module), Some(offset)) => format!("{}+{:#x}", printable(module), offset.0),
        _ => format!("{:#x}", address.0),
    };
    let _ = match symbol {
        Some(symbol) => writeln!(text, "    {}  {place}", printable(symbol)),
        None => writeln!(text, "    {place}"),
    };
}

#[cfg(test)]
mod tests {
    use super::super::heap::tests::{run, slab};
    use super::*;

    #[test]
    fn a_slab_tells_its_blocks_and_who_holds_them() {
        let run = Run { oldest_ms: Some(9000), state: State::Samples, ..slab(16, 512) };
        let json = serde_json::json!({ "page": 4096, "run": run, "sites": [
            { "objects": 2, "requested": 100, "usable": 128, "oldest_ms": 9000, "stack": [
                { "address": "0x99", "module": "/bin/x", "offset": "0x9", "symbol": "main" },
                { "address": "0x98", "module": null, "offset": null, "symbol": null },
            ] },
        ], "others": { "objects": 1, "requested": 7, "usable": 8, "oldest_ms": 5, "stack": [] } });
        let place = Place::parse(json.to_string().as_bytes()).unwrap();
        let expected = "\
0x10050: samples, 64 KiB from 0x10000 on, arena 1
  512 of 1024 blocks of 64 bytes are in use (50 %)
  the address lies in block 1, which begins at 0x10040
  huge pages not asked for
  a purge would give back 0 B; 0 B are without memory
  the oldest sample in use is 9 s old
held by 2 sampled blocks, 100 B asked for, the oldest 9 s old:
    main  /bin/x+0x9
    0x98
other sites hold 1 sampled blocks, 7 B asked for, the oldest 5 ms old:
";
        assert_eq!(place.describe(Address(0x10050)).as_deref(), Some(expected));
    }

    #[test]
    fn a_run_that_is_elsewhere_is_none() {
        let place = Place::in_file(Some(&slab(16, 1)));
        assert_eq!([0xffff, 0x20000].map(|at| place.describe(Address(at))), [None, None]);
    }

    #[test]
    fn names_do_not_control_the_terminal() {
        let (module, symbol) = (Some("/bin/\x1b[2J".to_owned()), Some("a\rb".to_owned()));
        let frame = Frame { address: Address(0x99), module, offset: Some(Address(9)), symbol };
        let mut text = String::new();
        about_frame(&mut text, &frame);
        assert_eq!(text, "    a\u{fffd}b  /bin/\u{fffd}[2J+0x9\n");
    }

    #[test]
    fn a_file_tells_no_sites() {
        let run = Run { arena: None, huge: true, ..run(16, 1, State::Metadata) };
        let text = Place::in_file(Some(&run)).describe(Address(0x10001));
        let expected = "\
0x10001: metadata, 4 KiB from 0x10000 on
  the allocator's own records
  huge pages asked for
  a purge would give back 0 B; 0 B are without memory
a file does not tell who holds it
";
        assert_eq!(text.as_deref(), Some(expected));
        assert_eq!(Place::in_file(None).describe(Address(1)), None);
    }

    #[test]
    fn what_lies_beside_the_blocks_and_samples_is_said() {
        // The page has one block, which is smaller.
        let run = Run { block: 4000, blocks: 1, used: 1, ..run(16, 1, State::Slab) };
        let counts = serde_json::json!({ "objects": 0, "requested": 0, "oldest_ms": null });
        let json = serde_json::json!({ "run": run, "sites": [], "others": counts });
        let place = Place::parse(json.to_string().as_bytes()).unwrap();
        let expected = "\
0x10fff: slab, 4 KiB from 0x10000 on, arena 1
  1 of 1 blocks of 4000 bytes are in use (100 %)
  the address lies behind the last block
  huge pages not asked for
  a purge would give back 0 B; 0 B are without memory
no sampled block is in use here
";
        assert_eq!(place.describe(Address(0x10fff)).as_deref(), Some(expected));
    }
}
