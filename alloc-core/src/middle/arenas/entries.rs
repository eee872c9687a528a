//! How often threads took a lock of an arena that they chose, and whether they wait there often.

/// Entries between two waits from which on a wait is rare.
const RARE: u64 = 1024;

/// Waits that follow each other without a rare one, until one more arena is worth its memory.
pub(in crate::middle) const OFTEN: u32 = 32;

/// The entries of threads into what one lock guards.
pub(crate) struct Entries {
    /// Entries that found the lock free.
    open: u64,
    /// `open` at the last wait.
    open_at_wait: u64,
    /// Waits since the last rare one.
    waits: u32,
}

impl Entries {
    /// No thread has entered.
    pub(in crate::middle) const fn new() -> Entries {
        Entries { open: 0, open_at_wait: 0, waits: 0 }
    }

    /// Returns how many entries found the lock free.
    pub(crate) fn open(&self) -> u64 {
        self.open
    }

    /// Notes an entry that found the lock free.
    pub(in crate::middle) fn note_open(&mut self) {
        self.open += 1;
    }

    /// Notes an entry that waited. Returns whether threads wait so often that one more arena is
    /// worth its memory, and begins anew if so.
    ///
    /// A holder that the system has interrupted makes others wait now and then, however many arenas
    /// there are.
    pub(in crate::middle) fn waits_often(&mut self) -> bool {
        let is_rare = self.open - self.open_at_wait >= RARE;
        self.open_at_wait = self.open;
        self.waits = if is_rare { 0 } else { (self.waits + 1) % OFTEN };
        !is_rare && self.waits == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `count` waits ask for an arena, with `between` entries before each.
    fn asked(count: u32, between: u64) -> u32 {
        let mut entries = Entries::new();
        let wait = |_: &u32| {
            (0..between).for_each(|_| entries.note_open());
            entries.waits_often()
        };
        (0..count).filter(wait).count() as u32
    }

    #[test]
    fn waits_ask_for_an_arena_if_they_are_frequent() {
        assert_eq!(asked(OFTEN - 1, 0), 0);
        assert_eq!(asked(3 * OFTEN, 0), 3);
        assert_eq!(asked(3 * OFTEN, RARE - 1), 3);
        assert_eq!(asked(100 * OFTEN, RARE), 0, "they may go on for ever");
    }

    #[test]
    fn a_rare_wait_forgets_the_waits_before_it() {
        let mut entries = Entries::new();
        let mut waits = |count: u32| (0..count).any(|_| entries.waits_often());
        assert!(!waits(OFTEN - 1));
        (0..RARE).for_each(|_| entries.note_open());
        assert_eq!(entries.open(), RARE);
        let mut waits = |count: u32| (0..count).any(|_| entries.waits_often());
        assert!(!waits(OFTEN));
        assert!(waits(1));
    }
}
