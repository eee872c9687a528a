//! Where samples were allocated: stacks, and counts for each stack and size.
//!
//! A stack is stored once. Its counts are kept apart for each requested size, because the share of
//! samples among all allocations depends on the size. Stacks and counts are never removed, so they
//! are read without a lock. Once they take much memory, new ones are shortened ([`stack_depth`]).
//! All stacks together keep about a million counts, and each some hundred, before requests of new
//! sizes are counted by the size of their blocks.
//!
//! ```text
//!   hash ──▶ Site { frames } ──▶ SizeCount ──▶ SizeCount ──▶ …
//!   hash of the site and the size ──▶ SizeCount
//! ```

use super::hash_table::{HashTable, Links, Record, no_links};
use super::notice::Notice;
use super::stack_depth;
use crate::back::metadata;
use crate::ground::counters::SharedCount;
use crate::ground::options;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::{LockRank, witness};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// What hashes are multiplied by.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// The most sites that are kept. All other stacks share the site without frames.
const MOST_SITES: u64 = 1 << 20;
/// The most sites of all kinds beside which others are made of stacks that allocate no sample, but
/// log frees or recorded events. They come in any number, and would leave none for samples.
const MOST_BESIDE: u64 = MOST_SITES / 4 * 3;
static MANY_BESIDE: Notice = Notice::new(
    b"<lumalloc>: More than 786432 stacks allocate or free: recorded events and logged frees from \
      others have no stack.\n",
);
static MANY_STACKS: Notice = Notice::new(
    b"<lumalloc>: More than 1048576 stacks allocate: samples from others have no stack.\n",
);
/// Counts that are kept in all, of 64 bytes each. Once there are so many, a site that has
/// [`SURE_SIZES`] sizes counts requests of others by their size class.
const MOST_COUNTS: u64 = if cfg!(test) { 2048 } else { 1 << 20 };
/// Sizes that each site counts apart, however many counts there are.
const SURE_SIZES: u32 = 512;
static MANY_SIZES: Notice = Notice::new(
    b"<lumalloc>: More than 1048576 pairs of a stack and a size: requests of others count by the \
      size of their block.\n",
);
static NOTICES: [&Notice; 4] = [&MANY_STACKS, &stack_depth::LONG_STACKS, &MANY_BESIDE, &MANY_SIZES];

/// A stack, with its counts. `depth` return addresses follow the record.
#[repr(C)]
pub(crate) struct Site {
    hash: u64,
    depth: u32,
    /// How many sites had been made when this one was, itself included.
    number: u32,
    /// The site that was made before it.
    older: Option<&'static Site>,
    links: Links<Site>,
    sizes: AtomicPtr<SizeCount>,
    /// The number of sizes.
    size_count: AtomicU32,
}

/// The counts of one site for requests of one size. They are in one cache line.
#[repr(align(64))]
pub(crate) struct SizeCount {
    site: &'static Site,
    /// Bytes that were requested.
    requested: usize,
    /// Bytes that a block has.
    usable: usize,
    /// The next one of the site.
    next: AtomicPtr<SizeCount>,
    links: Links<SizeCount>,
    allocated: AtomicU64,
    freed: AtomicU64,
}

/// Samples by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) allocated: u64,
    pub(crate) freed: u64,
}

/// The sites by their stacks.
static SITES: HashTable<Site> = HashTable::new();
/// The counts of all sites, by site and size.
static COUNTS: HashTable<SizeCount> = HashTable::new();
/// The site that was made last.
static NEWEST: AtomicPtr<Site> = AtomicPtr::new(core::ptr::null_mut());
/// The lock for new sites and counts.
pub(crate) static ADDING: RankedMutex<()> = RankedMutex::new(LockRank::Sites, ());

/// Sites ever made.
pub(crate) static MADE: SharedCount = SharedCount::new();
/// Bytes of sites.
pub(crate) static SITE_BYTES: SharedCount = SharedCount::new();
/// Bytes of counts.
pub(crate) static COUNT_BYTES: SharedCount = SharedCount::new();

/// Returns the counts for samples of `requested` bytes in blocks of `usable` bytes from a stack.
/// `None`: there is no memory.
pub(super) fn counts(
    stack: &[usize],
    requested: usize,
    usable: usize,
) -> Option<&'static SizeCount> {
    let known = find(hash(stack), stack);
    let site = known.or_else(|| SAMPLES.site(stack_depth::kept(stack, SAMPLES.bytes.get())));
    site?.counts(requested, usable)
}

/// Returns the site of a stack that allocates no sample, made now if it is new.
pub(super) fn site_beside(stack: &[usize]) -> Option<&'static Site> {
    match options::current().prof {
        true => BESIDE.site(stack),
        false => SAMPLES.site(stack),
    }
}

/// What sites are made for.
struct Purpose {
    /// The most sites of all kinds beside which one is made.
    most: u64,
    /// What is told then.
    notice: &'static Notice,
    /// Bytes of those that were made for this.
    bytes: SharedCount,
}

static SAMPLES: Purpose =
    Purpose { most: MOST_SITES, notice: &MANY_STACKS, bytes: SharedCount::new() };
static BESIDE: Purpose =
    Purpose { most: MOST_BESIDE, notice: &MANY_BESIDE, bytes: SharedCount::new() };

impl Purpose {
    /// Returns the site of a stack, made now if it is new and there are not too many. Else that is
    /// noticed, and the stack shares a site.
    fn site(&self, stack: &[usize]) -> Option<&'static Site> {
        let hash = hash(stack);
        if let Some(known) = find(hash, stack) {
            return Some(known);
        }
        let _adding = ADDING.lock();
        if let Some(known) = find(hash, stack) {
            return Some(known);
        }
        if MADE.get() >= self.most {
            return shared(self.notice);
        }
        self.bytes.add(bytes_of(stack));
        make(hash, stack)
    }
}

fn bytes_of(stack: &[usize]) -> u64 {
    (size_of::<Site>() + size_of_val(stack)) as u64
}

/// Returns the site that all other stacks share. Called under the lock.
fn shared(notice: &Notice) -> Option<&'static Site> {
    notice.come();
    let hash = hash(&[]);
    find(hash, &[]).or_else(|| make(hash, &[]))
}

/// Writes each of the notices once whose time has come. The caller holds no lock.
#[inline]
pub(super) fn tell_shared() {
    if NOTICES.iter().any(|notice| notice.is_due()) {
        tell_once();
    }
}

#[cold]
#[inline(never)]
fn tell_once() {
    witness::none_held();
    NOTICES.iter().for_each(|notice| notice.tell());
}

fn hash(stack: &[usize]) -> u64 {
    stack.iter().fold(stack.len() as u64, |hash, frame| {
        (hash ^ *frame as u64).wrapping_mul(MULTIPLIER).rotate_left(29)
    })
}

fn find(hash: u64, stack: &[usize]) -> Option<&'static Site> {
    SITES.find(hash, |site| site.hash == hash && site.frames() == stack)
}

/// Makes the site of a stack. Called under the lock.
fn make(hash: u64, stack: &[usize]) -> Option<&'static Site> {
    let bytes = bytes_of(stack);
    let memory = metadata::allocate(bytes as usize, align_of::<Site>())?.cast::<Site>();
    let site = Site {
        hash,
        depth: stack.len() as u32,
        number: MADE.get() as u32 + 1,
        // SAFETY: sites are never unmapped.
        older: unsafe { NEWEST.load(Ordering::Relaxed).as_ref() },
        links: no_links(),
        sizes: AtomicPtr::new(core::ptr::null_mut()),
        size_count: AtomicU32::new(0),
    };
    // SAFETY: fresh memory of the right size and alignment.
    unsafe { memory.write(site) };
    // SAFETY: the frames follow the record, in the same piece of memory.
    let frames = unsafe { memory.add(1) }.cast::<usize>();
    // SAFETY: there is room for as many frames.
    unsafe { frames.as_ptr().copy_from_nonoverlapping(stack.as_ptr(), stack.len()) };
    MADE.add(1);
    SITE_BYTES.add(bytes);
    // Release: pairs with the Acquire in `newest_first`. Stored before it is added to the table,
    // because what the heap monitor writes names sites that the table gave, and finds them by this
    // walk.
    NEWEST.store(memory.as_ptr(), Ordering::Release);
    // SAFETY: just written, and never unmapped.
    let site = unsafe { memory.as_ref() };
    SITES.add(site);
    Some(site)
}

/// Returns all sites, the last one that was made first. That is their order in memory, so a walk
/// takes little time.
pub(crate) fn newest_first() -> impl Iterator<Item = &'static Site> {
    // Acquire: pairs with the Release in `make`.
    // SAFETY: sites are never unmapped.
    let newest = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    core::iter::successors(newest, |site| site.older)
}

impl Site {
    /// Returns the number of the site, which no other has. The first one has number 1.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the return addresses, the innermost first.
    pub(crate) fn frames(&self) -> &'static [usize] {
        let record = core::ptr::from_ref(self);
        // SAFETY: the frames follow the record, in the same piece of memory.
        let frames = unsafe { record.add(1) }.cast::<usize>();
        // SAFETY: as many frames follow as the record says, for ever.
        unsafe { core::slice::from_raw_parts(frames, self.depth as usize) }
    }

    /// Returns the counts of each size.
    pub(crate) fn sizes(&'static self) -> impl Iterator<Item = &'static SizeCount> {
        let load = |link: &AtomicPtr<SizeCount>| {
            // Acquire: pairs with the Release in `add`.
            let count = link.load(Ordering::Acquire);
            // SAFETY: counts are never unmapped.
            unsafe { count.as_ref() }
        };
        core::iter::successors(load(&self.sizes), move |count: &&'static SizeCount| {
            load(&count.next)
        })
    }

    /// Returns the counts for samples of `requested` bytes in blocks of `usable` bytes. `None`:
    /// there is no memory.
    pub(super) fn counts(
        &'static self,
        requested: usize,
        usable: usize,
    ) -> Option<&'static SizeCount> {
        if let Some(known) = self.find(requested, usable) {
            return Some(known);
        }
        if self.is_full()
            && let Some(of_class) = self.find(usable, usable)
        {
            return Some(of_class);
        }
        let _adding = ADDING.lock();
        let requested = if self.is_full() { usable } else { requested };
        match self.find(requested, usable) {
            Some(of_class) => Some(of_class),
            None => self.add(requested, usable),
        }
    }

    /// Returns whether requests of new sizes are counted by the size of their blocks.
    fn is_full(&self) -> bool {
        let is_full = self.size_count.load(Ordering::Relaxed) >= SURE_SIZES
            && COUNT_BYTES.get() >= MOST_COUNTS * size_of::<SizeCount>() as u64;
        if is_full {
            MANY_SIZES.come();
        }
        is_full
    }

    /// Returns the hash of the site and a size.
    fn hash_with(&self, requested: usize) -> u64 {
        (u64::from(self.number) << 32 ^ requested as u64).wrapping_mul(MULTIPLIER)
    }

    fn find(&'static self, requested: usize, usable: usize) -> Option<&'static SizeCount> {
        COUNTS.find(self.hash_with(requested), |count| {
            core::ptr::eq(count.site, self)
                && (count.requested, count.usable) == (requested, usable)
        })
    }

    /// Adds the counts of a size. Called under the lock.
    fn add(&'static self, requested: usize, usable: usize) -> Option<&'static SizeCount> {
        let bytes = size_of::<SizeCount>();
        let memory = metadata::allocate(bytes, align_of::<SizeCount>())?.cast::<SizeCount>();
        let count = SizeCount {
            site: self,
            requested,
            usable,
            next: AtomicPtr::new(self.sizes.load(Ordering::Relaxed)),
            links: no_links(),
            allocated: AtomicU64::new(0),
            freed: AtomicU64::new(0),
        };
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { memory.write(count) };
        COUNT_BYTES.add(bytes as u64);
        // Release: pairs with the Acquire in `sizes`.
        self.sizes.store(memory.as_ptr(), Ordering::Release);
        self.size_count.fetch_add(1, Ordering::Relaxed);
        // SAFETY: just written, and never unmapped.
        let count = unsafe { memory.as_ref() };
        COUNTS.add(count);
        Some(count)
    }
}

impl Record for Site {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

impl Record for SizeCount {
    fn hash(&self) -> u64 {
        self.site.hash_with(self.requested)
    }

    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

impl SizeCount {
    /// Returns the stack.
    pub(crate) fn site(&self) -> &'static Site {
        self.site
    }

    /// Returns the bytes that were requested.
    pub(crate) fn requested(&self) -> usize {
        self.requested
    }

    /// Returns the bytes that a block has.
    pub(crate) fn usable(&self) -> usize {
        self.usable
    }

    /// Returns the counts. Samples that are freed meanwhile may be missing.
    pub(crate) fn get(&self) -> Counted {
        // Freed ones are read first, because none is freed before it was allocated.
        // Acquire: pairs with the Release in `note_freed`.
        let freed = self.freed.load(Ordering::Acquire);
        Counted { allocated: self.allocated.load(Ordering::Relaxed), freed }
    }

    pub(super) fn note_allocated(&self) {
        self.allocated.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_freed(&self) {
        // Release: pairs with the Acquire in `get`.
        self.freed.fetch_add(1, Ordering::Release);
    }

    /// Forgets a sample that is in use.
    pub(super) fn forget(&self) {
        self.allocated.fetch_sub(1, Ordering::Relaxed);
    }

    /// Forgets the samples that were freed. Each was allocated, so that those that other threads
    /// allocate or free meanwhile are counted right.
    pub(super) fn forget_freed(&self) {
        // Acquire: pairs with the Release in `note_freed`.
        let freed = self.freed.swap(0, Ordering::Acquire);
        self.allocated.fetch_sub(freed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::message;
    use crate::profile::event::What;
    use crate::profile::event_buffer::Buffer;
    use crate::profile::recorder;
    use core::ffi::{CStr, c_char, c_void};

    static TOLD: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn sink(_: *mut c_void, text: *const c_char) {
        // SAFETY: a sink is called with a C string.
        if unsafe { CStr::from_ptr(text) }.to_bytes() == MANY_STACKS.text {
            // Other tests may write their messages under a lock.
            witness::none_held();
            TOLD.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_stack_is_stored_once_and_its_sizes_are_counted_apart() {
        let stack = [0x1001, 0x1002, 0x1003];
        let one = counts(&stack, 100, 112).expect("memory");
        let again = counts(&stack, 100, 112).expect("memory");
        let other = counts(&stack, 101, 112).expect("memory");
        assert!(core::ptr::eq(one, again) && !core::ptr::eq(one, other));
        assert!(core::ptr::eq(one.site(), other.site()));
        assert_eq!(one.site().frames(), stack);
        assert_eq!((one.requested(), one.usable(), one.site().sizes().count()), (100, 112, 2));
        let shorter = counts(&stack[..2], 100, 112).expect("memory");
        assert!(!core::ptr::eq(shorter.site(), one.site()));
        assert!(newest_first().any(|site| core::ptr::eq(site, one.site())));
        let numbers: Vec<u32> = newest_first().map(Site::number).collect();
        assert!(
            numbers.is_sorted_by(|newer, older| *newer == older + 1) && numbers.ends_with(&[1])
        );
        assert!(shorter.site().number() > one.site().number());
        one.note_allocated();
        one.note_allocated();
        one.note_freed();
        assert_eq!(one.get(), Counted { allocated: 2, freed: 1 });
        assert_eq!(other.get(), Counted::default());
        one.forget_freed();
        assert_eq!(one.get(), Counted { allocated: 1, freed: 0 });
        one.forget();
        assert_eq!(one.get(), Counted::default());
    }

    #[test]
    fn a_site_with_many_sizes_counts_the_others_by_their_class() {
        let of = |stack, requested| counts(&[stack], requested, 8192).expect("memory");
        let most = MOST_COUNTS as usize;
        assert!((1..most - 512).all(|requested| of(0x2001, requested).requested() == requested));
        // Other tests may make some counts, so the end may come earlier.
        for requested in most - 512..=most {
            of(0x2001, requested);
        }
        let more = [6000, 6001, 6002].map(|requested| of(0x2001, requested));
        assert!(more.iter().all(|count| core::ptr::eq(*count, more[0])));
        assert_eq!((more[0].requested(), more[0].usable()), (8192, 8192));
        assert_eq!(of(0x2001, 7).requested(), 7);
        // Another stack counts some sizes apart all the same.
        let sure = SURE_SIZES as usize;
        assert!((1..=sure).all(|requested| of(0x2002, requested).requested() == requested));
        assert_eq!(of(0x2002, sure + 1).requested(), 8192);
    }

    #[test]
    fn that_stacks_share_a_site_is_told_once_where_no_lock_is_held() {
        let told = || TOLD.load(Ordering::Relaxed);
        // SAFETY: the sink takes any C string at any time.
        unsafe { message::set_sink(Some(sink)) };
        let adding = ADDING.lock();
        let shared = || shared(&MANY_STACKS);
        let site = shared().expect("memory");
        assert!(site.frames().is_empty() && core::ptr::eq(shared().expect("memory"), site));
        drop(adding);
        // The recorder tells it where it holds no lock.
        recorder::note(Buffer::make(), 0, What::Allocated { size: 1 }, None);
        assert!(!MANY_STACKS.is_due());
        // Another test may have begun to tell it before.
        while told() == 0 {
            std::thread::yield_now();
        }
        tell_shared();
        assert!(shared().is_some());
        tell_shared();
        assert_eq!(told(), 1);
        // SAFETY: no sink.
        unsafe { message::set_sink(None) };
    }
}
