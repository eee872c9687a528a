//! The record of a run of pages, which lies outside of the run.
//!
//! ```text
//!   Active ──free──▶ Dirty ──▶ (InHand) ──▶ Muzzy ──▶ (InHand) ──▶ Retained ──▶ Active
//!      ▲└───free──▶ Kept ─────▲
//!      └──────malloc──┘
//! ```
//! A run is `InHand` while it is in no list: see [`crate::back::runs::in_hand`]. A run that is
//! purged is in hand while the system takes its memory outside the lock. Without `opt.retain` the
//! system takes the addresses too, and no record of them remains. `Kept` runs wait in a thread
//! cache, and their arena counts them as in use. In the hardened tier a run may be `Waiting` before
//! it is `Retained`: see [`crate::back::runs::waiting`].

use crate::back::metadata::Recycled;
use crate::back::system::mapping::{Mapping, MappingCell};
use crate::ground::operator::Operator;
use crate::ground::units::{LG_PAGE, PAGE};
use core::cell::Cell;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What a run of pages is at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum ExtentState {
    /// In use as a slab or a large block.
    Active,
    /// Free, and its memory is still there.
    Dirty,
    /// Free, and the system may have taken its memory.
    Muzzy,
    /// Free addresses without memory.
    Retained,
    /// In no list, because it is being cut, moved or purged, or waits for a certain use.
    InHand,
    /// Given back with its addresses (for a run of a purge batch).
    Gone,
    /// Free in a thread's cache of runs, and its memory is still there.
    Kept,
    /// Free addresses without memory and without access, which are not to be used again yet.
    Waiting,
    /// The record stands for no run.
    Spare,
}

impl ExtentState {
    /// The states of free runs, in the order in which they are used.
    pub(crate) const FREE: [ExtentState; 3] =
        [ExtentState::Dirty, ExtentState::Muzzy, ExtentState::Retained];

    fn numbered(number: u8) -> ExtentState {
        use ExtentState::{Active, Dirty, Gone, InHand, Kept, Muzzy, Retained, Spare, Waiting};
        const STATES: [ExtentState; 9] =
            [Active, Dirty, Muzzy, Retained, InHand, Gone, Kept, Waiting, Spare];
        const _: () = assert!(InHand as usize == 4 && Spare as usize == 8);
        STATES.get(usize::from(number)).copied().unwrap_or(InHand)
    }
}

/// The state of a run. Neighbours read it under the arena's lock while its owner may change it
/// between Active and Kept under the lock of a cache. In both states it is not free for them.
pub(crate) struct StateCell(AtomicU8);

impl StateCell {
    const fn new(state: ExtentState) -> StateCell {
        StateCell(AtomicU8::new(state as u8))
    }

    /// The state.
    #[inline]
    pub(crate) fn get(&self) -> ExtentState {
        ExtentState::numbered(self.0.load(Relaxed))
    }

    /// Sets the state. For [`crate::back::runs::in_hand`], and for a record that becomes spare.
    #[inline]
    pub(in crate::back) fn set(&self, state: ExtentState) {
        self.0.store(state as u8, Relaxed);
    }

    /// Sets the state if it is `from`. Of several threads that try, one succeeds.
    #[inline]
    pub(crate) fn advance(&self, from: ExtentState, to: ExtentState) -> bool {
        self.0.compare_exchange(from as u8, to as u8, Relaxed, Relaxed).is_ok()
    }
}

/// Facts about a run, in a byte. The lock of the arena's page allocator guards them.
pub(in crate::back) struct Marks(Cell<u8>);

impl Marks {
    const HEAD: u8 = 1;
    const CLOSED: u8 = 2;
    const WIPED: u8 = 4;
    const WAS_WIPED: u8 = 8;

    /// Whether the run begins a reservation. It is never merged with what lies before it.
    pub(in crate::back) fn is_head(&self) -> bool {
        self.0.get() & Marks::HEAD != 0
    }

    /// Sets [`Marks::is_head`].
    pub(in crate::back) fn set_head(&self, is: bool) {
        self.set(Marks::HEAD, is);
    }

    /// Whether part of the run may be without access: see [`crate::back::runs::access`].
    pub(in crate::back) fn is_closed(&self) -> bool {
        self.0.get() & Marks::CLOSED != 0
    }

    /// Sets [`Marks::is_closed`].
    pub(in crate::back) fn set_closed(&self, is: bool) {
        self.set(Marks::CLOSED, is);
    }

    /// Whether the last slab on each page of a free run has left it zero, or will have when a run
    /// in use is freed. A program may have written to it after a free, so no request for zeroed
    /// memory relies on this, unlike on [`Extent::zeroed`].
    pub(in crate::back) fn is_wiped(&self) -> bool {
        self.0.get() & Marks::WIPED != 0
    }

    /// Sets [`Marks::is_wiped`].
    pub(in crate::back) fn set_wiped(&self, is: bool) {
        self.set(Marks::WIPED, is);
    }

    /// Notes that the run is in use from now on, and not wiped any more.
    pub(in crate::back) fn begin_use(&self) {
        self.set(Marks::WAS_WIPED, self.is_wiped());
        self.set_wiped(false);
    }

    fn set(&self, mark: u8, is: bool) {
        self.0.set(if is { self.0.get() | mark } else { self.0.get() & !mark });
    }
}

/// What is noted beside the state: the next state of a run in a purge batch, or the operator of a
/// block in use. They share a byte, because no run has both.
pub(crate) struct Note(Cell<u8>);

impl Note {
    /// Numbers from here on are operators. Those below are states.
    const OPERATORS: u8 = 16;

    /// The state that the run gets when its purge batch is filed. The state itself stays `InHand`
    /// until then, because neighbours read it under the lock, and the batch is outside.
    pub(in crate::back) fn after_purge(&self) -> ExtentState {
        ExtentState::numbered(self.0.get())
    }

    /// Sets [`Note::after_purge`].
    pub(in crate::back) fn set_after_purge(&self, state: ExtentState) {
        self.0.set(state as u8);
    }

    /// By which operator the block was allocated, if that is noted.
    pub(crate) fn operator(&self) -> Operator {
        let number = self.0.get().checked_sub(Note::OPERATORS);
        let operator = number.and_then(|number| Operator::ALL.get(usize::from(number)));
        operator.copied().unwrap_or(Operator::Unknown)
    }

    /// Sets [`Note::operator`]. Only the owner of the block may do so.
    pub(crate) fn set_operator(&self, operator: Operator) {
        self.0.set(Note::OPERATORS + operator as u8);
    }
}

/// The link to the record before this one in a heap of runs or, while a large block is in use, how
/// many bytes were requested of it. They share a word, because no run has both. Sizes are odd
/// there, and the addresses of records even.
pub(in crate::back) struct PreviousOrSize(Cell<*const Extent>);

// SAFETY: as for a reference to a record, which is Sync.
unsafe impl Send for PreviousOrSize {}

impl PreviousOrSize {
    const SIZE: usize = 1;

    const fn new() -> PreviousOrSize {
        PreviousOrSize(Cell::new(core::ptr::null()))
    }

    /// The record before this one, if there is one.
    #[inline]
    pub(in crate::back) fn get(&self) -> Option<&'static Extent> {
        let word = self.0.get();
        if word.addr() & PreviousOrSize::SIZE != 0 {
            return None;
        }
        // SAFETY: null, or a record, which lives for ever.
        unsafe { word.as_ref() }
    }

    /// Sets the record before this one.
    #[inline]
    pub(in crate::back) fn set(&self, record: Option<&'static Extent>) {
        self.0.set(record.map_or(core::ptr::null(), core::ptr::from_ref));
    }

    /// Returns the record before this one, and forgets it.
    #[inline]
    pub(in crate::back) fn take(&self) -> Option<&'static Extent> {
        let record = self.get();
        self.set(None);
        record
    }

    fn size(&self) -> Option<usize> {
        let word = self.0.get().addr();
        (word & PreviousOrSize::SIZE != 0).then_some(word >> 1)
    }

    fn set_size(&self, size: Option<usize>) {
        let word = size.map_or(0, |size| size << 1 | PreviousOrSize::SIZE);
        self.0.set(core::ptr::without_provenance(word));
    }
}

/// The record of a run of pages. The lock of its arena's page allocator guards it, but the fields
/// of an active run belong to the owner of the block.
#[repr(C, align(64))]
pub(crate) struct Extent {
    base: Cell<usize>,
    pages: Cell<usize>,
    /// Set once, when the record is made, because records are recycled within their arena.
    arena: u16,
    mapping: MappingCell,
    pub(crate) state: StateCell,
    pub(crate) note: Note,
    /// Whether every byte reads zero (for a free or freshly allocated run).
    pub(crate) zeroed: Cell<bool>,
    pub(in crate::back) marks: Marks,
    // Links of the heap that the run is filed in; `heap_next` also chains spare records.
    pub(crate) heap_child: Cell<Option<&'static Extent>>,
    pub(in crate::back) heap_prev: PreviousOrSize,
    pub(crate) heap_next: Cell<Option<&'static Extent>>,
    // Links of the list by age; `younger` also chains a purge batch.
    pub(crate) older: Cell<Option<&'static Extent>>,
    pub(crate) younger: Cell<Option<&'static Extent>>,
}

const _: () = assert!(size_of::<Extent>() == 64);

// SAFETY: the cells are reached under the arena's lock, or by the one owner of an active run. The
// only field that other threads read, `arena`, never changes.
unsafe impl Sync for Extent {}

impl Extent {
    /// A record for runs of one arena, whose index is below 2^16.
    pub(crate) const fn new(arena: u32) -> Extent {
        Extent {
            base: Cell::new(0),
            pages: Cell::new(0),
            arena: arena as u16,
            mapping: MappingCell::new(),
            state: StateCell::new(ExtentState::Spare),
            note: Note(Cell::new(0)),
            zeroed: Cell::new(false),
            marks: Marks(Cell::new(0)),
            heap_child: Cell::new(None),
            heap_prev: PreviousOrSize::new(),
            heap_next: Cell::new(None),
            older: Cell::new(None),
            younger: Cell::new(None),
        }
    }

    /// The first address of the run.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base.get()
    }

    /// The first byte of the run.
    #[inline]
    pub(crate) fn base_ptr(&self) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(self.base.get())
    }

    /// Whether the run is in use and begins at `address`.
    pub(crate) fn is_block_at(&self, address: usize) -> bool {
        self.state.get() == ExtentState::Active && self.base.get() == address
    }

    /// Whether the run was wiped when its use began: see [`Extent::note_wiped`].
    pub(crate) fn was_wiped(&self) -> bool {
        self.marks.0.get() & Marks::WAS_WIPED != 0
    }

    /// Notes that the slab of a run that is about to be freed has zeroed all that it wrote there.
    pub(crate) fn note_wiped(&self) {
        self.marks.set_wiped(true);
    }

    /// Notes that the run is not as its last slab has left it.
    pub(crate) fn note_used(&self) {
        self.marks.set_wiped(false);
    }

    /// Whether a free run reads zero, unless the program has written to freed memory.
    pub(in crate::back) fn was_left_zero(&self) -> bool {
        self.zeroed.get() || self.marks.is_wiped()
    }

    /// How many bytes were requested of a large block in use. Only the hardened tier notes it.
    #[inline]
    pub(crate) fn requested(&self) -> Option<usize> {
        self.heap_prev.size()
    }

    /// Sets [`Extent::requested`]. Only the owner of a large block in use may do so.
    pub(crate) fn set_requested(&self, size: Option<usize>) {
        self.heap_prev.set_size(size);
    }

    /// The address after the last byte of the run.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.base.get() + self.bytes()
    }

    /// The length of the run in pages.
    #[inline]
    pub(crate) fn pages(&self) -> usize {
        self.pages.get()
    }

    /// The length of the run in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.pages.get() << LG_PAGE
    }

    /// The arena of the run.
    #[inline]
    pub(crate) fn arena(&self) -> u32 {
        u32::from(self.arena)
    }

    /// The kind of mapping that the pages of the run lie in.
    #[inline]
    pub(crate) fn mapping(&self) -> Mapping {
        self.mapping.get()
    }

    /// Returns whether the run lies at low addresses, and is for samples alone.
    #[inline]
    pub(crate) fn is_low(&self) -> bool {
        self.mapping() == Mapping::Low
    }

    /// Sets the mapping.
    pub(in crate::back) fn set_mapping(&self, mapping: Mapping) {
        self.mapping.set(mapping);
    }

    /// Whether no extent hook has taken the memory of the run away.
    #[inline]
    pub(in crate::back) fn is_committed(&self) -> bool {
        self.mapping() != Mapping::Decommitted
    }

    /// Makes the record stand for another range, whose operator is unknown.
    pub(crate) fn set_range(&self, base: usize, pages: usize) {
        debug_assert!(base.is_multiple_of(PAGE) && pages > 0);
        self.base.set(base);
        self.pages.set(pages);
        self.note.set_operator(Operator::Unknown);
    }

    /// The address at which an aligned part of `pages` pages begins in the run, if one fits.
    pub(crate) fn fit(&self, pages: usize, align: usize) -> Option<usize> {
        let begin = crate::ground::units::checked_round_up(self.base(), align)?;
        let end = begin.checked_add(pages << LG_PAGE)?;
        if end <= self.end() { Some(begin) } else { None }
    }

    /// Whether both are the same record.
    #[inline]
    pub(crate) fn is(&self, other: &Extent) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Recycled for Extent {
    fn next_free(&self) -> &Cell<Option<&'static Extent>> {
        &self.heap_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::provider::fixed::keep;

    #[test]
    fn a_note_is_a_state_or_an_operator() {
        let note = Note(Cell::new(0));
        for state in [ExtentState::Dirty, ExtentState::Muzzy, ExtentState::Retained] {
            note.set_after_purge(state);
            assert_eq!((note.after_purge(), note.operator()), (state, Operator::Unknown));
        }
        for operator in Operator::ALL {
            note.set_operator(operator);
            assert_eq!(note.operator(), operator);
        }
    }

    #[test]
    fn a_word_is_a_link_or_a_size() {
        let record: &'static Extent = keep(Box::new(Extent::new(0)));
        let run = Extent::new(0);
        assert!(run.heap_prev.get().is_none() && run.requested().is_none());
        for size in [0, 1, 200_000, 1 << 48] {
            run.set_requested(Some(size));
            assert_eq!(run.requested(), Some(size));
            assert!(run.heap_prev.get().is_none());
        }
        run.heap_prev.set(Some(record));
        assert_eq!(run.requested(), None);
        assert!(run.heap_prev.take().is_some_and(|link| link.is(record)));
        assert!(run.heap_prev.get().is_none());
        run.set_requested(Some(7));
        run.set_requested(None);
        assert_eq!(run.requested(), None);
    }

    #[test]
    fn a_state_advances_from_the_expected_one_only() {
        use ExtentState::{Active, Dirty, Kept};
        let state = StateCell::new(Active);
        assert!(!state.advance(Kept, Dirty));
        assert_eq!(state.get(), Active);
        assert!(state.advance(Active, Kept));
        assert_eq!(state.get(), Kept);
    }
}
