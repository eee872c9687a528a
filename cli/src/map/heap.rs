//! A map of a heap, as the exporter serves it and as files keep it.

use serde::{Deserialize, Serialize};

/// An address, written as `"0x7f0000001000"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Address(pub(crate) u64);

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        address(&text)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        format!("{:#x}", address.0)
    }
}

/// Parses an address with or without `0x`, in hexadecimal.
pub(crate) fn parse_address(text: &str) -> Result<Address, String> {
    address(text).or_else(|wrong| address(&format!("0x{text}")).map_err(|_| wrong))
}

fn address(text: &str) -> Result<Address, String> {
    let digits = text.strip_prefix("0x").unwrap_or_default();
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    match u64::from_str_radix(digits, 16) {
        Ok(address) if is_plain => Ok(Address(address)),
        _ => Err(format!("'{text}' is not an address like 0x7f0000001000")),
    }
}

/// What a run of pages is used for. The names are those of `lumalloc::observe::RunState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Blocks of one size class.
    Slab,
    /// The same, of samples of the heap profiler.
    Samples,
    /// A large block.
    Large,
    /// A freed large block that a thread keeps.
    Kept,
    /// Unused, with memory.
    Dirty,
    /// Unused; the system may take the memory.
    Muzzy,
    /// Addresses without memory.
    Retained,
    /// Unused, and set aside.
    Aside,
    /// Guarded samples.
    Guarded,
    /// Records of the allocator.
    Metadata,
}

impl State {
    /// All states, in the order of the legend.
    pub(crate) const ALL: [State; 10] = [
        State::Slab,
        State::Samples,
        State::Large,
        State::Kept,
        State::Dirty,
        State::Muzzy,
        State::Retained,
        State::Aside,
        State::Guarded,
        State::Metadata,
    ];

    /// Returns the name, and what the state means.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            State::Slab => ("slab", "small blocks; tenths of the blocks in use"),
            State::Samples => ("samples", "small blocks that the heap profiler sampled"),
            State::Large => ("large", "a large block"),
            State::Kept => ("kept", "freed, kept by a thread for its next request"),
            State::Dirty => ("dirty", "unused, with memory"),
            State::Muzzy => ("muzzy", "unused, the system may take the memory"),
            State::Retained => ("retained", "addresses without memory"),
            State::Aside => ("aside", "unused, set aside"),
            State::Guarded => ("guarded", "guarded samples"),
            State::Metadata => ("metadata", "the allocator's own records"),
        }
    }
}

/// A run of pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The first address.
    pub(crate) base: Address,
    /// Its length.
    pub(crate) bytes: u64,
    /// What it is used for.
    pub(crate) state: State,
    /// The index of its arena.
    pub(crate) arena: Option<u32>,
    /// Bytes of a block, 0 in a run without blocks.
    pub(crate) block: u64,
    /// Blocks that there is room for.
    pub(crate) blocks: u64,
    /// Blocks handed out.
    pub(crate) used: u64,
    /// Whether huge pages were asked for.
    pub(crate) huge: bool,
    /// Bytes that a purge would give back.
    pub(crate) purgeable: u64,
    /// Bytes without memory.
    pub(crate) absent: u64,
    /// Age of the oldest sample.
    pub(crate) oldest_ms: Option<u64>,
}

impl Run {
    /// Returns the address behind the run.
    pub(crate) fn end(&self) -> u64 {
        self.base.0.saturating_add(self.bytes)
    }

    /// Returns the bytes in blocks that were handed out.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.block.saturating_mul(self.used)
    }

    /// Whether the address lies in the run.
    pub(crate) fn contains(&self, address: Address) -> bool {
        (self.base.0..self.end()).contains(&address.0)
    }
}

/// Adds numbers that a file says, which may be too large for a sum: then it is the largest number.
pub(crate) fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// A map, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heap {
    /// Bytes of a page.
    pub(crate) page: u64,
    /// The runs, by address.
    pub(crate) runs: Vec<Run>,
    /// Where the next part begins.
    pub(crate) next: Option<Address>,
}

impl Heap {
    /// Parses JSON, and checks what the pictures rely on.
    pub(crate) fn parse(json: &[u8]) -> Result<Heap, String> {
        let heap: Heap = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        heap.check()?;
        Ok(heap)
    }

    /// Checks what the pictures rely on.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.page.is_power_of_two() {
            return Err(format!("{} is not the size of a page", self.page));
        }
        let is_too_long = |run: &&Run| run.base.0.checked_add(run.bytes).is_none();
        if let Some(run) = self.runs.iter().find(is_too_long) {
            return Err(format!("the run at {:#x} ends behind the last address", run.base.0));
        }
        let runs = self.runs.windows(2);
        match runs.map(|two| (&two[0], &two[1])).find(|(one, next)| one.end() > next.base.0) {
            Some((_, run)) => Err(format!("the run at {:#x} is not in order", run.base.0)),
            None => Ok(()),
        }
    }

    /// Returns the JSON with a line for each run.
    pub(crate) fn to_json(&self) -> String {
        let lines = self.runs.iter().map(|run| serde_json::to_string(run).unwrap_or_default());
        let runs = lines.collect::<Vec<_>>().join(",\n");
        format!("{{\"page\":{},\"runs\":[\n{runs}\n],\"next\":null}}\n", self.page)
    }

    /// Returns the run around an address.
    pub(crate) fn at(&self, address: Address) -> Option<&Run> {
        self.runs.iter().find(|run| run.contains(address))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run of so many pages at a page number.
    pub(crate) fn run(page: u64, pages: u64, state: State) -> Run {
        Run {
            base: Address(page << 12),
            bytes: pages << 12,
            state,
            arena: Some(1),
            block: 0,
            blocks: 0,
            used: 0,
            huge: false,
            purgeable: 0,
            absent: 0,
            oldest_ms: None,
        }
    }

    /// A slab of 64 KiB with blocks of 64 bytes.
    pub(crate) fn slab(page: u64, used: u64) -> Run {
        Run { block: 64, blocks: 1024, used, ..run(page, 16, State::Slab) }
    }

    /// A map of these runs.
    pub(crate) fn heap(runs: Vec<Run>) -> Heap {
        Heap { page: 4096, runs, next: None }
    }

    #[test]
    fn json_is_written_as_it_is_read() {
        let heap = heap(vec![slab(16, 7), run(32, 1, State::Dirty)]);
        let json = heap.to_json();
        assert_eq!(Heap::parse(json.as_bytes()), Ok(heap));
        assert!(
            json.starts_with("{\"page\":4096,\"runs\":[\n{\"base\":\"0x10000\",\"bytes\":65536,")
        );
        assert_eq!(Heap::parse(self::heap(vec![]).to_json().as_bytes()), Ok(self::heap(vec![])));
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let long = Run { bytes: u64::MAX, ..slab(16, 1) };
        let long = heap(vec![long]).to_json();
        let later = heap(vec![slab(32, 1), slab(17, 1)]).to_json();
        let page = heap(vec![]).to_json().replace("4096", "0");
        let address = later.replace("0x20000", "20000");
        for (json, reason) in [
            (later.as_str(), "the run at 0x11000 is not in order"),
            (long.as_str(), "the run at 0x10000 ends behind the last address"),
            (page.as_str(), "0 is not the size of a page"),
            (address.as_str(), "'20000' is not an address like 0x7f0000001000 at line 2 column 15"),
            ("{}", "missing field `page` at line 1 column 2"),
        ] {
            assert_eq!(Heap::parse(json.as_bytes()), Err(reason.to_owned()));
        }
    }

    #[test]
    fn addresses_need_no_prefix_where_people_write_them() {
        assert_eq!(parse_address("7f00"), Ok(Address(0x7f00)));
        assert_eq!(parse_address("0x7f00"), Ok(Address(0x7f00)));
        let wrong = "'0y1' is not an address like 0x7f0000001000";
        assert_eq!(parse_address("0y1"), Err(wrong.to_owned()));
    }

    #[test]
    fn each_state_has_its_name_and_its_meaning() {
        let expected = [
            ("slab", "small blocks; tenths of the blocks in use"),
            ("samples", "small blocks that the heap profiler sampled"),
            ("large", "a large block"),
            ("kept", "freed, kept by a thread for its next request"),
            ("dirty", "unused, with memory"),
            ("muzzy", "unused, the system may take the memory"),
            ("retained", "addresses without memory"),
            ("aside", "unused, set aside"),
            ("guarded", "guarded samples"),
            ("metadata", "the allocator's own records"),
        ];
        assert_eq!(State::ALL.map(State::words), expected);
        let names = State::ALL.map(|state| serde_json::to_value(state).unwrap());
        assert_eq!(names, expected.map(|(name, _)| serde_json::Value::from(name)));
    }
}
