//! The recorder's file (`recorder/record.c`): events of 24 bytes after a page of counters.

use crate::programs::census::{HEAD, number};
use std::fs;
use std::path::Path;

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Malloc,
    Calloc,
    /// The old address is given.
    Realloc(u64),
    /// The alignment is given.
    Aligned(u64),
    Free,
}

/// One call that had an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) deed: Deed,
    pub(crate) thread: u16,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// Bytes of an event in the file.
pub(crate) const EVENT: usize = 24;

/// Reads the events of a recording, and how many more there were than it had room for.
pub(crate) fn read(path: &Path) -> Result<(Vec<Event>, u64), String> {
    let bytes = fs::read(path).map_err(|error| format!("the recording: {error}"))?;
    let count = number(&bytes, 0) as usize;
    let body = bytes.get(HEAD..HEAD + EVENT * count).ok_or("the recording is cut short")?;
    let events: Option<Vec<Event>> = body.chunks_exact(EVENT).map(event).collect();
    Ok((events.ok_or("the recording has an event of no known kind")?, number(&bytes, 4)))
}

fn event(bytes: &[u8]) -> Option<Event> {
    let (address, other, what) = (number(bytes, 0), number(bytes, 1), number(bytes, 2));
    let deed = match what & 15 {
        1 => Deed::Malloc,
        2 => Deed::Calloc,
        3 => Deed::Realloc(other),
        4 => Deed::Aligned(other),
        5 => Deed::Free,
        _ => return None,
    };
    Some(Event { deed, thread: (what >> 4) as u16, address, size: what >> 20 })
}

#[cfg(test)]
mod tests {
    use super::{Deed, Event, event};

    fn bytes(words: [u64; 3]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn events_are_read() {
        let read = event(&bytes([0x7f00, 0x6000, 3 | 2 << 4 | 100 << 20]));
        let wanted = Event { deed: Deed::Realloc(0x6000), thread: 2, address: 0x7f00, size: 100 };
        assert_eq!(read, Some(wanted));
        assert_eq!(event(&bytes([1, 0, 9])), None);
    }
}
