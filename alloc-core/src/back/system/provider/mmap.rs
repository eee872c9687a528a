//! Pages from mmap(2), given back by madvise(2) and munmap(2).

use super::tried::Tried;
use crate::back::system::page_provider::{Moved, PageProvider, Purged, Reserved, Resident};
use crate::ground::calls::{self, Call};
use crate::ground::low;
use crate::ground::os::{self, system_page};
use crate::ground::units::{LG_PAGE, round_down, round_up};
use core::ffi::c_int;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How often in a row the system may refuse a move that was begun. Each time addresses may be lost.
const MOST_REFUSED: usize = 16;
/// After [`MOST_REFUSED`] refusals one in so many further moves is tried, because the reason for
/// the refusals, such as a limit of addresses, may be gone.
const RETRIED: usize = 1024;

/// How many pages are looked at when those with memory are counted.
const LOOKED_AT: usize = 2048;

/// How many low addresses are tried that other code has mapped.
const LOW_TRIES: usize = 16;

/// The provider of the system's pages.
pub(crate) struct Mmap;

// SAFETY: mmap returns fresh, private, readable and writable memory that stays until munmap.
unsafe impl PageProvider for Mmap {
    fn reserve(&self, size: usize, align: usize) -> Option<Reserved> {
        let base = map(size, libc::PROT_READ | libc::PROT_WRITE)?;
        if (base.as_ptr() as usize).is_multiple_of(align) {
            return Some(Reserved { base, zeroed: true });
        }
        unmap(base, size);
        let larger = size.checked_add(align)?;
        // Without access, so that the system does not count the parts that are cut off again.
        let base = trim(map(larger, libc::PROT_NONE)?, larger, size, align);
        if !make_accessible(base, size) {
            unmap(base, size);
            return None;
        }
        Some(Reserved { base, zeroed: true })
    }

    fn reserve_readable(&self, size: usize) -> Option<NonNull<u8>> {
        map(size, libc::PROT_READ)
    }

    unsafe fn make_writable(&self, base: NonNull<u8>, size: usize) -> bool {
        make_accessible(base, size)
    }

    fn reserve_low(&self, size: usize, align: usize) -> Option<Reserved> {
        map_low(size, align.max(system_page())).map(|base| Reserved { base, zeroed: true })
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize) -> bool {
        is_whole_pages(base, size) && unmap(base, size)
    }

    unsafe fn purge(&self, base: NonNull<u8>, size: usize) -> Purged {
        let Some((inner, length)) = inner_pages(base, size) else { return Purged::Undefined };
        if !advise(inner, length, libc::MADV_DONTNEED) {
            return Purged::Refused;
        }
        if length == size && purge_zeroes() { Purged::Zeroed } else { Purged::Undefined }
    }

    fn resident(&self, base: NonNull<u8>, size: usize) -> Option<Resident> {
        let mut pages = [0u8; LOOKED_AT];
        let each = system_page().max(1);
        let looked_at = size.min(LOOKED_AT * each).max(1);
        if !is_whole_pages(base, looked_at) {
            return None;
        }
        let (place, answer) = (base.as_ptr().cast(), pages.as_mut_ptr());
        // SAFETY: there is a byte for each page.
        let status = os::keep_errno(|| unsafe { libc::mincore(place, looked_at, answer) });
        let pages = pages.get(..looked_at / each).filter(|_| status == 0)?;
        let is_resident = |page: &&u8| **page & 1 == 1;
        let resident = pages.iter().filter(is_resident).count() * (each >> LG_PAGE);
        let leading = pages.iter().take_while(is_resident).count() * (each >> LG_PAGE);
        // The beginning of a very long run stands for all of it.
        Some(Resident { pages: resident * (size / looked_at), leading })
    }

    unsafe fn advise_huge(&self, base: NonNull<u8>, size: usize, huge: bool) -> bool {
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        is_whole_pages(base, size) && advise(base, size, advice)
    }

    unsafe fn renew(&self, base: NonNull<u8>, size: usize) -> bool {
        // If the system has no room to note new pages, it takes the old ones away before it
        // refuses. Then what is missing is mapped as before. If nothing is missing, the second call
        // is refused.
        is_whole_pages(base, size)
            && (map_at(base, size, libc::MAP_FIXED) == Ok(base) || map_there(base, size))
    }

    unsafe fn move_pages(
        &self,
        from: NonNull<u8>,
        size: usize,
        to: NonNull<u8>,
        new_size: usize,
    ) -> Moved {
        static REFUSED: Refusals = Refusals::new();
        let whole = is_whole_pages(from, size) && is_whole_pages(to, new_size);
        if !whole || REFUSED.is_hopeless() {
            return Moved::Refused;
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let moved = mremap(from, size, to, new_size, flags);
        if !REFUSED.note(moved.is_ok()) {
            return moved.map_or_else(|error| taken_back(to, new_size, error), |()| Moved::Here);
        }
        if map_there(from, size) { Moved::Here } else { Moved::Away }
    }

    unsafe fn shift_pages(&self, from: NonNull<u8>, size: usize, to: NonNull<u8>) -> Moved {
        static REFUSED: Refusals = Refusals::new();
        let whole = is_whole_pages(from, size) && is_whole_pages(to, size);
        if !whole || REFUSED.is_hopeless() || !can_shift() {
            return Moved::Refused;
        }
        let shifted = shift(from, size, to);
        REFUSED.note(shifted.is_ok());
        shifted.map_or_else(|error| taken_back(to, size, error), |()| Moved::Here)
    }

    unsafe fn purge_lazily(&self, base: NonNull<u8>, size: usize) -> bool {
        match inner_pages(base, size) {
            Some((inner, length)) => advise(inner, length, libc::MADV_FREE),
            None => true,
        }
    }
}

/// How often in a row the system refused a move.
struct Refusals(AtomicUsize);

impl Refusals {
    const fn new() -> Refusals {
        Refusals(AtomicUsize::new(0))
    }

    /// Returns whether the next move is not worth a trial.
    fn is_hopeless(&self) -> bool {
        let refused = self.0.load(Relaxed);
        // A move that is not tried is counted here, because nobody notes it.
        refused >= MOST_REFUSED && !self.0.fetch_add(1, Relaxed).is_multiple_of(RETRIED)
    }

    /// Notes the result of a move, and returns it.
    fn note(&self, is_done: bool) -> bool {
        if !is_done {
            self.0.fetch_add(1, Relaxed);
        } else if self.0.load(Relaxed) > 0 {
            self.0.store(0, Relaxed);
        }
        is_done
    }
}

/// The result of a move that the system refused with an error. It may have removed what was at the
/// new place. If other code has mapped memory there by now, the place is lost.
fn taken_back(to: NonNull<u8>, size: usize, error: c_int) -> Moved {
    let is_left = error == libc::EFAULT && looks_before_it_removes();
    if is_left || map_there(to, size) { Moved::Refused } else { Moved::Lost }
}

/// Whether the system finds what it cannot move (EFAULT) before it removes what is at the new
/// place. Since Linux 6.17. Other errors come before or after.
fn looks_before_it_removes() -> bool {
    static ANSWER: Tried = Tried::new();
    ANSWER.get(|| Some(os::kernel_version() >= (6, 17)))
}

/// The result of mapping memory at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum There {
    Mapped,
    /// Something is mapped there.
    Taken,
    /// The system has no memory, or the process may not have more.
    Refused,
}

/// Maps new memory at `base`, where nothing is mapped yet. Returns `false` if something is, or if
/// the system refuses.
pub(crate) fn map_there(base: NonNull<u8>, size: usize) -> bool {
    map_if_free(base, size) == There::Mapped
}

fn map_if_free(base: NonNull<u8>, size: usize) -> There {
    match map_at(base, size, libc::MAP_FIXED_NOREPLACE) {
        Ok(got) if got == base => There::Mapped,
        Ok(elsewhere) => {
            unmap(elsewhere, size);
            There::Taken
        }
        Err(libc::EEXIST) => There::Taken,
        Err(_) => There::Refused,
    }
}

/// Maps new memory at `base`, which the caller owns with `MAP_FIXED`. With `MAP_FIXED_NOREPLACE` an
/// old kernel may return another place.
fn map_at(base: NonNull<u8>, size: usize, how: i32) -> Result<NonNull<u8>, c_int> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | how;
    calls::count(Call::Mmap);
    os::keep_errno(|| {
        // SAFETY: replaces only what the caller owns, whose contents are not needed.
        let got = unsafe { libc::mmap(base.as_ptr().cast(), size, protection, flags, -1, 0) };
        let is_mapped = got != libc::MAP_FAILED;
        NonNull::new(got.cast()).filter(|_| is_mapped).ok_or_else(os::errno)
    })
}

/// Maps new memory at low addresses, below what was mapped there before.
fn map_low(size: usize, align: usize) -> Option<NonNull<u8>> {
    /// The lowest address that was tried. 0: none was.
    static LOWEST: AtomicUsize = AtomicUsize::new(0);
    let zone = low::ZONES.iter().find(|zone| zone.end == low::end())?;
    map_below(&LOWEST, zone, size, align, |base| map_if_free(base, size))
}

/// Tries places in a zone, each below the one before and below `lowest`, until `map` has mapped
/// memory at one.
fn map_below(
    lowest: &AtomicUsize,
    zone: &Range<usize>,
    size: usize,
    align: usize,
    map: impl Fn(NonNull<u8>) -> There,
) -> Option<NonNull<u8>> {
    let lower = |lowest: usize| {
        let before = if lowest == 0 { zone.end } else { lowest };
        let base = round_down(before.checked_sub(size)?, align);
        (base >= zone.start).then_some(base)
    };
    for _ in 0..LOW_TRIES {
        let before = lowest.fetch_update(Relaxed, Relaxed, lower).ok()?;
        let address = lower(before)?;
        let base = NonNull::new(core::ptr::with_exposed_provenance_mut(address))?;
        match map(base) {
            There::Mapped => return Some(base),
            There::Taken => {}
            There::Refused => {
                // The addresses stay free, unless another thread has taken those below them.
                let _is_given_back = lowest.compare_exchange(address, before, Relaxed, Relaxed);
                return None;
            }
        }
    }
    None
}

/// Moves memory so that the old mapping stays, empty.
fn shift(from: NonNull<u8>, size: usize, to: NonNull<u8>) -> Result<(), c_int> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    mremap(from, size, to, size, flags)
}

/// Moves memory to a place that the caller owns. After an error the memory is where it was. The new
/// place may be unmapped then.
fn mremap(
    from: NonNull<u8>,
    size: usize,
    to: NonNull<u8>,
    new_size: usize,
    flags: c_int,
) -> Result<(), c_int> {
    let (from, to) = (from.as_ptr().cast(), to.as_ptr());
    calls::count(Call::Mremap);
    os::keep_errno(|| {
        // SAFETY: the caller owns both ranges, and the new one is not used.
        let got = unsafe { libc::mremap(from, size, new_size, flags, to) };
        if got == to.cast() { Ok(()) } else { Err(os::errno()) }
    })
}

/// Whether the system can [`shift`] memory at all (Linux 5.7). Tried once.
pub(in crate::back) fn can_shift() -> bool {
    static ANSWER: Tried = Tried::new();
    ANSWER.get(|| {
        let page = system_page();
        let two = map(2 * page, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: the second of the two pages.
        let shifted = shift(two, page, unsafe { two.add(page) });
        unmap(two, 2 * page);
        can_do(shifted)
    })
}

/// What the result of a trial says about an ability. `None`: nothing, because memory or mappings
/// were short.
fn can_do(tried: Result<(), c_int>) -> Option<bool> {
    match tried {
        Err(libc::ENOMEM | libc::EAGAIN) => None,
        tried => Some(tried.is_ok()),
    }
}

fn is_whole_pages(base: NonNull<u8>, size: usize) -> bool {
    (base.as_ptr() as usize | size).is_multiple_of(system_page())
}

fn map(size: usize, protection: i32) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    calls::count(Call::Mmap);
    // SAFETY: asks for new memory anywhere; touches nothing that exists.
    let base = os::keep_errno(|| unsafe {
        libc::mmap(core::ptr::null_mut(), size, protection, flags, -1, 0)
    });
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

fn make_accessible(base: NonNull<u8>, size: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    calls::count(Call::Mprotect);
    // SAFETY: the caller owns the range, which becomes only more accessible.
    os::keep_errno(|| unsafe { libc::mprotect(base.as_ptr().cast(), size, protection) }) == 0
}

fn unmap(base: NonNull<u8>, size: usize) -> bool {
    calls::count(Call::Munmap);
    // SAFETY: the caller owns the range and uses it no more.
    os::keep_errno(|| unsafe { libc::munmap(base.as_ptr().cast(), size) }) == 0
}

/// Cuts a mapping of `larger` bytes down to `size` bytes at a multiple of `align`. The last page of
/// the system stays whole.
fn trim(base: NonNull<u8>, larger: usize, size: usize, align: usize) -> NonNull<u8> {
    let address = base.as_ptr() as usize;
    let lead = round_up(address, align) - address;
    // SAFETY: `lead < align` and `larger == size + align`, so this stays inside the mapping.
    let aligned = unsafe { base.add(lead) };
    if lead > 0 {
        unmap(base, lead);
    }
    let kept = round_up(size, system_page());
    if larger > lead + kept {
        // SAFETY: `lead + kept < larger`, so this stays inside the mapping.
        unmap(unsafe { aligned.add(kept) }, larger - lead - kept);
    }
    aligned
}

/// The whole system pages inside a range, which are all of it if pages have 4 KiB.
fn inner_pages(base: NonNull<u8>, size: usize) -> Option<(NonNull<u8>, usize)> {
    let page = system_page();
    let address = base.as_ptr() as usize;
    let begin = round_up(address, page);
    let end = round_down(address + size, page);
    if begin >= end {
        return None;
    }
    // SAFETY: `begin` lies inside the range.
    Some((unsafe { base.add(begin - address) }, end - begin))
}

fn advise(base: NonNull<u8>, size: usize, advice: i32) -> bool {
    calls::count(Call::Madvise);
    // SAFETY: the caller owns the range. Its contents are not needed, or the advice keeps them.
    os::keep_errno(|| unsafe { libc::madvise(base.as_ptr().cast(), size, advice) }) == 0
}

/// Whether `MADV_DONTNEED` really zeroes (some emulators ignore it). Tried once.
fn purge_zeroes() -> bool {
    static ANSWER: Tried = Tried::new();
    ANSWER.get(try_purge)
}

/// Returns `None` if the system refuses a page, or to purge it, because new memory is locked.
fn try_purge() -> Option<bool> {
    let size = system_page();
    let page = map(size, libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: the page was just mapped.
    unsafe { page.write_volatile(1) };
    let is_purged = advise(page, size, libc::MADV_DONTNEED);
    // SAFETY: the page was just mapped.
    let is_zero = unsafe { page.read_volatile() } == 0;
    unmap(page, size);
    is_purged.then_some(is_zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::units::PAGE;

    #[test]
    fn reservations_are_aligned_zeroed_and_purgeable() {
        for align in [PAGE, 64 << 10, 2 << 20, 1 << 30] {
            let got = Mmap.reserve(3 * PAGE, align).unwrap();
            assert!((got.base.as_ptr() as usize).is_multiple_of(align) && got.zeroed);
            // SAFETY: just reserved.
            unsafe { got.base.write_bytes(7, 3 * PAGE) };
            // SAFETY: just reserved, contents not needed.
            assert_eq!(unsafe { Mmap.purge(got.base, 3 * PAGE) }, Purged::Zeroed);
            // SAFETY: inside what was reserved.
            let second = unsafe { got.base.add(PAGE) };
            // SAFETY: still mapped.
            assert_eq!(unsafe { second.read() }, 0);
            // SAFETY: the whole reservation, not used any more.
            assert!(unsafe { Mmap.release(got.base, 3 * PAGE) });
        }
    }

    #[test]
    fn shifted_pages_leave_empty_ones_behind() {
        let size = 4 * system_page();
        let got = Mmap.reserve(3 * size, PAGE).unwrap();
        // SAFETY: inside what was reserved.
        let to = unsafe { got.base.add(size) };
        // SAFETY: just reserved.
        unsafe { got.base.write_bytes(7, size) };
        // SAFETY: the test owns both ranges.
        let moved = unsafe { Mmap.shift_pages(got.base, size, to) };
        assert_eq!(moved, if can_shift() { Moved::Here } else { Moved::Refused });
        let expected = if moved == Moved::Here { [0, 7] } else { [7, 0] };
        // SAFETY: all of it is mapped.
        let bytes = [got.base, to].map(|place| unsafe { place.read() });
        assert_eq!(bytes, expected);
        // The system refuses a length that is no multiple of its page, and changes nothing.
        // SAFETY: the test owns both ranges.
        assert_eq!(unsafe { Mmap.shift_pages(got.base, 1, to) }, Moved::Refused);
        // SAFETY: the whole reservation, not used any more.
        assert!(unsafe { Mmap.release(got.base, 3 * size) });
    }

    #[test]
    fn a_refused_move_leaves_everything_where_it_was() {
        let size = 2 * system_page();
        let got = Mmap.reserve(4 * size, PAGE).unwrap();
        // SAFETY: inside what was reserved.
        let to = unsafe { got.base.add(2 * size) };
        // SAFETY: just reserved.
        unsafe { got.base.write_bytes(7, 4 * size) };
        // Two mappings, of which the system moves one at a time, so it refuses the move.
        let read_only = |begin: NonNull<u8>| {
            // SAFETY: half of what is to be moved, which the test owns.
            unsafe { libc::mprotect(begin.as_ptr().cast(), size / 2, libc::PROT_READ) }
        };
        assert_eq!(read_only(got.base), 0);
        // SAFETY: the test owns both ranges.
        let moved = unsafe { Mmap.move_pages(got.base, size, to, 2 * size) };
        // It depends on whether the system checks the old place or clears the new one first.
        assert!(matches!(moved, Moved::Lost | Moved::Refused), "{moved:?}");
        for at in [0, size - 1] {
            // SAFETY: inside what was reserved.
            assert_eq!(unsafe { got.base.as_ptr().wrapping_add(at).read() }, 7);
        }
        if looks_before_it_removes() {
            assert_eq!(moved, Moved::Refused, "the new place is not lost");
            // SAFETY: inside what was reserved.
            assert_eq!(unsafe { to.read() }, 7, "it is as it was");
        }
        // SAFETY: the test owns the old place in both cases, and does not use it any more.
        assert!(unsafe { Mmap.release(got.base, size) });
    }

    #[test]
    fn low_addresses_that_were_refused_for_lack_of_memory_are_tried_again() {
        let (lowest, zone) = (AtomicUsize::new(0), 0x1000..0x9000);
        let map = |there| {
            let base = map_below(&lowest, &zone, 0x800, 0x1000, |_| there);
            (base.map(|base| base.addr().get()), lowest.load(Relaxed))
        };
        assert_eq!(map(There::Refused), (None, 0));
        assert_eq!(map(There::Mapped), (Some(0x8000), 0x8000));
        assert_eq!(map(There::Refused), (None, 0x8000));
        assert_eq!(map(There::Mapped), (Some(0x7000), 0x7000));
        assert_eq!(map(There::Taken), (None, 0x1000), "other code has all of it");
    }

    #[test]
    fn a_trial_for_which_memory_was_short_says_nothing() {
        let errors = [libc::ENOMEM, libc::EAGAIN, libc::EINVAL, libc::ENOSYS];
        let told = errors.map(|error| can_do(Err(error)));
        assert_eq!(told, [None, None, Some(false), Some(false)]);
        assert_eq!(can_do(Ok(())), Some(true));
    }

    #[test]
    fn only_refusals_in_a_row_count() {
        let refused = Refusals::new();
        for _ in 1..MOST_REFUSED {
            assert!(!refused.note(false) && !refused.is_hopeless());
        }
        assert!(refused.note(true) && !refused.note(false) && !refused.is_hopeless());
        (1..MOST_REFUSED).for_each(|_| assert!(!refused.note(false)));
        assert!(refused.is_hopeless());
    }

    #[test]
    fn after_many_refusals_few_moves_are_tried_until_one_succeeds() {
        let refused = Refusals::new();
        let tried = |moves: usize| (0..moves).filter(|_| !refused.is_hopeless()).count();
        (0..MOST_REFUSED).for_each(|_| assert!(!refused.note(false)));
        assert_eq!((tried(10 * RETRIED), tried(RETRIED)), (10, 1));
        assert!(refused.note(true));
        assert_eq!(tried(RETRIED), RETRIED);
    }

    #[test]
    fn impossible_sizes_are_refused_and_errno_stays() {
        os::set_errno(77);
        assert!(Mmap.reserve(1 << 60, PAGE).is_none());
        assert_eq!(os::errno(), 77);
    }

    #[test]
    fn pages_with_memory_are_counted_and_renewed_ones_have_none() {
        let got = Mmap.reserve(64 * PAGE, 64 << 10).unwrap();
        let resident = || Mmap.resident(got.base, 64 * PAGE).map(|seen| (seen.pages, seen.leading));
        assert_eq!(resident(), Some((0, 0)));
        let each = system_page() / PAGE;
        for page in 0..each {
            // SAFETY: just reserved.
            unsafe { got.base.as_ptr().wrapping_add(page * PAGE).write(1) };
        }
        assert_eq!(resident(), Some((each, each)));
        // SAFETY: just reserved.
        unsafe { got.base.as_ptr().wrapping_add(63 * PAGE).write(1) };
        assert_eq!(resident(), Some((2 * each, each)), "one behind a gap");
        // SAFETY: just reserved, contents not needed.
        assert!(unsafe { Mmap.renew(got.base, 64 * PAGE) });
        assert_eq!(resident(), Some((0, 0)));
        // SAFETY: the whole reservation, not used any more.
        assert!(unsafe { Mmap.release(got.base, 64 * PAGE) });
    }
}
