//! The size classes of an arena: bins, large blocks, unused extents. Empty classes are left out,
//! with a line in their place.
use super::Choice;
use super::keys::{Key, keys, number, numbers};
use super::mutexes;
use super::table::{self, Cell, Column, Gaps, share};
use crate::writer::Writer;
use lumalloc::PAGE;

/// How many bins an arena has.
pub(super) fn bins() -> usize {
    usize::try_from(number("arenas.nbins")).unwrap_or(0)
}

/// How many large classes there are.
pub(super) fn large() -> usize {
    usize::try_from(number("arenas.nlextents")).unwrap_or(0)
}

/// How many classes of extents there are.
pub(super) fn extents() -> usize {
    let Some(first) = Key::named(b"stats.arenas.0.extents.0.ndirty") else { return 0 };
    (0..1000).take_while(|&class| first.at(4, class).read().is_some()).count()
}

/// Prints the chosen parts.
pub(super) fn print(writer: &mut Writer, choice: Choice, arena: usize, uptime: u64) {
    if !choice.omits(b'b') {
        print_bins(writer, arena, uptime, !choice.omits(b'x'));
    }
    if !choice.omits(b'l') {
        print_large(writer, arena, uptime);
    }
    if !choice.omits(b'e') {
        print_extents(writer, arena);
    }
}

const BINS: [Column; 23] = [
    ("size", 20),
    ("ind", 4),
    ("allocated", 13),
    ("nmalloc", 13),
    ("(#/sec)", 8),
    ("ndalloc", 13),
    ("(#/sec)", 8),
    ("nrequests", 13),
    ("(#/sec)", 10),
    ("nshards", 9),
    ("curregs", 13),
    ("curslabs", 13),
    ("nonfull_slabs", 15),
    ("regs", 5),
    ("pgs", 4),
    ("util", 7),
    ("nfills", 13),
    ("(#/sec)", 8),
    ("nflushes", 13),
    ("(#/sec)", 8),
    ("nslabs", 13),
    ("nreslabs", 13),
    ("(#/sec)", 8),
];

const BIN: [&str; 10] = [
    "nmalloc",
    "ndalloc",
    "nrequests",
    "curregs",
    "curslabs",
    "nonfull_slabs",
    "nfills",
    "nflushes",
    "nslabs",
    "nreslabs",
];

fn print_bins(writer: &mut Writer, arena: usize, uptime: u64, with_locks: bool) {
    writer.text("bins:");
    let mut titles = BINS.iter().chain(mutexes::COLUMNS.iter().filter(|_| with_locks));
    if let Some(&(size, width)) = titles.next() {
        writer.right(size, width - 5);
    }
    titles.for_each(|&(title, width)| writer.right(title, width));
    writer.text("\n");
    let of_class = keys("arenas.bin.0.", ["size", "nregs", "slab_size", "nshards"]);
    let of_bin = keys("stats.arenas.0.bins.0.", BIN);
    let of_lock = mutexes::keys_below("stats.arenas.0.bins.0.mutex.");
    let mut gaps = Gaps::new();
    for bin in 0..bins() {
        let counts = numbers(of_bin, arena, bin);
        let [.., nslabs, _] = counts;
        if !gaps.shows(writer, nslabs > 0) {
            continue;
        }
        let class = of_class.map(|key| key.map_or(0, |key| key.at(2, bin).number()));
        table::cells(writer, &BINS, &bin_cells(bin, class, counts, uptime));
        if with_locks {
            let counters = numbers(of_lock, arena, bin);
            table::cells(writer, &mutexes::COLUMNS, &mutexes::cells(counters, uptime));
        }
        writer.text("\n");
    }
    gaps.close(writer);
}

fn bin_cells(bin: usize, class: [u64; 4], counts: [u64; 10], uptime: u64) -> [Cell; 17] {
    let [size, nregs, slab_size, nshards] = class;
    let [nmalloc, ndalloc, nrequests, curregs, curslabs, nonfull, nfills, nflushes, nslabs, again] =
        counts;
    let count = |count| Cell::Count(count, uptime);
    [
        Cell::Number(size),
        Cell::Number(bin as u64),
        Cell::Number(curregs.saturating_mul(size)),
        count(nmalloc),
        count(ndalloc),
        count(nrequests),
        Cell::Number(nshards),
        Cell::Number(curregs),
        Cell::Number(curslabs),
        Cell::Number(nonfull),
        Cell::Number(nregs),
        Cell::Number(slab_size / PAGE as u64),
        Cell::Thousandths(share(curregs, nregs.saturating_mul(curslabs))),
        count(nfills),
        count(nflushes),
        Cell::Number(nslabs),
        count(again),
    ]
}

const LARGE: [Column; 10] = [
    ("size", 20),
    ("ind", 4),
    ("allocated", 13),
    ("nmalloc", 13),
    ("(#/sec)", 8),
    ("ndalloc", 13),
    ("(#/sec)", 8),
    ("nrequests", 13),
    ("(#/sec)", 8),
    ("curlextents", 13),
];

fn print_large(writer: &mut Writer, arena: usize, uptime: u64) {
    writer.text("large:");
    table::titles(writer, &LARGE, 6);
    let of_class = Key::named(b"arenas.lextent.0.size");
    let leaves = ["nmalloc", "ndalloc", "nrequests", "curlextents"];
    let of_large = keys("stats.arenas.0.lextents.0.", leaves);
    let bins = bins();
    let mut gaps = Gaps::new();
    for class in 0..large() {
        let [nmalloc, ndalloc, nrequests, live] = numbers(of_large, arena, class);
        if !gaps.shows(writer, nmalloc > 0 || nrequests > 0) {
            continue;
        }
        let size = of_class.map_or(0, |key| key.at(2, class).number());
        let allocated = live.saturating_mul(size);
        let [size, index, allocated, live] =
            [size, (bins + class) as u64, allocated, live].map(Cell::Number);
        let [nmalloc, ndalloc, nrequests] =
            [nmalloc, ndalloc, nrequests].map(|count| Cell::Count(count, uptime));
        let cells = [size, index, allocated, nmalloc, ndalloc, nrequests, live];
        table::cells(writer, &LARGE, &cells);
        writer.text("\n");
    }
    gaps.close(writer);
}

const EXTENTS: [Column; 10] = [
    ("size", 20),
    ("ind", 4),
    ("ndirty", 13),
    ("dirty", 13),
    ("nmuzzy", 13),
    ("muzzy", 13),
    ("nretained", 13),
    ("retained", 13),
    ("ntotal", 13),
    ("total", 13),
];

fn print_extents(writer: &mut Writer, arena: usize) {
    writer.text("extents:");
    table::titles(writer, &EXTENTS, 8);
    let numbers_of = ["ndirty", "nmuzzy", "nretained"];
    let bytes_of = ["dirty_bytes", "muzzy_bytes", "retained_bytes"];
    let numbers_of = keys("stats.arenas.0.extents.0.", numbers_of);
    let bytes_of = keys("stats.arenas.0.extents.0.", bytes_of);
    let mut gaps = Gaps::new();
    for class in 0..extents() {
        let [ndirty, nmuzzy, nretained] = numbers(numbers_of, arena, class);
        let [dirty, muzzy, retained] = numbers(bytes_of, arena, class);
        let (count, bytes) = (ndirty + nmuzzy + nretained, dirty + muzzy + retained);
        if !gaps.shows(writer, count > 0) {
            continue;
        }
        let row = [
            extent_size(class),
            class as u64,
            ndirty,
            dirty,
            nmuzzy,
            muzzy,
            nretained,
            retained,
            count,
            bytes,
        ];
        table::cells(writer, &EXTENTS, &row.map(Cell::Number));
        writer.text("\n");
    }
    gaps.close(writer);
}

/// The size of the smallest extents of a class: one to four pages, then four classes per doubling.
/// Source: jemalloc's page size classes.
fn extent_size(class: usize) -> u64 {
    let (doubling, step) = ((class / 4) as u32, (class % 4) as u64 + 1);
    let pages = match doubling {
        0 => step,
        _ => {
            let base = 2u64.checked_shl(doubling).unwrap_or(0);
            base + (base / 4) * step
        }
    };
    pages.saturating_mul(PAGE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_have_four_classes_per_doubling() {
        let pages: std::vec::Vec<u64> =
            (0..14).map(|class| extent_size(class) / PAGE as u64).collect();
        assert_eq!(pages, [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24]);
    }
}
