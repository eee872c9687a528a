//! `vm.*`: the names of vmalloc(3).
use crate::row::Spec;
use crate::row_macros::{ro, rw};
use crate::snapshot::{self, Published};
use lumalloc::control;
use lumalloc::observe;

/// A row read from the published snapshot.
macro_rules! stat {
    ($name:literal, $kind:ident, $unit:ident, $look:expr, $help:literal) => {
        ro!(concat!("vm.stat.", $name), $kind, $unit, |_| snapshot::read($look), $help)
    };
}

/// The rows of `vm.*`.
pub static ROWS: &[Spec] = &[
    rw!(
        "vm.regmax",
        Unsigned,
        Count,
        |_| control::regmax(),
        |_, regmax| {
            control::set_regmax(regmax);
            Ok(())
        },
        "most automatic arenas beside the first; those that exist stay"
    ),
    stat!("n_region", Unsigned, Count, |now| now.totals().arenas_open, "arenas made"),
    stat!("n_open", U64, Count, |now| now.totals().n_open, "entries into arenas that did not wait"),
    stat!("n_lock", U64, Count, |now| now.totals().n_lock, "entries into arenas that waited"),
    stat!(
        "n_probe",
        U64,
        Count,
        |now| now.totals().n_probe,
        "entries that searched for a free arena"
    ),
    stat!(
        "n_busy",
        U64,
        Count,
        |now| Blocks::busy(now).number,
        "blocks that the program holds, and large ones that threads keep"
    ),
    stat!("s_busy", Size, Bytes, |now| now.totals().allocated, "in blocks that the program holds"),
    stat!(
        "m_busy",
        Size,
        Bytes,
        |now| Blocks::busy(now).largest,
        "of the largest block that the program holds, rounded up to its class"
    ),
    stat!(
        "n_free",
        U64,
        Count,
        |now| Blocks::free(now).number,
        "free blocks in slabs and thread caches, and unused runs of pages with memory"
    ),
    stat!(
        "s_free",
        Size,
        Bytes,
        |now| now.totals().mapped.saturating_sub(now.totals().allocated),
        "of the extent, not in blocks that the program holds"
    ),
    stat!(
        "m_free",
        Size,
        Bytes,
        |now| Blocks::free(now).largest,
        "of the largest free block: of runs, the mean of their largest class"
    ),
    ro!(
        "vm.stat.n_seg",
        Size,
        Count,
        |_| snapshot::segments(),
        "ranges of addresses without a gap, those without memory among them"
    ),
    stat!(
        "extent",
        Size,
        Bytes,
        |now| now.totals().mapped,
        "taken from the system, the allocator's own records among it"
    ),
    ro!("vm.stat.mode", Unsigned, None, |_| MODE, "flags of the regions: VM_MTBEST and VM_SHARE"),
];

/// `VM_MTBEST | VM_SHARE`, as vmalloc.h of 2011 has them.
const MODE: u32 = 0o100 | 0o010;

/// Blocks of all arenas together, counted by size class.
#[derive(Default)]
struct Blocks {
    number: u64,
    /// Bytes of the largest block.
    largest: usize,
}

impl Blocks {
    /// The blocks that the program holds, and the large blocks that threads keep. The counts by
    /// class do not tell the two apart.
    fn busy(now: &Published) -> Blocks {
        let mut blocks = Blocks::default();
        let Some(all) = now.arena(snapshot::ALL) else { return blocks };
        for (class, bin) in all.bins.iter().enumerate() {
            blocks.add(bin.curregs.saturating_sub(bin.cached), observe::slab_class_size(class));
        }
        for (class, large) in all.lextents.iter().enumerate() {
            blocks.add(large.curlextents, observe::lextent_size(class));
        }
        blocks
    }

    /// The blocks that a request could get without new memory from the system.
    fn free(now: &Published) -> Blocks {
        let mut blocks = Blocks::default();
        let Some(all) = now.arena(snapshot::ALL) else { return blocks };
        for (class, bin) in all.bins.iter().enumerate() {
            let (slots, _) = observe::slab_class_slab(class);
            let in_slabs = (bin.curslabs * slots).saturating_sub(bin.curregs);
            blocks.add(in_slabs + bin.cached, observe::slab_class_size(class));
        }
        for runs in &all.extents {
            let (number, bytes) = (runs.ndirty + runs.nmuzzy, runs.dirty_bytes + runs.muzzy_bytes);
            blocks.add(number, bytes.checked_div(number).unwrap_or(0));
        }
        blocks
    }

    fn add(&mut self, number: usize, size: usize) {
        if number > 0 {
            self.number += number as u64;
            self.largest = self.largest.max(size);
        }
    }
}
