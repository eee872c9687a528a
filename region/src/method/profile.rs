//! The method for profiling: blocks of the method [`Best`], which are counted by the position of
//! who allocated them.

use super::best::{self, Best, align_behind, busy_blocks};
use super::{Method, Resize, Stat, carry_over, clear, clear_unasked, sealed};
use crate::discipline::Discipline;
use crate::marks::{is_known_mark, process_mark};
use crate::method::call::{Call, Nothing};
use crate::misuse::Misuse;
use crate::mode;
use crate::segments::Segment;
use crate::usage::{self, Number};
use crate::words::Words;

/// Bytes before a block: its size, sealed, and the number of its record with the mark of the
/// process that has the record.
const FRONT: usize = 16;

/// Best fit with counts by region, file and line, which [`summary`](crate::summary) writes. The
/// counts are those of the process, also if it shares the region. Source: vmalloc(3), `Vmprofile`.
///
/// ```
/// use lumalloc_region::{Heap, Profile, Region, summary};
///
/// let region: Region<Profile, Heap> = Region::open(Heap).unwrap();
/// let block = region.alloc(100).unwrap();
/// let mut text = String::new();
/// let show = |region| Some((region, 0));
/// summary(&show, &mut |line| text += &String::from_utf8_lossy(line));
/// assert!(text.contains(":n_alloc=1:n_free=0:s_alloc=100:s_free=0:"));
/// ```
#[derive(Debug)]
pub enum Profile {}

/// What the method keeps. It begins with the state of [`Best`].
#[repr(C)]
pub struct State {
    best: best::State,
}

impl sealed::Sealed for Profile {}

impl Method for Profile {
    type State = State;

    const MODE: u32 = mode::PROFILE;

    fn begin<D: Discipline>(call: &Call<'_, Self, D>) {
        // Of an earlier region at this address, whose segments were left when it was closed.
        usage::forget(call.words().address(0));
        look(call, Best::begin);
    }

    fn cleared<D: Discipline>(call: &Call<'_, Self, D>) {
        look(call, Best::cleared);
    }

    fn added<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment) {
        look(call, |best| Best::added(best, segment));
    }

    fn extended<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment, old_end: usize) {
        look(call, |best| Best::extended(best, segment, old_end));
    }

    fn alloc<D: Discipline>(call: &mut Call<'_, Self, D>, size: usize) -> Option<usize> {
        let longer = size.max(1).checked_add(FRONT)?;
        let start = with_best(call, |best| Best::alloc(best, longer))?;
        Some(note_new_block(call, start + FRONT, size))
    }

    fn align<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        size: usize,
        align: usize,
    ) -> Option<usize> {
        let longer = size.max(1).checked_add(FRONT)?;
        let start = with_best(call, |best| align_behind(best, longer, align, FRONT))?;
        Some(note_new_block(call, start + FRONT, size))
    }

    fn free<D: Discipline>(call: &mut Call<'_, Self, D>, at: usize) -> Result<usize, Misuse> {
        let size = size_of_block(call, at)?;
        let number = record_of(call.words(), at);
        with_best(call, |best| Best::free(best, at - FRONT))?;
        usage::freed(call.words().address(0), number, size);
        Ok(size)
    }

    fn resize<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        at: usize,
        size: usize,
        how: Resize,
    ) -> Result<usize, Misuse> {
        let old = size_of_block(call, at)?;
        let longer = size.checked_add(FRONT).ok_or(Misuse::NoRoom)?;
        let start = at - FRONT;
        if with_best(call, |best| Best::resize(best, start, longer, Resize::STAY)).is_ok() {
            usage::freed(call.words().address(0), record_of(call.words(), at), old);
            note_new(call, at, size);
            if how.zero && size > old {
                clear(at + old, size - old);
            }
            return Ok(at);
        }
        if !how.may_move() {
            return Err(Misuse::NoRoom);
        }
        let new = Self::alloc(call, size).ok_or(Misuse::NoRoom)?;
        // The discipline may have freed or resized the block when there was no memory, and the new
        // one may have taken its place.
        let found = if new == at { Err(Misuse::FreedBefore) } else { size_of_block(call, at) };
        if found.is_err() {
            Self::free(call, new)?;
        }
        let old = found?;
        carry_over(at, old, new, size, how);
        Self::free(call, at)?;
        Ok(new)
    }

    fn size<D: Discipline>(call: &Call<'_, Self, D>, at: usize) -> Option<usize> {
        size_of_block(call, at).ok()
    }

    fn offset<D: Discipline>(call: &Call<'_, Self, D>, address: usize) -> Option<usize> {
        let start = address - look(call, |best| Best::offset(best, address))?;
        let offset = address.checked_sub(start + FRONT)?;
        (offset < size_of_block(call, start + FRONT).ok()?).then_some(offset)
    }

    fn compact<D: Discipline>(call: &mut Call<'_, Self, D>) {
        with_best(call, Best::compact);
    }

    const RECOVERS: bool = true;

    fn recover<D: Discipline>(call: &mut Call<'_, Self, D>) {
        with_best(call, Best::recover);
    }

    fn blocks<D: Discipline>(call: &Call<'_, Self, D>, see: &mut dyn FnMut(usize, usize)) -> bool {
        each_block(call).for_each(|(at, size)| see(at, size));
        true
    }

    fn check<D: Discipline>(call: &mut Call<'_, Self, D>) -> Option<usize> {
        with_best(call, Best::check)
    }

    fn count<D: Discipline>(call: &Call<'_, Self, D>, stat: &mut Stat) {
        let mut all = Stat::default();
        look(call, |best| Best::count(best, &mut all));
        (stat.free, stat.free_bytes, stat.free_largest) =
            (all.free, all.free_bytes, all.free_largest);
        each_block(call).for_each(|(_, size)| stat.add_busy(size));
    }

    fn forgets<D: Discipline>(call: &mut Call<'_, Self, D>, closes: bool) {
        let region = call.words().address(0);
        if closes {
            usage::forget(region);
        } else {
            let words = call.words();
            each_block(call).for_each(|(at, size)| {
                usage::freed(region, record_of(words, at), size);
            });
        }
    }
}

/// Runs `f` on the region as one of the method `Best`.
fn with_best<D: Discipline, T>(
    call: &mut Call<'_, Profile, D>,
    f: impl FnOnce(&mut Call<'_, Best, D>) -> T,
) -> T {
    // SAFETY: the state begins with that of `Best`.
    unsafe { call.with_base(f) }
}

/// As [`with_best`], for calls that need no discipline.
fn look<D: Discipline, T>(
    call: &Call<'_, Profile, D>,
    f: impl FnOnce(&Call<'_, Best, Nothing>) -> T,
) -> T {
    // SAFETY: the state begins with that of `Best`.
    unsafe { call.look_at_base(f) }
}

/// Writes the words before a block, and counts it. Returns its address.
fn note_new<D: Discipline>(call: &Call<'_, Profile, D>, at: usize, size: usize) -> usize {
    let words = call.words();
    let number = usage::allocated(words.address(0), &call.position(), size);
    words.seal(at - FRONT, size as u64);
    let mark = number.map_or(0, |_| process_mark());
    words.write(at - 8, u64::from(number.map_or(0, |number| number.0)) << 32 | u64::from(mark));
    at
}

/// As [`note_new`], for a new block of `size` bytes. No block has size 0.
fn note_new_block<D: Discipline>(call: &Call<'_, Profile, D>, at: usize, size: usize) -> usize {
    clear_unasked(at, size);
    note_new(call, at, size.max(1))
}

/// Returns the record of a block, if this process has it, perhaps from the one that it was forked
/// from.
fn record_of(words: Words, at: usize) -> Option<Number> {
    let word = words.read(at - 8);
    is_known_mark(|mark| word as u32 == mark).then_some(Number((word >> 32) as u32))
}

/// Returns what the program asked for the block at an address.
fn size_of_block<D: Discipline>(call: &Call<'_, Profile, D>, at: usize) -> Result<usize, Misuse> {
    let start = at.checked_sub(FRONT).ok_or(Misuse::NotABlock)?;
    let usable = look(call, |best| best::usable(best, start))?;
    let size = call.words().unseal(at - FRONT).map(|size| size as usize);
    Ok(size.unwrap_or(usable).min(usable.saturating_sub(FRONT)))
}

/// Iterates over the blocks in use: their addresses and sizes.
fn each_block<'a, D: Discipline>(
    call: &Call<'a, Profile, D>,
) -> impl Iterator<Item = (usize, usize)> + use<'a, D> {
    let words = call.words();
    call.segments().flat_map(move |segment| busy_blocks(words, segment)).map(
        move |(start, usable)| {
            let size = words.unseal(start).map_or(usable - FRONT, |size| size as usize);
            (start + FRONT, size)
        },
    )
}
