//! The core data of a region: what stays of it when its handle is gone.
//!
//! It lies at the start of the region's first segment, and holds nothing that depends on its
//! address.

use crate::flags::Flags;
use crate::lock::Lock;
use crate::mode;
use crate::random::random;
use crate::segments::{Link, Number, Segment, Segments};
use crate::words::{GRANULE, Words, in_order};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What the sealed word at the start of core data says: five letters, and the number of the layout,
/// which changes when the layout does.
const INTACT: u64 = 0x72_6567_696f << 4 | 4;

/// What it says in a region for debugging, whose blocks have another layout.
const INTACT_DEBUG: u64 = INTACT + 1;

/// What the word says in a region with this method and these flags.
const fn intact(mode: u32) -> u64 {
    if mode & mode::METHODS == mode::DEBUG { INTACT_DEBUG } else { INTACT }
}

/// Says that blocks are being forgotten. If the process ends meanwhile, this is done again.
const CLEARING: u32 = u32::from_le_bytes(*b"clea");

/// What every region has, whatever its method.
#[repr(C)]
pub struct Head {
    pub(crate) lock: Lock,
    key: AtomicU64,
    intact: Link,
    pub(crate) mode: Flags,
    /// [`CLEARING`] while all blocks are forgotten, or 0.
    clearing: AtomicU32,
    /// The distance to the handle, or 0 if it does not lie in the region's memory.
    handle: Number,
    /// What sizes of segments are multiples of.
    pub(crate) unit: Number,
    /// The header of the first segment. A link of 0 leads nowhere, so it is not the first field.
    pub(crate) first: Segment,
    pub(crate) segments: Segments,
    /// Leads to the first value with a key.
    pub(crate) values: Link,
    /// Blocks that the program has, and their bytes, for a method that counts them.
    busy: Number,
    busy_bytes: Number,
}

impl Head {
    /// The head of a region whose memory is not kept here.
    #[must_use]
    pub const fn without_memory(mode: u32) -> Head {
        // SAFETY: all fields are integers.
        let head: Head = unsafe { core::mem::zeroed() };
        Head { mode: Flags::new(mode), ..head }
    }

    /// Makes the region free: the thread that was in it is gone, and so is its visitor.
    pub fn free_lock(&self) {
        self.lock.begin();
        self.change_mode(mode::VISITED, false);
    }

    /// Returns the address of the handle, if it lies in the region's memory.
    pub fn handle(&self) -> Option<usize> {
        let distance = self.handle.get();
        (distance != 0).then(|| self.address().wrapping_add(distance))
    }

    /// Returns whether this is the core data of a region with a method, of this layout.
    pub fn is_intact(&self, method: u32) -> bool {
        let is_sealed = self.words().unseal(self.intact.place()) == Some(intact(method));
        (is_sealed || self.is_clearing()) && self.mode() & mode::METHODS == method
    }

    /// Returns whether this can be the head of a region of several processes, whose only segment
    /// begins here and ends before `limit` bytes. Another process may let it grow meanwhile, so its
    /// size is read before the limit.
    pub fn is_shared(&self, limit: impl FnOnce() -> usize) -> bool {
        let (start, segment) = (self.address(), &self.first);
        let extent = segment.extent();
        in_order();
        self.has_flags(mode::PROCESSES)
            && self.handle.get() == 0
            && self.unit.get() == lumalloc::PAGE
            && segment.memory() == start
            && extent <= limit()
            && (start + size_of::<Head>()..=segment.end()).contains(&segment.first())
            && segment.first().is_multiple_of(GRANULE)
    }

    /// Makes the core data that of no region: its segments are being released.
    pub(crate) fn note_closed(&self) {
        self.words().seal(self.intact.place(), 0);
        self.note_clearing(false);
    }

    /// Frees the lock, and clears the flags that programs set: no process has the region. Does
    /// nothing if the process that has the lock is seen to exist, unless the lock was copied.
    pub(crate) fn begin_again(&self, is_copied: bool) {
        if is_copied {
            self.free_lock();
        }
        if self.lock.free_unless_seen() {
            self.clear_flags();
        }
    }

    /// Clears the flags that programs set.
    pub(crate) fn clear_flags(&self) {
        self.change_mode(mode::FLAGS & !mode::SHARE | mode::ANNOUNCE, false);
    }

    /// Returns the sum of the segments' sizes.
    pub fn extent(&self) -> usize {
        self.segments.extent()
    }

    /// Returns how many blocks the program has, and their bytes, if the method counts them.
    pub(crate) fn busy(&self) -> (usize, usize) {
        (self.busy.get(), self.busy_bytes.get())
    }

    /// Access to the region's words.
    #[inline]
    pub(crate) fn words(&self) -> Words {
        // SAFETY: a `Head` lies in a region's first segment, and whoever has a reference to it is
        // in the region, or is the only one to know it.
        unsafe { Words::new(self.address(), self.key.load(Ordering::Relaxed)) }
    }

    #[inline]
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }

    /// Makes the head of a new region, whose handle lies `handle` bytes behind it unless that is 0.
    pub(crate) fn begin(&self, mode: u32, unit: usize, handle: usize) {
        self.lock.begin();
        self.key.store(random(self.address()), Ordering::Relaxed);
        self.words().seal(self.intact.place(), intact(mode));
        self.mode.begin(mode);
        self.clearing.store(0, Ordering::Relaxed);
        self.handle.set(handle);
        self.unit.set(unit);
        self.segments.begin(self.words());
        self.words().set_link(self.values.place(), 0);
        self.busy.set(0);
        self.busy_bytes.set(0);
    }

    /// Returns whether a process ended while it forgot all blocks.
    pub(crate) fn is_clearing(&self) -> bool {
        self.clearing.load(Ordering::Relaxed) == CLEARING
    }

    /// Notes that all blocks are being forgotten, or were.
    pub(crate) fn note_clearing(&self, now: bool) {
        in_order();
        self.clearing.store(if now { CLEARING } else { 0 }, Ordering::Relaxed);
        in_order();
    }

    /// Forgets all blocks: takes another key, so that no word sealed before counts any
    /// more, and seals the segments anew.
    pub(crate) fn forget_blocks(&self) {
        let old = self.words();
        self.take_another_key();
        self.segments.reseal(old, self.words());
    }

    /// Makes the table of segments anew after a process ended in the region. Files have one
    /// segment, and their lists may be damaged.
    pub(crate) fn recover_segments(&self) {
        let words = self.words();
        if self.has_flags(mode::PROCESSES) {
            self.segments.begin_with(words, &self.first);
        } else {
            self.segments.recover(words, &self.first);
        }
    }

    /// As [`Head::forget_blocks`], for a region whose only segment is the first.
    pub(crate) fn forget_blocks_again(&self) {
        self.take_another_key();
        self.segments.begin_with(self.words(), &self.first);
    }

    fn take_another_key(&self) {
        self.key.store(random(self.address()), Ordering::Relaxed);
        self.words().seal(self.intact.place(), intact(self.mode()));
        self.words().set_link(self.values.place(), 0);
        self.busy.set(0);
        self.busy_bytes.set(0);
    }

    /// Notes a new block of so many bytes.
    #[inline]
    pub(crate) fn count_new(&self, bytes: usize) {
        self.busy.add(1);
        self.busy_bytes.add(bytes);
    }

    /// Notes that a block has `bytes` instead of `before`.
    pub(crate) fn count_resized(&self, before: usize, bytes: usize) {
        self.busy_bytes.add(bytes.wrapping_sub(before));
    }

    /// Notes that a block moved, and has left so many bytes. A program may resize an address more
    /// than once that was a block's, so one block is left in any case.
    pub(crate) fn count_left(&self, bytes: usize) {
        if self.busy.get() > 1 {
            self.busy.subtract(1);
            self.busy_bytes.subtract(bytes);
        }
    }

    /// Notes that a block of so many bytes is gone.
    #[inline]
    pub(crate) fn count_gone(&self, bytes: usize) {
        self.busy.subtract(1);
        self.busy_bytes.subtract(bytes);
    }
}

/// The core data of a region whose method keeps an `S`.
#[repr(C)]
pub struct Data<S> {
    pub(crate) head: Head,
    pub(crate) state: S,
}
