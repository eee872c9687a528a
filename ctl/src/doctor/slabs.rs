//! The rule about slabs that few blocks hold.

use super::{Found, MIB, bytes, is_much, percent};
use crate::snapshot::{Bin, Snapshot};
use lumalloc::PAGE;
use std::format;
use std::string::String;
use std::vec::Vec;

/// Bytes of addresses that are free in the slabs of a class. Not all of them have memory.
fn free(bin: &Bin) -> usize {
    let used = bin.stats.curregs * bin.size;
    (bin.stats.curslabs * bin.slab_size).saturating_sub(used)
}

fn blocks(bin: &Bin) -> usize {
    bin.stats.curslabs * bin.nregs
}

/// Bytes of pages that no block in use lies in, if those in use are spread evenly.
fn free_pages(bin: &Bin) -> usize {
    let unused = 1.0 - bin.stats.curregs as f64 / blocks(bin).max(1) as f64;
    // A block may begin in one page and end in another one.
    let size = bin.size.max(1);
    let straddles = !PAGE.max(size).is_multiple_of(PAGE.min(size));
    let in_page = PAGE.div_ceil(size) + usize::from(straddles);
    let share = unused.max(0.0).powi(in_page as i32);
    ((bin.stats.curslabs * bin.slab_size) as f64 * share) as usize
}

/// Bytes of addresses in slabs that are known to have no memory: free pages that were given back,
/// and what was never touched and cannot be of large blocks.
fn without_memory(snapshot: &Snapshot) -> usize {
    let never_touched = usize::try_from(snapshot.rss.untouched.saturating_neg()).unwrap_or(0);
    let of_large: usize =
        snapshot.merged.lextents.iter().map(|large| large.stats.curlextents * large.size).sum();
    let others = of_large + snapshot.totals.dirty + snapshot.totals.muzzy;
    snapshot.totals.holes + never_touched.saturating_sub(others)
}

pub(super) fn fragmentation(snapshot: &Snapshot) -> Option<Found> {
    let mut bins: Vec<&Bin> = snapshot.merged.bins.iter().collect();
    bins.sort_by_key(|bin| core::cmp::Reverse(free(bin)));
    let sparse = |bin: &&Bin| free(bin) >= 4 * MIB && percent(bin.stats.curregs, blocks(bin)) < 50;
    let worst: Vec<&Bin> = bins.into_iter().filter(sparse).take(3).collect();
    // Of which classes they are is not known.
    let without = without_memory(snapshot);
    let all: usize = snapshot.merged.bins.iter().map(free).sum();
    let weight = worst.iter().map(|bin| free(bin)).sum::<usize>();
    let weight = weight.min(all.saturating_sub(without));
    if !is_much(weight, 16 * MIB, 10, snapshot) {
        return None;
    }
    let classes: Vec<String> = worst.iter().map(|bin| described(bin)).collect();
    Some(Found {
        weight,
        what: format!(
            "Up to {} of memory are free in slabs that few blocks hold: {}.",
            bytes(weight),
            classes.join("; ")
        ),
        help: help(snapshot, weight, without),
    })
}

fn described(bin: &Bin) -> String {
    format!(
        "{} bytes: {} blocks in {} slabs ({} % full)",
        bin.size,
        bin.stats.curregs,
        bin.stats.curslabs,
        percent(bin.stats.curregs, blocks(bin)),
    )
}

/// Names a purge only where there is something for it: no hole is made twice, and what the program
/// has locked stays.
fn help(snapshot: &Snapshot, weight: usize, without: usize) -> String {
    let pages: usize = snapshot.merged.bins.iter().map(free_pages).sum();
    let gives = pages.saturating_sub(without);
    let is_worth_it = gives >= weight / 10 && snapshot.settings.locked < gives;
    let purge = match is_worth_it {
        true => format!(
            " Whole free pages inside slabs go back by arena.4096.purge, about {}.",
            bytes(gives)
        ),
        false => String::new(),
    };
    format!("Blocks that live long keep them: see which of these sizes do.{purge}")
}

#[cfg(test)]
#[path = "slabs_test.rs"]
mod tests;
