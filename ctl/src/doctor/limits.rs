//! The rule about limits: of all arenas, and of one.

use super::{Found, MIB, bytes, percent};
use crate::snapshot::{Arena, Settings, Snapshot};
use lumalloc::PAGE;
use std::format;
use std::string::String;

/// A limit, and what counts for it.
struct Limit {
    /// Its key.
    key: String,
    /// The arena it is for; 4096: all.
    arena: usize,
    bytes: usize,
    held: usize,
    /// What of it a purge would give back.
    unused: usize,
    allocated: usize,
    /// What of it has no memory.
    holes: usize,
    /// Whether what a purge makes holes in slabs counts as before.
    counts_holes: bool,
}

impl Limit {
    fn percent(&self) -> usize {
        percent(self.held, self.bytes)
    }

    fn help(&self) -> String {
        let holes = match self.holes >= 16 * MIB {
            true => {
                format!(", and the {} of holes in slabs, which count as held", bytes(self.holes))
            }
            false => String::new(),
        };
        // How many of the free pages inside slabs are whole is not known. Beyond the memory of the
        // container the system ends the process, whatever limit.soft says.
        let (inside, or_else) = match self.counts_holes {
            true => ("", ""),
            false => (
                ", and free pages inside slabs",
                ", or the container's memory where it is 95 % of that",
            ),
        };
        format!(
            "Do arena.{}.purge, which gives back up to {}{inside}; raise {}{or_else}; or see what \
             holds the {} that are allocated{holes}.",
            self.arena,
            bytes(self.unused),
            self.key,
            bytes(self.allocated),
        )
    }
}

/// The limit that is nearest, if 90 per cent of it are held.
pub(super) fn limit(snapshot: &Snapshot) -> Option<Found> {
    let limits = of_all(snapshot).into_iter().flatten();
    // Of equals the last, because it refuses.
    let near = limits.chain(snapshot.arenas.iter().filter_map(of_arena)).max_by_key(Limit::percent);
    let near = near.filter(|near| near.percent() >= 90)?;
    Some(Found {
        weight: near.bytes,
        what: format!(
            "{} of the {} that {} allows are held ({} %).",
            bytes(near.held),
            bytes(near.bytes),
            near.key,
            near.percent()
        ),
        help: near.help(),
    })
}

fn of_all(snapshot: &Snapshot) -> [Option<Limit>; 2] {
    let Settings { held, soft_limit, hard_limit, .. } = snapshot.settings;
    let totals = snapshot.totals;
    let of = |key: &str, limit: Option<usize>, held: usize| {
        Some(Limit {
            key: key.into(),
            arena: 4096,
            bytes: limit?,
            held,
            unused: totals.dirty + totals.muzzy,
            allocated: totals.allocated,
            holes: held.saturating_sub(totals.resident),
            counts_holes: key == "limit.hard",
        })
    };
    // The soft one leaves holes out.
    [of("limit.soft", soft_limit, totals.resident), of("limit.hard", hard_limit, held)]
}

/// The limit of one arena, which counts its pages and holes, and no records.
fn of_arena(arena: &Arena) -> Option<Limit> {
    let large: usize =
        arena.lextents.iter().map(|large| large.stats.curlextents * large.size).sum();
    let with_memory = arena.space.pactive * PAGE;
    let in_use = with_memory.max(arena.space.slab_bytes + large);
    let unused = (arena.space.pdirty + arena.space.pmuzzy) * PAGE;
    Some(Limit {
        key: format!("arena.{}.limit", arena.index),
        arena: arena.index,
        bytes: arena.limit?,
        held: in_use + unused,
        unused,
        allocated: arena.allocated(),
        holes: in_use - with_memory,
        counts_holes: true,
    })
}

#[cfg(test)]
#[path = "limits_test.rs"]
mod tests;
