//! Size classes: jemalloc(3), Table 1.
//!
//! The sizes are 8, then the multiples of 16 up to 128, then four classes per doubling. Classes up
//! to 32 KiB are served from slabs through the thread cache ([`SizeClass`]), while jemalloc's slabs
//! end at 14336. Larger requests are page runs, which [`class_round`] also rounds to four sizes per
//! doubling.
//!
//! ```text
//!   class  0   1   2   3  …  8    9   10   11   12   13 …        35      36 …    40
//!   size   8  16  32  48  … 128  160  192  224  256  320 …      14336   16384 … 32768
//!          \__ step 16 __/  \__ step 32 ______/ \_ step 64 …
//! ```

use super::units::{MAX_SIZE, PAGE, SLAB_BYTES, checked_round_up, round_up};

/// The number of classes that are served from slabs (`arenas.nbins`).
pub(crate) const CLASSES: usize = 41;

/// The largest size that is served from a slab.
pub(crate) const MAX_CACHED: usize = 32 << 10;

/// The number of `u64` words that hold one bit per block of the fullest slab.
pub(crate) const MAX_WORDS: usize = SLAB_BYTES / 8 / 64;

/// One of the [`CLASSES`] size classes that are served from slabs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct SizeClass(u8);

/// The parameters of one size class.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// Bytes in a block.
    pub(crate) size: u32,
    /// Pages in a slab.
    pub(crate) slab_pages: u16,
    /// Blocks in a slab.
    pub(crate) slots: u16,
    /// Whether the slabs are always guarded by the arena's bin, see [`SizeClass::is_shared`].
    shared: bool,
    /// `ceil(2^40 / size)`: division by `size` as a multiplication.
    reciprocal: u64,
    /// The most blocks that a thread may cache: 32 KiB of them, but at least 8 and at most 2048.
    pub(crate) cache_max: u16,
    /// As [`Row::cache_max`], for a thread that uses the class in bulk. Up to 63 blocks may then
    /// take 512 KiB.
    pub(crate) bulk_max: u16,
}

const fn class_size(index: usize) -> usize {
    if index == 0 {
        return 8;
    }
    if index <= 8 {
        return index * 16;
    }
    let group = (index - 9) / 4;
    let step = (index - 9) % 4;
    (128 << group) + (step + 1) * (32 << group)
}

/// Pages in a slab. Slabs have 64 KiB for blocks of up to 1024 bytes. Beyond that, 16, 8, 4 or 2
/// blocks fill a slab exactly, because slabs of few blocks become empty sooner, and their pages
/// then serve other classes.
const fn slab_pages(size: usize) -> usize {
    let blocks = match size {
        0..=1024 => return SLAB_BYTES / PAGE,
        1025..=2048 => 16,
        2049..=4096 => 8,
        4097..=14336 => 4,
        _ => 2,
    };
    blocks * size / PAGE
}

/// Slabs with at most this many blocks are shared.
const FEW_BLOCKS: usize = 4;

const fn clamp(n: usize, low: usize, high: usize) -> usize {
    if n < low {
        low
    } else if n > high {
        high
    } else {
        n
    }
}

const fn row(index: usize) -> Row {
    let size = class_size(index);
    let pages = slab_pages(size);
    let slots = pages * PAGE / size;
    Row {
        size: size as u32,
        slab_pages: pages as u16,
        slots: slots as u16,
        shared: slots <= FEW_BLOCKS,
        reciprocal: (1u64 << 40).div_ceil(size as u64),
        cache_max: clamp((32 << 10) / size, 8, 2048) as u16,
        bulk_max: clamp((32 << 10) / size, clamp((512 << 10) / size, 8, 63), 2048) as u16,
    }
}

/// The parameters of each class.
pub(crate) static ROWS: [Row; CLASSES] = {
    let mut rows = [row(0); CLASSES];
    let mut index = 0;
    while index < CLASSES {
        rows[index] = row(index);
        index += 1;
    }
    rows
};

/// log2 of the bytes of a cache line.
const LG_LINE: u32 = 6;

/// Bytes of one bin in a thread cache.
pub(crate) const BIN_BYTES: usize = 32;
/// The unit of bin offsets that have to fit in a byte. The instruction that adds the offset to the
/// address of the cache also multiplies by this unit.
pub(crate) const OFFSET_UNIT: usize = 8;

/// `OFFSET_OF_SIZE[(size + 7) / 8]` is where the bin of `size` begins in a thread cache, in units
/// of [`OFFSET_UNIT`].
///
/// Bin 0 is a trap, so class 0 has bin 1: see [`crate::front::bins::thread_cache`]. The first
/// entry, for requests of no bytes, leads to the trap, and so does the last one, for sizes up to 8
/// bytes beyond [`MAX_CACHED`].
pub(crate) static OFFSET_OF_SIZE: [u8; MAX_CACHED / 8 + 2] = {
    let mut table = [0; MAX_CACHED / 8 + 2];
    let mut index = 0;
    let mut eighth = 1;
    while eighth * 8 <= MAX_CACHED {
        if class_size(index) < eighth * 8 {
            index += 1;
        }
        table[eighth] = ((index + 1) * UNITS_OF_BIN) as u8;
        eighth += 1;
    }
    table
};

const UNITS_OF_BIN: usize = BIN_BYTES / OFFSET_UNIT;
const _: () = assert!(CLASSES * UNITS_OF_BIN <= u8::MAX as usize);

// The relations that the rest of the core relies on.
const _: () = {
    let mut index = 0;
    while index < CLASSES {
        let row = row(index);
        // Offsets are below 256 KiB = 2^18 and sizes at most 2^15, so the reciprocal's error,
        // below offset * size / 2^40 < 1 / 128, never reaches the next quotient.
        assert!(row.slab_pages as usize * PAGE <= 1 << 18);
        assert!(row.slots >= 2);
        // One bit per block fits in the words of a slab's record.
        assert!(row.slots as usize <= MAX_WORDS * 64);
        // At most an eighth of a slab is unused at its end. That part is never touched.
        assert!(
            (row.slab_pages as usize * PAGE) % (row.size as usize) * 8
                <= row.slab_pages as usize * PAGE
        );
        if index > 0 {
            assert!(class_size(index) > class_size(index - 1));
        }
        assert!(row.cache_max >= 8 && row.cache_max <= row.bulk_max);
        // The handling of long blocks in refills and overflow stacks was measured with this
        // boundary.
        assert!(row.shared == (row.size > 4096));
        index += 1;
    }
    assert!(class_size(CLASSES - 1) == MAX_CACHED);
};

impl SizeClass {
    /// Returns the class that serves `size` bytes, which is at most [`MAX_CACHED`].
    #[inline(always)]
    pub(crate) const fn of(size: usize) -> SizeClass {
        debug_assert!(size <= MAX_CACHED);
        // The smallest class serves requests of no bytes too.
        SizeClass((OFFSET_OF_SIZE[(size + 7) >> 3 & 0x1fff] / UNITS_OF_BIN as u8).saturating_sub(1))
    }

    /// Returns the class of a thread cache's bin: bin 0 is the trap, bin `n` is class `n - 1`.
    #[inline(always)]
    pub(crate) const fn from_bin(bin: usize) -> Option<SizeClass> {
        if bin == 0 || bin > CLASSES { None } else { Some(SizeClass(bin as u8 - 1)) }
    }

    /// Iterates over all classes, smallest first.
    pub(crate) fn all() -> impl Iterator<Item = SizeClass> {
        (0..CLASSES as u8).map(SizeClass)
    }

    /// The index of the class, from 0.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        // Tells the optimiser what the constructors guarantee.
        if self.0 as usize >= CLASSES { 0 } else { self.0 as usize }
    }

    /// The index of the class's bin in a thread cache.
    #[inline(always)]
    pub(crate) const fn bin(self) -> usize {
        self.index() + 1
    }

    /// The class's row in [`ROWS`].
    #[inline(always)]
    pub(crate) fn row(self) -> &'static Row {
        &ROWS[self.index()]
    }

    /// Bytes in a block.
    #[inline(always)]
    pub(crate) fn size(self) -> usize {
        self.row().size as usize
    }

    /// The alignment of a slab: the largest power of two that divides the block size, but at least
    /// a page. The blocks are then as aligned as their size allows.
    #[inline]
    pub(crate) fn slab_align(self) -> usize {
        (1 << self.size().trailing_zeros()).max(PAGE)
    }
    /// Blocks in a slab.
    #[inline(always)]
    pub(crate) fn slots(self) -> usize {
        self.row().slots as usize
    }

    /// Whether slabs of this class are always guarded by the arena's bin. They have so few blocks
    /// that a thread cache gains nothing by owning one. Their blocks pass from thread to thread
    /// through the transfer cache, which holds no block of a slab that a cache owns.
    #[inline(always)]
    pub(crate) fn is_shared(self) -> bool {
        self.row().shared
    }

    /// The smallest number of blocks that fill whole cache lines.
    #[inline(always)]
    pub(crate) fn blocks_of_lines(self) -> usize {
        let shared = self.size().trailing_zeros();
        if shared >= LG_LINE { 1 } else { 1 << (LG_LINE - shared) }
    }

    /// The number of `u64` words that hold one bit per block.
    #[inline(always)]
    pub(crate) fn words(self) -> usize {
        self.slots().div_ceil(64)
    }

    /// Returns the index of the block that begins `offset` bytes into a slab. Returns `None` if no
    /// block begins there.
    #[inline(always)]
    pub(crate) fn slot_at(self, offset: usize) -> Option<usize> {
        let slot = self.slot_around(offset);
        if slot * self.size() == offset && slot < self.slots() { Some(slot) } else { None }
    }

    /// Returns the index of the block that holds the byte `offset` bytes into a slab.
    #[inline(always)]
    pub(crate) fn slot_around(self, offset: usize) -> usize {
        ((offset as u64).wrapping_mul(self.row().reciprocal) >> 40) as usize
    }
}

/// The layout of a slab's blocks, for many lookups in a row.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    size: usize,
    slots: usize,
    reciprocal: u64,
}

impl SizeClass {
    /// Returns the layout of the blocks of the class's slabs.
    #[inline(always)]
    pub(crate) fn grid(self) -> Grid {
        Grid { size: self.size(), slots: self.slots(), reciprocal: self.row().reciprocal }
    }
}

impl Grid {
    /// Bytes from the beginning of a slab to the end of its last block.
    #[inline(always)]
    pub(crate) fn bytes(self) -> usize {
        self.size * self.slots
    }

    /// Returns the offset of the block behind the one at `offset`.
    #[inline(always)]
    pub(crate) fn behind(self, offset: usize) -> usize {
        offset.wrapping_add(self.size)
    }

    /// Returns the index of the block that begins at `offset`, which is below [`Grid::bytes`].
    /// Returns `None` if no block begins there.
    #[inline(always)]
    pub(crate) fn slot_at(self, offset: usize) -> Option<usize> {
        let slot = ((offset as u64).wrapping_mul(self.reciprocal) >> 40) as usize;
        if slot * self.size == offset { Some(slot) } else { None }
    }
}

/// Rounds `size` so that its class is a multiple of `align` (a power of two).
///
/// Rounding up to a multiple of `align` is enough. Above 128 bytes `align` and the step between
/// classes are both powers of two, so either the step is a multiple of `align`, or each multiple of
/// `align` is a class itself.
#[inline(always)]
pub(crate) const fn size_for_align(size: usize, align: usize) -> Option<usize> {
    let size = if size == 0 { 1 } else { size };
    checked_round_up(size, align)
}

/// Rounds `size` up to a class of the whole series, four per doubling. Classes above [`MAX_CACHED`]
/// are also whole pages. Returns `None` above [`MAX_SIZE`].
#[inline]
pub(crate) const fn class_round(size: usize) -> Option<usize> {
    if size > MAX_SIZE {
        return None;
    }
    if size <= 8 {
        return Some(8);
    }
    if size <= 128 {
        return Some(round_up(size, 16));
    }
    let lg = usize::BITS - 1 - (size - 1).leading_zeros();
    match checked_round_up(size, 1 << (lg - 2)) {
        Some(rounded) if rounded <= MAX_SIZE => Some(rounded),
        _ => None,
    }
}

/// Pages in the longest page run: 2^48 bytes, more than any supported address space.
pub(crate) const MAX_RUN_PAGES: usize = 1 << 36;

/// The number of classes of page runs: 1, 2, 3, 4 pages, then four per doubling.
pub(crate) const PAGE_CLASSES: usize = page_class_ceil(MAX_RUN_PAGES) + 1;

/// Returns the smallest class whose runs all hold at least `pages`. Searches use it.
#[inline]
pub(crate) const fn page_class_ceil(pages: usize) -> usize {
    if pages <= 4 {
        return pages.saturating_sub(1);
    }
    let lg = usize::BITS - 1 - (pages - 1).leading_zeros();
    let step = (pages - 1) >> (lg - 2) & 3;
    4 + (lg as usize - 2) * 4 + step
}

/// Returns the class that a run of `pages` is filed under, which is rounded down.
#[inline]
pub(crate) const fn page_class_floor(pages: usize) -> usize {
    if pages <= 4 {
        return pages.saturating_sub(1);
    }
    let up = page_class_ceil(pages);
    if page_class_pages(up) > pages { up - 1 } else { up }
}

/// Returns the pages of the smallest run in a class of page runs.
#[inline]
pub(crate) const fn page_class_pages(class: usize) -> usize {
    if class < 4 {
        return class + 1;
    }
    let lg = (class - 4) / 4 + 2;
    let step = (class - 4) % 4;
    (1 << lg) + ((step + 1) << (lg - 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cached_size_has_the_smallest_class_that_holds_it() {
        for size in 0..=MAX_CACHED {
            let class = SizeClass::of(size);
            assert!(class.size() >= size, "{size} in a class of {}", class.size());
            if class.index() > 0 {
                assert!(class_size(class.index() - 1) < size.max(1), "{size} has a smaller class");
            }
            assert_eq!(class_round(size.max(1)), Some(class.size()), "{size}");
        }
    }

    #[test]
    fn classes_are_those_of_the_manual() {
        let sizes: Vec<usize> = SizeClass::all().map(SizeClass::size).collect();
        assert_eq!(
            sizes,
            [
                8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640,
                768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168,
                8192, 10240, 12288, 14336, 16384, 20480, 24576, 28672, 32768
            ]
        );
    }

    #[test]
    fn large_sizes_keep_four_classes_per_doubling() {
        assert_eq!(class_round(32769), Some(40960));
        assert_eq!(class_round(1_000_000), Some(1_048_576));
        assert_eq!(class_round(MAX_SIZE + 1), None);
        assert_eq!(class_round(7 << 60), Some(7 << 60));
        assert_eq!(class_round((7 << 60) + 1), None);
    }

    #[test]
    fn slots_divide_exactly_for_every_offset() {
        for class in SizeClass::all() {
            for offset in 0..class.row().slab_pages as usize * PAGE {
                let (slot, rest) = (offset / class.size(), offset % class.size());
                assert_eq!(class.slot_around(offset), slot);
                let expected = (rest == 0 && slot < class.slots()).then_some(slot);
                assert_eq!(class.slot_at(offset), expected);
            }
        }
    }

    #[test]
    fn aligned_sizes_get_aligned_classes() {
        for lg in 0..=15 {
            let align = 1usize << lg;
            for size in 1..=MAX_CACHED {
                let rounded = size_for_align(size, align).unwrap();
                if rounded <= MAX_CACHED {
                    assert_eq!(SizeClass::of(rounded).size() % align.min(rounded), 0);
                    assert!(SizeClass::of(rounded).size().is_multiple_of(align));
                }
            }
        }
    }

    #[test]
    fn page_classes_round_both_ways() {
        for pages in 1..100_000 {
            let (up, down) = (page_class_ceil(pages), page_class_floor(pages));
            assert!(page_class_pages(up) >= pages && page_class_pages(down) <= pages);
            assert!(up == down || up == down + 1);
            assert_eq!(up == down, page_class_pages(up) == pages);
        }
        assert!(page_class_ceil(MAX_RUN_PAGES) < PAGE_CLASSES);
    }

    /// The table in readable form. A change of tuning shows up here as a difference.
    #[test]
    fn golden_table() {
        let mut text = String::new();
        for class in SizeClass::all() {
            let row = class.row();
            let slab = row.slab_pages as usize * PAGE;
            let waste = slab % class.size();
            text += &format!(
                "{:5} slab {:3} KiB, {:4} blocks, {:5} unused, cached {:4}{}\n",
                row.size,
                slab >> 10,
                row.slots,
                waste,
                row.cache_max,
                if class.is_shared() { ", shared" } else { "" }
            );
        }
        assert_eq!(text, include_str!("size_class_table.txt"), "\n{text}");
    }
}
