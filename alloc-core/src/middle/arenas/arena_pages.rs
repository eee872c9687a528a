//! What the lock of an arena's pages guards: its runs of pages, records of slabs, and counts.

use super::arena_name::Name;
use super::entries::Entries;
use crate::back::map::extent::Extent;
use crate::back::map::page_map::{self, Entry};
use crate::back::metadata::Pool;
use crate::back::page_allocator::{Memory, PageAllocator};
use crate::back::placement::untouched;
use crate::back::purge_batch::Batch;
use crate::back::runs::access;
use crate::back::system::page_provider::PageProvider;
use crate::ground::in_place::{Place, write_fields};
use crate::ground::size_class::SizeClass;
use crate::ground::units::PAGE;
use crate::middle::arena_counts::{LargeCounts, SlabCounts};
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::slab_record::{RECORD_CLASSES, lg_words, record_bytes};

/// What the lock of an arena's pages guards.
pub(crate) struct ArenaPages {
    /// The index of the arena.
    id: u32,
    /// Runs of pages.
    pub(crate) allocator: PageAllocator,
    /// Records of slabs that wait for their next use, by length.
    records: [Pool<Slab>; RECORD_CLASSES],
    /// Large blocks.
    pub(crate) large: LargeCounts,
    /// Slabs.
    pub(crate) slabs: SlabCounts,
    /// Threads that chose this arena.
    pub(crate) entries: Entries,
    /// The name of the arena.
    pub(crate) name: Name,
}

impl ArenaPages {
    /// Writes the pages of a new arena, of which there are none yet, to `place`.
    pub(in crate::middle) fn begin_at(
        place: Place<ArenaPages>,
        id: u32,
        created: bool,
        provider: &'static dyn PageProvider,
    ) {
        write_fields!(place => ArenaPages {
            id: id,
            allocator => |at| PageAllocator::begin_at(at, id, provider),
            records: [const { Pool::new() }; RECORD_CLASSES],
            large: LargeCounts::new(),
            slabs: SlabCounts::new(),
            entries: Entries::new(),
            name: Name::of_arena(id, created),
        });
    }

    /// Takes a run for a large block. In the hardened tier a page before it and one behind it stay
    /// free: they are too short for any other run, and no thread may touch them. There is none
    /// before a block whose alignment is more than a page.
    pub(crate) fn allocate_large(
        &mut self,
        pages: usize,
        align: usize,
        memory: Memory,
    ) -> Option<&'static Extent> {
        let behind = usize::from(!self.allocator.is_hooked() && access::leaves_gap(pages));
        let before = if align > PAGE { 0 } else { behind };
        let mut extent = self.allocator.allocate(before + pages + behind, align, memory)?;
        if behind > 0 && (extent.zeroed.get() || extent.was_wiped()) {
            // For the parts that are cut off, and join free runs beside them.
            extent.note_wiped();
        }
        if before > 0 {
            extent = self.allocator.cut_lead(extent, before);
        }
        if behind > 0 {
            self.allocator.shrink(extent, pages);
            extent.note_used();
        }
        self.large.add(extent.pages());
        Some(extent)
    }

    /// Takes the run of a large block back.
    pub(crate) fn free_large(&mut self, extent: &'static Extent) {
        self.large.remove(extent.pages());
        access::close(extent, self.allocator.is_hooked());
        self.allocator.free(extent);
    }

    /// Whether the memory of a large block is given back when the block is freed. The hooks of an
    /// arena are asked only about those that are too long to be kept.
    pub(crate) fn is_purged_at_once(&mut self, extent: &Extent) -> bool {
        self.allocator.aging().is_oversized(extent.bytes())
            || (!self.allocator.is_hooked() && access::is_to_wait(extent))
    }

    /// As [`ArenaPages::free_large`], but returns a batch that the caller purges now.
    pub(crate) fn free_large_into_batch(&mut self, extent: &'static Extent) -> Batch {
        self.large.remove(extent.pages());
        access::close(extent, self.allocator.is_hooked());
        self.allocator.free_into_batch(extent)
    }

    /// Makes a slab of fresh pages, with all blocks free, guarded by `guard`.
    pub(crate) fn new_slab(
        &mut self,
        class: SizeClass,
        guard: Guard,
        memory: Memory,
    ) -> Option<&'static Slab> {
        let lg = lg_words(class);
        let record = match self.records.get_mut(lg).and_then(Pool::take) {
            Some(record) => record,
            None => {
                let record = Slab::new_record(lg, self.id)?;
                self.slabs.record_bytes += record_bytes(lg);
                record
            }
        };
        let slab_pages = usize::from(class.row().slab_pages);
        let may_be_huge = memory == Memory::Any && untouched::may_be_huge(slab_pages);
        let memory = memory.counted_if(may_be_huge);
        let run = self.allocator.allocate(slab_pages, class.slab_align(), memory);
        let Some(extent) = run else {
            if let Some(pool) = self.records.get_mut(lg) {
                pool.put(record);
            }
            return None;
        };
        record.prepare(extent, class);
        record.fresh.begin(extent);
        page_map::set_all(extent, record.entry());
        record.remote.birth(guard);
        self.slabs.add(class);
        Some(record)
    }

    /// Takes back the pages of a slab that its guard has just released. `is_zero` says whether the
    /// slab has left them zero.
    pub(in crate::middle) fn take_back(
        &mut self,
        slab: &'static Slab,
        extent: &'static Extent,
        is_zero: bool,
    ) {
        page_map::set_all(extent, Entry::NONE);
        page_map::set_ends(extent);
        if is_zero {
            extent.note_wiped();
        }
        self.allocator.free(extent);
        self.slabs.remove(slab.class());
        if let Some(pool) = self.records.get_mut(slab.lg_words()) {
            pool.put(slab);
        }
    }
}
