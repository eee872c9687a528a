//! Writes event files for tests.

/// Writes a number.
pub(crate) fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes the difference between two values.
pub(crate) fn signed(out: &mut Vec<u8>, from: u64, to: u64) {
    let difference = to.wrapping_sub(from) as i64;
    number(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// What happens in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happens {
    /// An allocation: address, size.
    New(u64, u64),
    /// A deletion: address, first word.
    Delete(u64, u64),
    /// The following events are by this thread.
    Thread(u64),
}

/// An event file.
#[derive(Clone)]
pub(crate) struct File {
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
}

/// The monotonic clock at the start of the recording.
pub(crate) const START: u64 = 5_000_000;
/// The same moment in nanoseconds since 1970.
pub(crate) const EPOCH: u64 = 759_537_687_000_000_000;

impl Default for File {
    fn default() -> File {
        let mut process = Vec::new();
        for value in [22, START, EPOCH] {
            number(&mut process, value);
        }
        text(&mut process, "lumalloc 0.1.0");
        text(&mut process, "/bin/x");
        File { bytes: b"LUMAEVT\x01".to_vec() }.chunk(b'P', &process)
    }
}

impl File {
    /// Adds a chunk.
    pub(crate) fn chunk(mut self, tag: u8, payload: &[u8]) -> File {
        self.bytes.push(tag);
        self.bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(payload);
        self
    }

    /// Adds a mapping: start, end, offset.
    pub(crate) fn mapping(self, place: [u64; 3], path: &str, build_id: &str) -> File {
        let mut payload = Vec::new();
        place.iter().for_each(|value| number(&mut payload, *value));
        text(&mut payload, path);
        text(&mut payload, build_id);
        self.chunk(b'M', &payload)
    }

    /// Adds a stack of return addresses, innermost first.
    pub(crate) fn stack(self, stack: u64, addresses: &[u64]) -> File {
        let mut payload = Vec::new();
        number(&mut payload, stack);
        number(&mut payload, addresses.len() as u64);
        for (place, address) in addresses.iter().enumerate() {
            match place.checked_sub(1) {
                None => number(&mut payload, *address),
                Some(before) => signed(&mut payload, addresses[before], *address),
            }
        }
        self.chunk(b'S', &payload)
    }

    /// Adds events of a thread: each a time after the start, what happens, and a stack.
    pub(crate) fn events(self, tid: u64, events: &[(u64, Happens, u64)]) -> File {
        let first = events.first().map_or(0, |event| event.0) + START;
        let mut payload = Vec::new();
        for value in [tid, first, events.len() as u64] {
            number(&mut payload, value);
        }
        let (mut time, mut last) = (first, 0);
        for (at, happens, stack) in events {
            let kind = match happens {
                Happens::New(..) => 0,
                Happens::Delete(..) => 1,
                Happens::Thread(_) => 2,
            };
            number(&mut payload, (at + START - time) << 2 | kind);
            time = at + START;
            match *happens {
                Happens::Thread(tid) => number(&mut payload, tid),
                Happens::New(address, value) | Happens::Delete(address, value) => {
                    signed(&mut payload, last, address);
                    number(&mut payload, value);
                    number(&mut payload, *stack);
                    last = address;
                }
            }
        }
        self.chunk(b'E', &payload)
    }

    /// Adds old blocks, seen at a time after the start: address, usable size, first word.
    pub(crate) fn old(self, at: u64, blocks: &[[u64; 3]]) -> File {
        self.blocks(b'O', at, blocks)
    }

    /// Adds blocks that are live near the end, read after a time after the start.
    pub(crate) fn live(self, at: u64, blocks: &[[u64; 3]]) -> File {
        self.blocks(b'L', at, blocks)
    }

    fn blocks(self, tag: u8, at: u64, blocks: &[[u64; 3]]) -> File {
        let mut payload = Vec::new();
        number(&mut payload, at + START);
        let mut last = 0;
        for [address, size, word] in blocks {
            signed(&mut payload, last, *address);
            number(&mut payload, *size);
            number(&mut payload, *word);
            last = *address;
        }
        self.chunk(tag, &payload)
    }

    /// Adds a number of dropped events.
    pub(crate) fn dropped(self, count: u64, at: u64) -> File {
        let mut payload = Vec::new();
        number(&mut payload, count);
        number(&mut payload, at + START);
        self.chunk(b'X', &payload)
    }

    /// Adds a message.
    pub(crate) fn message(self, at: u64, message: &str) -> File {
        let mut payload = Vec::new();
        number(&mut payload, at + START);
        text(&mut payload, message);
        self.chunk(b'F', &payload)
    }

    /// Adds the end.
    pub(crate) fn end(self, at: u64, dropped: u64) -> File {
        let mut payload = Vec::new();
        for value in [at + START, 0, dropped] {
            number(&mut payload, value);
        }
        self.chunk(b'Z', &payload)
    }
}
