//! The summary of all records, in order. Source: vmalloc(3), Profiling.

use super::{Counts, Record, with};
use crate::line::Line;
use core::cmp::Ordering;
use lumalloc::control::diversion::past;
use lumalloc::raw;
use lumalloc::sorting::heap_sort;

/// What a summary needs to know of a region: the address that is shown for it, and its extent.
pub type Shown = (usize, usize);

/// A copy of a record, with what is shown of its region.
#[derive(Clone, Copy)]
struct Copied {
    record: Record,
    shown: Option<Shown>,
}

impl Ord for Copied {
    fn cmp(&self, other: &Copied) -> Ordering {
        self.record.order(&other.record)
    }
}

impl PartialOrd for Copied {
    fn partial_cmp(&self, other: &Copied) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Copied {
    fn eq(&self, other: &Copied) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Copied {}

/// Writes a summary of what regions with the method `Profile` allocated where, a line at a time.
/// Source: vmalloc(3), `vmprofile`.
///
/// `show` is called once for each region, with the address of its core data. It returns what is
/// shown of the region, or `None` to leave it out. Returns false if there is no memory for the
/// summary.
pub fn summary(show: &dyn Fn(usize) -> Option<Shown>, write: &mut dyn FnMut(&[u8])) -> bool {
    let Some((copies, count)) = copy() else { return false };
    // SAFETY: the copies were written, and are this function's.
    let all = unsafe { core::slice::from_raw_parts_mut(copies, count) };
    heap_sort(all);
    let whole = all.iter().take_while(|copy| copy.record.is_whole).count();
    let (regions, lines) = all.split_at_mut_checked(whole).unwrap_or_default();
    regions.iter_mut().for_each(|copy| copy.shown = show(copy.record.region));
    lines.iter_mut().for_each(|copy| copy.shown = shown_in(regions, copy.record.region));
    write_regions(regions, write);
    write_files(lines, write);
    // SAFETY: the block is not used any more.
    past(|| unsafe { raw::free(copies.cast()) });
    true
}

/// Copies all records to a block of the heap. Returns it with their number.
fn copy() -> Option<(*mut Copied, usize)> {
    with(|table| {
        let bytes = (table.made as usize).checked_mul(size_of::<Copied>())?;
        let block = past(|| raw::malloc(bytes)).cast::<Copied>();
        if block.is_null() {
            return None;
        }
        let mut count = 0;
        for number in 0..table.made {
            if let Some(record) = table.get(number).filter(|record| record.region != 0) {
                // SAFETY: the block has room for all records.
                let place = unsafe { block.add(count) };
                // SAFETY: as above.
                unsafe { place.write(Copied { record: *record, shown: None }) };
                count += 1;
            }
        }
        Some((block, count))
    })
}

/// Returns what is shown of a region. The records of regions begin with the highest address.
fn shown_in(regions: &[Copied], region: usize) -> Option<Shown> {
    let at = regions.binary_search_by(|copy| region.cmp(&copy.record.region)).ok()?;
    regions.get(at)?.shown
}

/// Adds up what is shown.
fn sum(copies: &[Copied]) -> Counts {
    let mut sum = Counts::default();
    let shown = copies.iter().filter(|copy| copy.shown.is_some());
    shown.for_each(|copy| sum.add(copy.record.counts));
    sum
}

/// Writes the line of all regions, and one for each.
fn write_regions(regions: &[Copied], write: &mut dyn FnMut(&[u8])) {
    line(write, b"ALLOCATION USAGE SUMMARY:", sum(regions), None);
    for Copied { record, shown } in regions {
        let Some((address, extent)) = *shown else { continue };
        let mut start = Line::new();
        start.text(b"region=").hex(address).text(b":");
        let most = (record.most > 0).then_some((record.most, extent));
        line(write, start.get(), record.counts, most);
    }
}

/// Writes a line for each file, with those of its lines.
fn write_files(mut rest: &[Copied], write: &mut dyn FnMut(&[u8])) {
    while let Some(first) = rest.first() {
        let file = first.record.file_text();
        let length = rest.iter().take_while(|copy| copy.record.file_text() == file).count();
        let (of_file, others) = rest.split_at_checked(length).unwrap_or_default();
        rest = others;
        if of_file.iter().all(|copy| copy.shown.is_none()) {
            continue;
        }
        let mut start = Line::new();
        start.text(b"file=").end_of(first.record.file.text().unwrap_or(b"<>")).text(b":");
        line(write, start.get(), sum(of_file), None);
        for Copied { record, shown } in of_file {
            let Some((address, _)) = *shown else { continue };
            let mut start = Line::new();
            start.text(b"\tline=").decimal(record.line as usize);
            start.text(b":region=").hex(address).text(b":");
            line(write, start.get(), record.counts, None);
        }
    }
}

/// Writes a line, with the most bytes at one time and the extent of a region if they are given.
fn line(
    write: &mut dyn FnMut(&[u8]),
    start: &[u8],
    counts: Counts,
    region: Option<(usize, usize)>,
) {
    let mut line = Line::new();
    line.text(start).text(b"n_alloc=").decimal(counts.allocations);
    line.text(b":n_free=").decimal(counts.frees);
    line.text(b":s_alloc=").decimal(counts.allocated);
    line.text(b":s_free=").decimal(counts.freed).text(b":");
    if let Some((most, extent)) = region {
        line.text(b"max_busy=").decimal(most).text(b":extent=").decimal(extent).text(b":");
    }
    line.text(b"\n");
    write(line.get());
}
