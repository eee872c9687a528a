//! The method for debugging: blocks of the method [`Best`] with guards around them, which are
//! checked, and with the position of who allocated them.

mod block;
mod quarantine;
mod checks;
mod edges;
mod retired;

use super::best::{self, Best, align_behind, busy_blocks};
use super::{Method, Resize, Stat, carry_over, clear_unasked, sealed};
use crate::discipline::Discipline;
use crate::method::call::{Call, Nothing, Reserve};
use crate::misuse::Misuse;
use crate::mode;
use crate::segments::Segment;
use crate::warning::{Action, Moment, Trouble};
use crate::watch::is_watched;
use block::{FRONT, Front, GUARD};
use checks::{check, check_if_wanted, examine};
use edges::{finish_all, in_place, write_edges};
use quarantine::Quarantine;
use retired::{release_freed, retire};

/// Best fit with guards and checks. What it finds goes to [`Discipline::warn`]. Source: vmalloc(3),
/// `Vmdebug`.
///
/// ```
/// use lumalloc_region::{Debug, Heap, Region};
///
/// let region: Region<Debug, Heap> = Region::open(Heap).unwrap();
/// let block = region.alloc(8).unwrap();
/// // SAFETY: the byte behind the block is a guard, and nobody else's.
/// unsafe { block.add(8).write(1) };
/// // Prints "corrupted data:region=…:block=…:bad byte at=8:allocated at=…:".
/// assert_eq!(region.check(), Some(1));
/// ```
#[derive(Debug)]
pub enum Debug {}

/// What the method keeps. It begins with the state of [`Best`].
#[repr(C)]
pub struct State {
    best: best::State,
    quarantine: Quarantine,
}

impl sealed::Sealed for Debug {}

/// A block that begins at an address, and the end of its memory.
struct Found {
    front: Option<Front>,
    end: usize,
}

impl Method for Debug {
    type State = State;

    const MODE: u32 = mode::DEBUG;

    fn begin<D: Discipline>(call: &Call<'_, Self, D>) {
        look(call, Best::begin);
        call.state().quarantine.begin(call.words());
    }

    fn added<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment) {
        look(call, |best| Best::added(best, segment));
    }

    fn extended<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment, old_end: usize) {
        look(call, |best| Best::extended(best, segment, old_end));
    }

    fn alloc<D: Discipline>(call: &mut Call<'_, Self, D>, size: usize) -> Option<usize> {
        check_if_wanted(call);
        let at = allocate(call, size.max(1), None);
        finish_new(call, at, size)
    }

    fn align<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        size: usize,
        align: usize,
    ) -> Option<usize> {
        let at = allocate(call, size.max(1), Some(align));
        finish_new(call, at, size)
    }

    fn free<D: Discipline>(call: &mut Call<'_, Self, D>, at: usize) -> Result<usize, Misuse> {
        check_if_wanted(call);
        let found = find(call, at, Action::Free)?;
        let size = examine(call, at, &found);
        alert(call, at, size, Moment::BeingFreed);
        retire(call, at, size);
        Ok(size)
    }

    fn resize<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        at: usize,
        size: usize,
        how: Resize,
    ) -> Result<usize, Misuse> {
        check_if_wanted(call);
        let found = find(call, at, Action::Resize)?;
        let old = examine(call, at, &found);
        alert(call, at, old, Moment::BeingResized);
        if in_place(call, at, old, size, how) {
            return Ok(at);
        }
        let is_moved = how.may_move();
        let at_once = if is_moved { allocate_at_once(call, size) } else { None };
        // Freed blocks behind this one may make room for it.
        if at_once.is_none() && release_freed(call, |_| true) && in_place(call, at, old, size, how)
        {
            return Ok(at);
        }
        if !is_moved {
            return Err(Misuse::NoRoom);
        }
        let new = at_once.or_else(|| allocate(call, size, None));
        // The discipline may have freed or resized the block when there was no memory.
        let old = match new {
            Some(new) => size_after(call, at, new)?,
            None => old,
        };
        let new = finish(call, new, size, Action::Resize).ok_or(Misuse::NoRoom)?;
        carry_over(at, old, new, size, how);
        retire(call, at, old);
        Ok(new)
    }

    fn size<D: Discipline>(call: &Call<'_, Self, D>, at: usize) -> Option<usize> {
        let found = look_for(call, at).ok()?;
        Some(found.size(at))
    }

    fn offset<D: Discipline>(call: &Call<'_, Self, D>, address: usize) -> Option<usize> {
        let start = address - look(call, |best| Best::offset(best, address))?;
        let found = look_for(call, start + FRONT).ok()?;
        let offset = address.checked_sub(start + FRONT)?;
        (offset < found.size(start + FRONT)).then_some(offset)
    }

    fn compact<D: Discipline>(call: &mut Call<'_, Self, D>) {
        release_freed(call, |_| true);
        with_best(call, |best| Best::compact(best));
    }

    const RECOVERS: bool = true;
    fn recover<D: Discipline>(call: &mut Call<'_, Self, D>) {
        with_best(call, Best::recover);
        let (words, quarantine) = (call.words(), &call.state().quarantine);
        finish_all(call);
        quarantine.begin(words);
        let freed = each_block(call).filter(|(_, found)| found.is_freed());
        freed.for_each(|(at, found)| quarantine.push(words, at, found.size(at) + FRONT));
    }

    fn blocks<D: Discipline>(call: &Call<'_, Self, D>, see: &mut dyn FnMut(usize, usize)) -> bool {
        let in_use = each_block(call).filter(|(_, found)| !found.is_freed());
        in_use.for_each(|(at, found)| see(at, found.size(at)));
        true
    }

    fn check<D: Discipline>(call: &mut Call<'_, Self, D>) -> Option<usize> {
        Some(check(call))
    }

    fn forgets<D: Discipline>(call: &mut Call<'_, Self, D>, closes: bool) {
        if !closes || call.head().mode() & mode::LEAKS == 0 {
            return;
        }
        for (at, found) in each_block(call).filter(|(_, found)| !found.is_freed()) {
            let allocated = block::position(call.words(), at, false);
            call.warn(Trouble::Leaked { block: at, size: found.size(at), allocated });
        }
    }

    fn count<D: Discipline>(call: &Call<'_, Self, D>, stat: &mut Stat) {
        let mut all = Stat::default();
        look(call, |best| Best::count(best, &mut all));
        (stat.free, stat.free_bytes, stat.free_largest) =
            (all.free, all.free_bytes, all.free_largest);
        for (at, found) in each_block(call) {
            let size = found.size(at);
            if found.is_freed() { stat.add_free(size) } else { stat.add_busy(size) }
        }
    }
}

impl Found {
    /// What the program asked for, or all there is if the word that says it was overwritten.
    fn size(&self, at: usize) -> usize {
        self.front.map_or(self.end - at, |front| front.size)
    }

    fn is_freed(&self) -> bool {
        self.front.is_some_and(|front| front.freed)
    }
}

/// Iterates over the blocks that were allocated, also those that were freed and are kept: their
/// addresses, and what is known of them.
fn each_block<'a, D: Discipline>(
    call: &Call<'a, Debug, D>,
) -> impl Iterator<Item = (usize, Found)> + use<'a, D> {
    let words = call.words();
    call.segments().flat_map(move |segment| busy_blocks(words, segment)).map(
        move |(start, usable)| {
            let at = start + FRONT;
            (at, Found { front: Front::read(words, at), end: start + usable })
        },
    )
}

/// Runs `f` on the region as one of the method `Best`.
fn with_best<D: Discipline, T>(
    call: &mut Call<'_, Debug, D>,
    f: impl FnOnce(&mut Call<'_, Best, D>) -> T,
) -> T {
    // SAFETY: the state begins with that of `Best`.
    unsafe { call.with_base(f) }
}

/// As [`with_best`], for calls that need no discipline.
fn look<D: Discipline, T>(
    call: &Call<'_, Debug, D>,
    f: impl FnOnce(&Call<'_, Best, Nothing>) -> T,
) -> T {
    // SAFETY: the state begins with that of `Best`.
    unsafe { call.look_at_base(f) }
}

/// Allocates a block of `Best` for a block of `size` bytes, at a multiple of `align` if there is
/// one, and gives freed blocks up if there is no other memory, before the discipline is told so.
/// Returns the address of the block.
fn allocate<D: Discipline>(
    call: &mut Call<'_, Debug, D>,
    size: usize,
    align: Option<usize>,
) -> Option<usize> {
    let longer = size.checked_add(FRONT + GUARD)?;
    let reserve = Reserve::Freed(|call| release_freed(call, |_| true));
    // SAFETY: the state begins with that of `Best`.
    let start = unsafe {
        call.with_base_and_reserve(reserve, |best| match align {
            Some(align) => align_behind(best, longer, align, FRONT),
            None => Best::alloc(best, longer),
        })
    };
    Some(start? + FRONT)
}

/// As [`allocate`], but gives no freed blocks up, and tells nobody that there is no memory.
fn allocate_at_once<D: Discipline>(call: &mut Call<'_, Debug, D>, size: usize) -> Option<usize> {
    let longer = size.checked_add(FRONT + GUARD)?;
    // SAFETY: the state begins with that of `Best`.
    let start =
        unsafe { call.with_base_and_reserve(Reserve::Nothing, |best| Best::alloc(best, longer)) };
    Some(start? + FRONT)
}

/// Writes the words around a new block, or warns that there is none.
fn finish<D: Discipline>(
    call: &mut Call<'_, Debug, D>,
    at: Option<usize>,
    size: usize,
    action: Action,
) -> Option<usize> {
    let Some(at) = at else {
        call.warn(Trouble::NoMemory(action));
        return None;
    };
    let end =
        look(call, |best| Best::size(best, at - FRONT)).map_or(at, |usable| at - FRONT + usable);
    block::write_position(call.words(), at, call.position());
    write_edges(call.words(), at, size, end);
    let moment = if action == Action::Alloc { Moment::Allocated } else { Moment::Resized };
    alert(call, at, size, moment);
    Some(at)
}

/// As [`finish`], for a request of `size` bytes. No block has size 0.
fn finish_new<D: Discipline>(
    call: &mut Call<'_, Debug, D>,
    at: Option<usize>,
    size: usize,
) -> Option<usize> {
    let at = finish(call, at, size.max(1), Action::Alloc)?;
    clear_unasked(at, size);
    Some(at)
}

/// Finds the block that begins at an address, freed or not.
fn locate<D: Discipline>(call: &Call<'_, Debug, D>, at: usize) -> Option<Found> {
    let start = at.checked_sub(FRONT)?;
    let usable = look(call, |best| Best::size(best, start))?;
    Some(Found { front: Front::read(call.words(), at), end: start + usable })
}

/// Finds the block in use that begins at an address.
fn look_for<D: Discipline>(call: &Call<'_, Debug, D>, at: usize) -> Result<Found, Misuse> {
    let found = locate(call, at).ok_or(Misuse::NotABlock)?;
    match found.front {
        Some(front) if front.freed => Err(Misuse::FreedBefore),
        _ => Ok(found),
    }
}

/// As [`look_for`], and warns if there is none.
fn find<D: Discipline>(
    call: &mut Call<'_, Debug, D>,
    at: usize,
    action: Action,
) -> Result<Found, Misuse> {
    let found = look_for(call, at);
    match found {
        Err(Misuse::FreedBefore) => call.warn(Trouble::FreedBefore(action, at)),
        Err(_) => call.warn(Trouble::NotABlock(action, at)),
        Ok(_) => {}
    }
    found
}

/// Returns the size of the block at `at`, after the block of `Best` around `new` was allocated for
/// it. If the block at `at` was freed meanwhile, warns, and frees the new one.
fn size_after<D: Discipline>(
    call: &mut Call<'_, Debug, D>,
    at: usize,
    new: usize,
) -> Result<usize, Misuse> {
    let found = if new == at {
        // The new block has taken its place.
        call.warn(Trouble::FreedBefore(Action::Resize, at));
        Err(Misuse::FreedBefore)
    } else {
        find(call, at, Action::Resize)
    };
    if found.is_err() {
        with_best(call, |best| Best::free(best, new - FRONT))?;
    }
    found.map(|found| found.size(at))
}

/// Warns if a block is watched.
fn alert<D: Discipline>(call: &mut Call<'_, Debug, D>, block: usize, size: usize, moment: Moment) {
    if is_watched(block) {
        call.warn(Trouble::Watched { block, size, moment });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Heap;
    use crate::method::call::Form;
    use std::vec::Vec;

    #[test]
    fn freed_blocks_are_kept_when_a_region_is_made_whole() {
        let mut heap = Heap;
        let data = Call::<Debug, Heap>::open(&mut heap, Form::default()).unwrap();
        // SAFETY: the region was opened here, with this discipline.
        let mut call = unsafe { Call::<Debug, Heap>::new(data, &mut heap) };
        let blocks: Vec<usize> = (0..200).map(|_| Debug::alloc(&mut call, 100).unwrap()).collect();
        let (freed, used) = blocks.split_at(50);
        assert!(freed.iter().all(|block| Debug::free(&mut call, *block).is_ok()));
        let before = call.stat();
        call.recover();
        let after = call.stat();
        assert_eq!((after.busy, after.free_bytes), (before.busy, before.free_bytes));
        assert_eq!(Debug::check(&mut call), Some(0));
        assert!(used.iter().all(|block| Debug::size(&call, *block) == Some(100)));
        assert!(release_freed(&mut call, |_| true), "they are in the queue");
        assert!(freed.iter().all(|block| locate(&call, *block).is_none()));
        call.close();
    }
}
