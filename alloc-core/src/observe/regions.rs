//! The regions of vmalloc(3) that are open, with what can be asked of them.
//!
//! The core knows nothing of regions but this list. Who opens a region publishes it with a table of
//! functions: the C interface each region of `vmopen`, a Rust program those that it wants to be
//! seen. Each has a number, which is used again when the region is withdrawn.
//!
//! Functions of a table run under the lock of the list, so no region goes away meanwhile. The same
//! thread may publish, withdraw and ask from inside such a function.

use super::region_lock::{Held, RegionLock};
use super::region_name::RegionName;
use crate::back::metadata;
use crate::ground::os;
use core::cell::UnsafeCell;
use core::ptr;

pub use super::region_name::NAME_BYTES;
pub use super::region_table::{About, Counts, Holder, Table, Unanswered};

/// A count that takes longer is not repeated at once: nanoseconds of the thread's own time.
const LONG: u64 = 10_000_000;
/// How many times as long as it took a count stands then.
const REST: u64 = 100;

/// A region in the list.
#[derive(Clone, Copy)]
struct Entry {
    region: *const (),
    /// `None`: the number is free.
    table: Option<&'static Table>,
    name: RegionName,
    counted: Counted,
}

/// The last count of a region.
#[derive(Clone, Copy)]
struct Counted {
    counts: Counts,
    /// The epoch in which it was asked for, or 0 before the first.
    epoch: u64,
    /// When it ended, and how long it took, in nanoseconds.
    at: u64,
    took: u64,
}

impl Counted {
    const NEVER: Counted = Counted { counts: Counts::NONE, epoch: 0, at: 0, took: 0 };

    /// Whether it still stands at a moment, in an epoch.
    fn stands(&self, epoch: u64, now: u64) -> bool {
        let rests = self.took > LONG && now < self.at.saturating_add(self.took * REST);
        self.epoch != 0 && (self.epoch == epoch || rests)
    }
}

/// The entries of the first chunk. Each chunk has twice as many as the one before.
const FIRST_CHUNK: usize = 64;
const CHUNKS: usize = 20;

/// How many entries a chunk has.
const fn length_of(chunk: usize) -> usize {
    FIRST_CHUNK << chunk
}

/// Returns the chunk of a number, and the place there.
const fn place_of(number: usize) -> (usize, usize) {
    let chunk = (number / FIRST_CHUNK + 1).ilog2() as usize;
    (chunk, number + FIRST_CHUNK - length_of(chunk))
}

/// All entries, in chunks that stay.
struct Entries {
    chunks: [*mut Entry; CHUNKS],
    /// How many numbers were ever used.
    end: usize,
    /// No number below is free.
    first_free: usize,
}

struct List {
    lock: RegionLock,
    entries: UnsafeCell<Entries>,
}

// SAFETY: the entries are used under the lock. What they lead to may be asked by any thread, by the
// promise of who published it.
unsafe impl Sync for List {}

static LIST: List = List {
    lock: RegionLock::new(),
    entries: UnsafeCell::new(Entries { chunks: [ptr::null_mut(); CHUNKS], end: 0, first_free: 0 }),
};

impl Entries {
    /// Returns the entry of a number that was used.
    fn get(&mut self, number: usize) -> Option<&mut Entry> {
        if number >= self.end {
            return None;
        }
        let (chunk, place) = place_of(number);
        let chunk = *self.chunks.get(chunk)?;
        // SAFETY: the chunks of numbers that were used exist, with so many places.
        let entry = unsafe { chunk.add(place) };
        // SAFETY: the entry was written, and the list is borrowed.
        unsafe { entry.as_mut() }
    }

    /// Returns the entry of a number, if a region has it.
    fn open(&mut self, number: usize) -> Option<&mut Entry> {
        self.get(number).filter(|entry| entry.table.is_some())
    }

    /// Writes an entry to a free number, and returns the number.
    fn add(&mut self, entry: Entry) -> Option<usize> {
        let mut number = self.first_free;
        while self.open(number).is_some() {
            number += 1;
        }
        if number == self.end {
            self.make(number)?;
        }
        *self.get(number)? = entry;
        self.first_free = number + 1;
        Some(number)
    }

    /// Makes a place for the next number.
    fn make(&mut self, number: usize) -> Option<()> {
        let (at, place) = place_of(number);
        let chunk = self.chunks.get_mut(at)?;
        if chunk.is_null() {
            let bytes = length_of(at) * size_of::<Entry>();
            *chunk = metadata::allocate(bytes, align_of::<Entry>())?.cast().as_ptr();
        }
        // SAFETY: the chunk has so many places.
        let place = unsafe { chunk.add(place) };
        let empty = Entry {
            region: ptr::null(),
            table: None,
            name: RegionName::NONE,
            counted: Counted::NEVER,
        };
        // SAFETY: as above.
        unsafe { place.write(empty) };
        self.end = number + 1;
        Some(())
    }

    /// Makes a number free.
    fn free(&mut self, number: usize) {
        self.first_free = self.first_free.min(number);
        if let Some(entry) = self.get(number) {
            entry.table = None;
        }
    }

    /// Returns the number of a region.
    fn find(&mut self, region: *const ()) -> Option<usize> {
        let mut numbers = 0..self.end;
        numbers.find(|number| self.open(*number).is_some_and(|entry| entry.region == region))
    }
}

/// Runs `f` on the entries, under the lock. `f` calls no function of a table.
fn with<T>(_held: &Held<'_>, f: impl FnOnce(&mut Entries) -> T) -> T {
    // SAFETY: the lock is held, and `f` does not come here again.
    f(unsafe { &mut *LIST.entries.get() })
}

/// Publishes a region by a name, of which 31 bytes are kept, and returns its number. Returns `None`
/// if there is no memory.
///
/// # Safety
/// Until it is withdrawn, any thread may call the functions of the table with `region`.
pub unsafe fn publish(region: *const (), table: &'static Table, name: &[u8]) -> Option<usize> {
    let entry =
        Entry { region, table: Some(table), name: RegionName::cut(name), counted: Counted::NEVER };
    with(&LIST.lock.take(), |entries| entries.add(entry))
}

/// Withdraws a region, unless it is not in the list. Waits until nobody asks it.
pub fn withdraw(region: *const ()) {
    with(&LIST.lock.take(), |entries| {
        let Some(number) = entries.find(region) else { return };
        entries.free(number);
    });
}

/// As [`withdraw`], of a region that has this number unless it is not in the list. Takes the same
/// time however many regions there are.
pub fn withdraw_at(number: usize, region: *const ()) {
    with(&LIST.lock.take(), |entries| {
        if entries.open(number).is_some_and(|entry| entry.region == region) {
            entries.free(number);
        }
    });
}

/// Returns how many regions are in the list.
#[must_use]
pub fn count() -> usize {
    with(&LIST.lock.take(), |entries| {
        (0..entries.end).filter(|number| entries.open(*number).is_some()).count()
    })
}

/// Returns how many numbers were ever used: all numbers of regions are below.
#[must_use]
pub fn end() -> usize {
    with(&LIST.lock.take(), |entries| entries.end)
}

/// Returns whether a region has a number.
#[must_use]
pub fn exists(number: usize) -> bool {
    with(&LIST.lock.take(), |entries| entries.open(number).is_some())
}

/// Returns the number of the region that was published as this address, or about which
/// [`About::address`] says it.
#[must_use]
pub fn lookup(address: usize) -> Option<usize> {
    let held = LIST.lock.take();
    let end = with(&held, |entries| entries.end);
    drop(held);
    (0..end).find(|number| {
        let is_it = |region: *const (), table: &Table| {
            // SAFETY: the region is in the list, and so under the lock.
            region.addr() == address || unsafe { (table.about)(region) }.address == address
        };
        ask(*number, is_it) == Some(true)
    })
}

/// Returns the name of a region, NUL-terminated. A region without a name has the one of its number.
#[must_use]
pub fn name(number: usize) -> Option<[u8; NAME_BYTES]> {
    let name = with(&LIST.lock.take(), |entries| Some(entries.open(number)?.name))?;
    Some(name.or_of_number(number))
}

/// Names a region; 31 bytes are kept. Returns false if there is none.
pub fn set_name(number: usize, name: &[u8]) -> bool {
    with(&LIST.lock.take(), |entries| {
        entries.open(number).map(|entry| entry.name = RegionName::cut(name)).is_some()
    })
}

/// Tells what is known of a region without a call of it.
#[must_use]
pub fn about(number: usize) -> Option<About> {
    // SAFETY: the region is in the list, and so under the lock.
    ask(number, |region, table| unsafe { (table.about)(region) })
}

/// Counts the blocks of a region, at most once in an epoch, and less often if it takes long: at
/// most a hundredth of the time. If another call is in the region, the answer is the count before.
///
/// # Errors
/// [`Unanswered::Missing`]; [`Unanswered::Busy`] if there was no count before.
pub fn counts(number: usize, epoch: u64) -> Result<Counts, Unanswered> {
    let held = LIST.lock.take();
    let entry = with(&held, |entries| entries.open(number).copied()).ok_or(Unanswered::Missing)?;
    let last = entry.counted;
    if last.stands(epoch, os::nanoseconds()) {
        return Ok(last.counts);
    }
    let Some(table) = entry.table else { return Err(Unanswered::Missing) };
    let begin = os::thread_nanoseconds();
    // SAFETY: the region is in the list, and so under the lock.
    let Some(counts) = (unsafe { (table.count)(entry.region) }) else {
        return if last.epoch == 0 { Err(Unanswered::Busy) } else { Ok(last.counts) };
    };
    let took = os::thread_nanoseconds().saturating_sub(begin);
    let counted = Counted { counts, epoch, at: os::nanoseconds(), took };
    with(&held, |entries| {
        if let Some(now) = entries.open(number).filter(|now| now.region == entry.region) {
            now.counted = counted;
        }
    });
    Ok(counts)
}

/// Checks all blocks of a region, and returns how many are damaged.
///
/// # Errors
/// All of [`Unanswered`].
pub fn check(number: usize) -> Result<usize, Unanswered> {
    // SAFETY: the region is in the list, and so under the lock.
    ask(number, |region, table| unsafe { (table.check)(region) })
        .unwrap_or(Err(Unanswered::Missing))
}

/// Gives free memory of a region back.
///
/// # Errors
/// [`Unanswered::Missing`] and [`Unanswered::Busy`].
pub fn compact(number: usize) -> Result<(), Unanswered> {
    // SAFETY: the region is in the list, and so under the lock.
    match ask(number, |region, table| unsafe { (table.compact)(region) }) {
        Some(true) => Ok(()),
        Some(false) => Err(Unanswered::Busy),
        None => Err(Unanswered::Missing),
    }
}

/// Copies the path of the file in which a region lies. Returns its length: 0 if it lies in none.
/// `None`: there is no such region.
pub fn file(number: usize, into: &mut [u8]) -> Option<usize> {
    // SAFETY: the region is in the list, and so under the lock.
    ask(number, |region, table| unsafe { (table.file)(region, into) })
}

/// Asks a region, under the lock.
fn ask<T>(number: usize, question: impl FnOnce(*const (), &Table) -> T) -> Option<T> {
    let held = LIST.lock.take();
    let entry = with(&held, |entries| entries.open(number).copied())?;
    Some(question(entry.region, entry.table?))
}

/// Runs `f` while no other thread asks regions, publishes or withdraws any.
pub fn alone<T>(f: impl FnOnce() -> T) -> T {
    let held = LIST.lock.take();
    let result = f();
    drop(held);
    result
}

/// Runs `f` unless another thread asks a region meanwhile. Returns whether it ran.
///
/// A thread that waits for one that asks its region finds out so that the other one is gone: it did
/// not come along through a fork.
pub fn unless_asked(f: impl FnOnce()) -> bool {
    let held = LIST.lock.try_take();
    let is_free = held.is_some();
    if is_free {
        f();
    }
    is_free
}

/// Keeps others from asking until the process has forked. The result is for
/// [`release_after_fork`].
#[must_use]
pub fn hold_for_fork() -> bool {
    LIST.lock.take().keep()
}

/// Ends what [`hold_for_fork`] began, in the parent and in the child.
///
/// # Safety
/// `is_held` is the result of a call of [`hold_for_fork`] that nothing ended yet, by this thread or
/// by the one that forked.
///
/// ```compile_fail,E0133
/// lumalloc::observe::regions::release_after_fork(true);
/// ```
pub unsafe fn release_after_fork(is_held: bool) {
    LIST.lock.release(is_held);
}

/// Makes every running thread of the process pass a full memory fence, as membarrier(2) does.
/// Returns `false` if the system cannot.
#[must_use]
pub fn fence_all_threads() -> bool {
    os::fence_all_threads()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// A region of the tests: what it answers.
    struct Fake {
        counts: Cell<Option<Counts>>,
        counted: Cell<usize>,
    }

    static TABLE: Table = Table {
        about: |region| About {
            method: c"fake",
            discipline: c"none",
            flags: 0o110,
            address: region.addr() + 1,
            holder: None,
        },
        count: |region| {
            // SAFETY: the tests publish this type.
            let fake = unsafe { &*region.cast::<Fake>() };
            fake.counted.set(fake.counted.get() + 1);
            fake.counts.get()
        },
        check: |region| {
            // It may use the list.
            assert!(lookup(region.addr()).is_some());
            Err(Unanswered::Unknown)
        },
        compact: |region| {
            withdraw(region);
            true
        },
        file: |_, into| {
            into.iter_mut().zip(b"/tmp/x").for_each(|(place, byte)| *place = *byte);
            6
        },
    };

    fn fake(counts: Option<Counts>) -> Fake {
        Fake { counts: Cell::new(counts), counted: Cell::new(0) }
    }

    fn published(fake: &Fake, name: &[u8]) -> usize {
        // SAFETY: the test withdraws it before it is gone, and asks in one thread.
        unsafe { publish(ptr::from_ref(fake).cast(), &TABLE, name) }.expect("memory")
    }

    /// One test, because there is one list.
    #[test]
    fn regions_are_numbered_and_asked() {
        let some = Counts { busy: 7, extent: 4096, ..Counts::default() };
        let (one, two, three) = (fake(Some(some)), fake(None), fake(None));
        assert_eq!((count(), end(), counts(0, 1)), (0, 0, Err(Unanswered::Missing)));
        assert_eq!((published(&one, b"one"), published(&two, b"")), (0, 1));
        assert_eq!((count(), end(), exists(1), exists(2)), (2, 2, true, false));
        assert_eq!(name(0).expect("it is there")[..4], *b"one\0");
        assert_eq!(name(1).expect("it is there")[..9], *b"region_1\0");
        assert!(set_name(1, b"two") && !set_name(2, b"three"));
        assert_eq!(name(1).expect("it is there")[..4], *b"two\0");
        let address = ptr::from_ref(&two).addr();
        assert_eq!((lookup(address), lookup(address + 1), lookup(1)), (Some(1), Some(1), None));

        // A count stands for an epoch, and an old one is better than none.
        assert_eq!((counts(0, 1), counts(0, 1), one.counted.get()), (Ok(some), Ok(some), 1));
        one.counts.set(None);
        assert_eq!((counts(0, 2), one.counted.get()), (Ok(some), 2));
        assert_eq!(counts(1, 2), Err(Unanswered::Busy));
        two.counts.set(Some(Counts::default()));
        assert_eq!(counts(1, 2), Ok(Counts::default()));

        assert_eq!(check(0), Err(Unanswered::Unknown));
        let mut path = [0; 10];
        assert_eq!((file(0, &mut path), path[5]), (Some(6), b'x'));
        assert_eq!(about(1).map(|about| about.method), Some(c"fake"));

        // A number is used again, and its count with another region is not.
        assert_eq!((compact(0), compact(0)), (Ok(()), Err(Unanswered::Missing)));
        assert_eq!((name(0), about(0), check(0)), (None, None, Err(Unanswered::Missing)));
        assert_eq!((published(&three, b"three"), counts(0, 2)), (0, Err(Unanswered::Busy)));
        withdraw(ptr::from_ref(&two).cast());
        withdraw(ptr::from_ref(&three).cast());
        withdraw(ptr::from_ref(&three).cast());
        assert_eq!((count(), end()), (0, 2));

        let many: std::vec::Vec<Fake> = (0..20_000).map(|_| fake(None)).collect();
        let numbers = many.iter().map(|fake| published(fake, b""));
        assert!(numbers.eq(0..20_000));
        assert!(unless_asked(|| assert_eq!(count(), 20_000)));
        let numbered = many.iter().enumerate();
        numbered.for_each(|(number, fake)| withdraw_at(number, ptr::from_ref(fake).cast()));
        assert_eq!(count(), 0);

        // A number is that of one region, and another region does not free it.
        let (first, last) = (&many[0], &many[199]);
        assert_eq!((published(first, b""), published(last, b"")), (0, 1));
        withdraw_at(0, ptr::from_ref(last).cast());
        withdraw_at(7, ptr::from_ref(first).cast());
        assert_eq!((count(), exists(0)), (2, true));
        withdraw_at(0, ptr::from_ref(first).cast());
        withdraw_at(1, ptr::from_ref(last).cast());
        assert_eq!(count(), 0);
    }

    #[test]
    fn each_number_has_a_place_of_its_own() {
        let mut next = (0, 0);
        for number in 0..100_000 {
            let (chunk, place) = place_of(number);
            assert_eq!((chunk, place), next);
            next = if place + 1 == length_of(chunk) { (chunk + 1, 0) } else { (chunk, place + 1) };
        }
        assert!(place_of(60_000_000).0 < CHUNKS);
    }

    #[test]
    fn what_takes_long_is_not_counted_again_at_once() {
        let counted = Counted { epoch: 3, at: 5 * LONG, took: 2 * LONG, ..Counted::NEVER };
        assert!(counted.stands(3, u64::MAX));
        assert!(counted.stands(4, 204 * LONG));
        assert!(!counted.stands(4, 206 * LONG));
        let quick = Counted { took: LONG, ..counted };
        assert!(!quick.stands(4, 6 * LONG));
        assert!(!Counted { epoch: 0, ..counted }.stands(4, 6 * LONG));
    }
}
