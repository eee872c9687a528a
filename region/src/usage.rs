//! What was allocated where, for the method `Profile`: a record for each region, file and line.
//! Source: vmalloc(3), Profiling.
//!
//! The records lie in memory of the process, in chunks that stay. A hash table leads to them.

mod summary;

use crate::entry::Entry;
use crate::lock::Lock;
use crate::position::{Name, Position};
use core::cell::UnsafeCell;
use core::cmp::Ordering;
use core::ptr;
use lumalloc::control::diversion::past;
use lumalloc::raw;

pub use summary::{Shown, summary};

static LOCK: Lock = Lock::new();

static RECORDS: Records = Records(UnsafeCell::new(Table::EMPTY));

/// The number of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) u32);

/// Calls and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    allocations: usize,
    frees: usize,
    allocated: usize,
    freed: usize,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.allocations += other.allocations;
        self.frees += other.frees;
        self.allocated += other.allocated;
        self.freed += other.freed;
    }
}

/// What is counted of a line of a file in a region, or of a whole region.
#[derive(Clone, Copy)]
struct Record {
    /// The address of the region's core data. 0: the record is free.
    region: usize,
    /// Whether it counts the whole region.
    is_whole: bool,
    file: Name,
    line: u32,
    counts: Counts,
    /// The most bytes that were allocated at one time. For whole regions only.
    most: usize,
    /// The next record with the same hash, or of the free ones.
    next: u32,
}

const NONE: u32 = u32::MAX;
const CHUNK: usize = 256;
const CHUNKS: usize = 4096;
const HEADS: usize = 1024;

/// The records. They are used under [`LOCK`].
struct Records(UnsafeCell<Table>);

// SAFETY: the table is used under the lock.
unsafe impl Sync for Records {}

struct Table {
    chunks: [*mut Record; CHUNKS],
    /// Records that were made, and the first one that is free again.
    made: u32,
    free: u32,
    heads: [u32; HEADS],
}

impl Table {
    const EMPTY: Table =
        Table { chunks: [ptr::null_mut(); CHUNKS], made: 0, free: NONE, heads: [NONE; HEADS] };

    fn get(&mut self, number: u32) -> Option<&mut Record> {
        if number >= self.made {
            return None;
        }
        let chunk = *self.chunks.get(number as usize / CHUNK)?;
        // SAFETY: chunks of records that were made exist, with so many places.
        let record = unsafe { chunk.add(number as usize % CHUNK) };
        // SAFETY: the record was written, and the table is borrowed.
        unsafe { record.as_mut() }
    }

    /// Returns the number of a record that nobody uses.
    fn take(&mut self) -> Option<u32> {
        let free = self.free;
        if let Some(record) = self.get(free) {
            self.free = record.next;
            return Some(free);
        }
        let made = self.made;
        let chunk = self.chunks.get_mut(made as usize / CHUNK)?;
        if chunk.is_null() {
            *chunk = past(|| raw::malloc_zeroed(CHUNK * size_of::<Record>())).cast();
            if chunk.is_null() {
                return None;
            }
        }
        self.made = made + 1;
        Some(made)
    }

    /// Returns the record of a line in a region, which is made at first.
    fn find(&mut self, key: Record) -> Option<u32> {
        let head = key.hash() % HEADS;
        let mut number = *self.heads.get(head)?;
        while let Some(record) = self.get(number) {
            if record.is_for(&key) {
                return Some(number);
            }
            number = record.next;
        }
        // The record outlives the blocks, and so the program's text.
        let file = key.file.noted()?;
        let number = self.take()?;
        let next = core::mem::replace(self.heads.get_mut(head)?, number);
        *self.get(number)? = Record { next, file, ..key };
        Some(number)
    }

    /// Takes the records of a region out.
    fn forget(&mut self, region: usize) {
        for head in 0..HEADS {
            let (mut number, mut kept) = (self.heads.get(head).copied().unwrap_or(NONE), NONE);
            while let Some(record) = self.get(number) {
                let (this, next) = (number, record.next);
                let is_of = record.region == region;
                if is_of {
                    record.region = 0;
                }
                let list = if is_of { core::mem::replace(&mut self.free, this) } else { kept };
                if let Some(record) = self.get(this) {
                    record.next = list;
                }
                kept = if is_of { kept } else { this };
                number = next;
            }
            if let Some(first) = self.heads.get_mut(head) {
                *first = kept;
            }
        }
    }
}

impl Record {
    fn of(region: usize, position: &Position) -> Record {
        let (file, line, _) = position.parts();
        let (counts, most, next) = (Counts::default(), 0, NONE);
        Record { region, is_whole: false, file, line, counts, most, next }
    }

    fn of_region(region: usize) -> Record {
        Record { is_whole: true, ..Record::of(region, &Position::UNKNOWN) }
    }

    fn is_for(&self, key: &Record) -> bool {
        (self.region, self.is_whole, self.line) == (key.region, key.is_whole, key.line)
            && self.file.text() == key.file.text()
    }

    fn hash(&self) -> usize {
        let start = self.region >> 4 ^ self.line as usize;
        let text = self.file.text().unwrap_or_default().iter();
        text.fold(start, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(*byte)))
    }

    fn file_text(&self) -> &'static [u8] {
        self.file.text().unwrap_or(b"")
    }

    /// Whole regions first, the highest address first; then by file, line and region.
    fn order(&self, other: &Record) -> Ordering {
        let regions = other.region.cmp(&self.region);
        let lines = self.file_text().cmp(other.file_text()).then(self.line.cmp(&other.line));
        other.is_whole.cmp(&self.is_whole).then(lines).then(regions)
    }
}

/// Runs `f` on the records.
fn with<T>(f: impl FnOnce(&mut Table) -> Option<T>) -> Option<T> {
    if !LOCK.enter(Entry::Shared) {
        return None;
    }
    // SAFETY: the lock is held, and `f` does not come here again.
    let result = f(unsafe { &mut *RECORDS.0.get() });
    LOCK.leave(Entry::Shared);
    result
}

/// Counts a block that a region allocated for a position. Returns the number of the record, or
/// `None` if there is no memory for one.
pub(crate) fn allocated(region: usize, position: &Position, size: usize) -> Option<Number> {
    with(|table| {
        // Each line has the record of its region.
        let whole = table.find(Record::of_region(region))?;
        let number = table.find(Record::of(region, position))?;
        let more = Counts { allocations: 1, allocated: size, ..Counts::default() };
        table.get(number)?.counts.add(more);
        let whole = table.get(whole)?;
        whole.counts.add(more);
        whole.most = whole.most.max(whole.counts.allocated - whole.counts.freed);
        Some(Number(number))
    })
}

/// Counts a block that a region freed, for the position that allocated it if that is known.
pub(crate) fn freed(region: usize, number: Option<Number>, size: usize) {
    let less = Counts { frees: 1, freed: size, ..Counts::default() };
    with(|table| {
        if let Some(record) = number.and_then(|number| table.get(number.0))
            && record.region == region
        {
            record.counts.add(less);
        }
        let whole = table.find(Record::of_region(region))?;
        table.get(whole)?.counts.add(less);
        Some(())
    });
}

/// Forgets what was counted of a region.
pub(crate) fn forget(region: usize) {
    with(|table| {
        table.forget(region);
        Some(())
    });
}

/// Returns the lock of the records, which forks hold.
///
/// # Safety
/// Who enters the lock leaves it, and nobody else does.
///
/// ```compile_fail,E0133
/// lumalloc_region::raw::usage_lock();
/// ```
#[must_use]
pub unsafe fn lock() -> &'static Lock {
    &LOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU8;
    use core::sync::atomic::Ordering::Relaxed;
    use std::cell::RefCell;
    use std::string::String;
    use std::vec::Vec;

    /// Regions of other tests are left out.
    fn lines(regions: &[usize]) -> Vec<String> {
        let mut lines = Vec::new();
        let show = |region| regions.contains(&region).then_some((region / 2, 4096));
        let done = summary(&show, &mut |line| lines.push(String::from_utf8_lossy(line).into()));
        assert!(done);
        lines
    }

    #[test]
    fn the_summary_is_that_of_the_library_of_2011() {
        let (one, two) = (0x10_0000, 0x20_0000);
        let here = |line| Position::new(b"p2.c", line, b"main");
        let first = allocated(one, &here(48), 100).unwrap();
        assert_eq!(allocated(one, &here(48), 20), Some(first));
        allocated(one, &here(7), 3).unwrap();
        allocated(two, &here(48), 1000).unwrap();
        allocated(two, &Position::UNKNOWN, 12).unwrap();
        freed(one, Some(first), 100);
        freed(two, None, 12);
        assert_eq!(
            lines(&[one, two]),
            [
                "ALLOCATION USAGE SUMMARY:n_alloc=5:n_free=2:s_alloc=1135:s_free=112:\n",
                "region=100000:n_alloc=2:n_free=1:s_alloc=1012:s_free=12:\
                 max_busy=1012:extent=4096:\n",
                "region=80000:n_alloc=3:n_free=1:s_alloc=123:s_free=100:\
                 max_busy=123:extent=4096:\n",
                "file=<>:n_alloc=1:n_free=0:s_alloc=12:s_free=0:\n",
                "\tline=0:region=100000:n_alloc=1:n_free=0:s_alloc=12:s_free=0:\n",
                "file=p2.c:n_alloc=4:n_free=1:s_alloc=1123:s_free=100:\n",
                "\tline=7:region=80000:n_alloc=1:n_free=0:s_alloc=3:s_free=0:\n",
                "\tline=48:region=100000:n_alloc=1:n_free=0:s_alloc=1000:s_free=0:\n",
                "\tline=48:region=80000:n_alloc=2:n_free=1:s_alloc=120:s_free=100:\n",
            ]
        );
        forget(one);
        assert_eq!(lines(&[one, two]).len(), 6);
        forget(two);
        let nothing = "ALLOCATION USAGE SUMMARY:n_alloc=0:n_free=0:s_alloc=0:s_free=0:\n";
        assert_eq!(lines(&[one, two]), [nothing]);
    }

    #[test]
    fn records_keep_their_names() {
        let region = 0x40_0000;
        static NAME: [AtomicU8; 9] = [const { AtomicU8::new(b'p') }; 9];
        let write = |name: &[u8]| {
            NAME.iter().zip(name).for_each(|(place, byte)| place.store(*byte, Relaxed));
        };
        let start = NAME.as_ptr().cast::<u8>();
        write(b"plug-in.c");
        // SAFETY: the text stays, and changes when nothing refers to it.
        let text = || unsafe { core::slice::from_raw_parts(start, 9) };
        allocated(region, &Position::new(text(), 5, b""), 10).unwrap();
        write(b"xlug-in.c");
        allocated(region, &Position::new(text(), 5, b""), 10).unwrap();
        let files = lines(&[region]);
        for name in ["file=plug-in.c:n_alloc=1:", "file=xlug-in.c:n_alloc=1:"] {
            assert!(files.iter().any(|line| line.starts_with(name)), "{files:?}");
        }
        forget(region);
    }

    /// A search for each line would take time with the square of the number of regions.
    #[test]
    fn each_region_is_looked_for_once() {
        let regions: Vec<usize> = (1..=100).map(|number| number * 0x1000).collect();
        for &region in &regions {
            for line in 1..=3 {
                assert!(allocated(region, &Position::new(b"y.c", line, b""), 1).is_some());
            }
        }
        let asked = RefCell::new(Vec::new());
        let show = |region| {
            asked.borrow_mut().extend(regions.contains(&region).then_some(region));
            None
        };
        assert!(summary(&show, &mut |_| {}));
        let mut asked = asked.into_inner();
        asked.sort_unstable();
        assert_eq!(asked, regions);
        assert_eq!(lines(&regions).len(), 1 + 100 + 1 + 300);
        regions.into_iter().for_each(forget);
    }

    #[test]
    fn records_are_used_again() {
        let region = 0x30_0000;
        let made = || with(|table| Some(table.made)).unwrap();
        let fill = || {
            for line in 1..1000 {
                assert!(allocated(region, &Position::new(b"x.c", line, b""), 1).is_some());
            }
            assert_eq!(lines(&[region]).len(), 1 + 1 + 1 + 999);
            forget(region);
        };
        fill();
        let before = made();
        (0..20).for_each(|_| fill());
        // Other tests make some too.
        assert!(made() < before + 1000);
    }
}
