//! The page before a shared region: what says where it lies and how large it can be.

use crate::owner;
use core::sync::atomic::{AtomicU64, Ordering};
use lumalloc::system_calls;

/// Bytes before the region.
pub(super) const FRONT: usize = lumalloc::PAGE;

/// The first word: `lumavm` and the number of the layout.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"lumavm\x00\x02");

/// The first word of a region that is being made.
pub(super) const MAKING: u64 = u64::from_le_bytes(*b"lumavm?\x02");

/// The second word, once the region can be used.
const READY: u64 = u64::from_le_bytes(*b"isready\x00");

/// The most addresses of a region.
pub(super) const MOST: usize = 1 << 46;

/// The first words of the page.
#[repr(C)]
pub(super) struct Front {
    magic: AtomicU64,
    /// 0, the process that makes the region, or [`READY`].
    state: AtomicU64,
    /// Where the region's pages lie in each process.
    base: Pages<1>,
    /// How many addresses belong to them, from `base`.
    window: Pages<2>,
    /// The most bytes of the region, which begins behind the page.
    limit: Pages<3>,
    /// Device and number of the file, or zeros in one of an earlier version: a file with other
    /// numbers is a copy.
    device: AtomicU64,
    inode: AtomicU64,
}

/// The words that say what there is.
pub(super) const WORDS: usize = core::mem::offset_of!(Front, device) / size_of::<u64>();

/// A word that holds a number of bytes in whole pages, or the address of one, and in its other bits
/// a hash of this and of `PLACE`: a word of which a bit has changed is not used. It is written in
/// one step, so it is whole wherever a process ends.
#[repr(transparent)]
struct Pages<const PLACE: u64>(AtomicU64);

/// The bits of [`Pages`] that hold the number.
const PAGES: u64 = ((1 << 47) - 1) & !(lumalloc::PAGE as u64 - 1);

impl<const PLACE: u64> Pages<PLACE> {
    /// Returns the number that a word holds, or `None` if it was overwritten.
    fn of(word: u64) -> Option<usize> {
        let value = (word & PAGES) as usize;
        (Self::word(value) == word).then_some(value)
    }

    fn word(value: usize) -> u64 {
        /// Odd numbers without structure: the golden ratio, and the one of splitmix64.
        const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9];
        let value = value as u64 & PAGES;
        let [first, second] = FACTORS;
        let mixed = (value | PLACE).wrapping_mul(first);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(second);
        value | (mixed ^ mixed >> 32) & !PAGES
    }

    fn get(&self) -> Option<usize> {
        Self::of(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, value: usize) {
        self.0.store(Self::word(value), Ordering::Relaxed);
    }

    /// Makes the number at least so large. What was overwritten stays as it is.
    fn raise(&self, least: usize) {
        let raised = |word| Self::of(word).map(|value| Self::word(value.max(least)));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raised);
    }
}

/// Where a region lies, and how large it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) base: usize,
    pub(super) window: usize,
    pub(super) limit: usize,
}

/// What the first words of a file or a segment say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing was written yet, or a process ended while it made the region.
    Nothing,
    /// A region.
    Region(Place),
    /// Something else.
    Foreign,
}

impl Found {
    /// Reads the first words.
    pub(super) fn read(words: &[u64; WORDS]) -> Found {
        let [magic, state, base, window, limit] = *words;
        if words.iter().all(|word| *word == 0) || magic == MAKING && state != READY {
            return Found::Nothing;
        }
        let is_region = [MAGIC, MAKING].contains(&magic) && state == READY;
        let place = Place::of(base, window, limit).filter(|place| is_region && place.is_possible());
        place.map_or(Found::Foreign, Found::Region)
    }

    /// Reads the page at an address. A page of zeros holds nothing yet.
    ///
    /// # Safety
    /// It is mapped.
    pub(super) unsafe fn at(address: usize) -> Found {
        let page = core::ptr::with_exposed_provenance::<[AtomicU64; FRONT / 8]>(address);
        // SAFETY: the caller's promise. All bytes are values.
        let page = unsafe { &*page };
        let mut words = [0; WORDS];
        for (word, place) in words.iter_mut().zip(page) {
            // Acquire: pairs with the Release in `ready`.
            *word = place.load(Ordering::Acquire);
        }
        let is_used = || page.iter().any(|word| word.load(Ordering::Relaxed) != 0);
        match Found::read(&words) {
            Found::Nothing if words.first() != Some(&MAKING) && is_used() => Found::Foreign,
            found => found,
        }
    }
}

impl Place {
    /// What three words say, unless one was overwritten.
    fn of(base: u64, window: u64, limit: u64) -> Option<Place> {
        let (base, window) = (Pages::<1>::of(base)?, Pages::<2>::of(window)?);
        Some(Place { base, window, limit: Pages::<3>::of(limit)? })
    }

    fn is_possible(&self) -> bool {
        self.base != 0
            && self.base.is_multiple_of(lumalloc::PAGE)
            && self.base < MOST * 2
            && self.window <= MOST
            && self.window.is_multiple_of(lumalloc::PAGE)
            && self.limit <= self.window.saturating_sub(FRONT)
    }
}

impl Front {
    /// The page at an address.
    ///
    /// # Safety
    /// It is mapped as long as the reference is used.
    pub(super) unsafe fn at<'a>(address: usize) -> &'a Front {
        // SAFETY: the caller's promise. All fields are atomic.
        unsafe { &*core::ptr::with_exposed_provenance::<Front>(address) }
    }

    /// Takes on the making of the region, unless it is made. Returns whether it did, and `None`
    /// while another process makes it.
    pub(super) fn claim(&self) -> Option<bool> {
        let own = owner::own();
        loop {
            // Acquire: pairs with the Release in `ready`.
            let state = self.state.load(Ordering::Acquire);
            if state == READY {
                return Some(false);
            }
            let is_others = state != 0 && !owner::is_same(state, own);
            if is_others && owner::is_alive(state) {
                return None;
            }
            let claimed =
                self.state.compare_exchange(state, own, Ordering::Relaxed, Ordering::Relaxed);
            if claimed.is_ok() {
                self.magic.store(MAKING, Ordering::Relaxed);
                return Some(true);
            }
        }
    }

    /// Takes on the making of the region, whoever did before. The caller knows that no other
    /// process does.
    pub(super) fn take(&self) {
        self.state.store(owner::own(), Ordering::Relaxed);
        self.magic.store(MAKING, Ordering::Relaxed);
    }

    /// Gives up the making of the region, so that another process can.
    pub(super) fn abandon(&self) {
        self.state.store(0, Ordering::Relaxed);
    }

    /// Notes where the region lies.
    pub(super) fn place(&self, place: Place) {
        self.base.set(place.base);
        self.window.set(place.window);
        self.limit.set(place.limit);
    }

    /// Gives the region so many addresses, unless it has more. The caller knows that no other
    /// process has it.
    pub(super) fn widen(&self, window: usize) {
        self.window.raise(window);
    }

    /// Notes in which file the region lies.
    pub(super) fn note_file(&self, (device, inode): (u64, u64)) {
        self.device.store(device, Ordering::Relaxed);
        self.inode.store(inode, Ordering::Relaxed);
    }

    /// Returns whether another file was noted.
    pub(super) fn is_copied_to(&self, file: (u64, u64)) -> bool {
        let noted = (self.device.load(Ordering::Relaxed), self.inode.load(Ordering::Relaxed));
        noted != (0, 0) && noted != file
    }

    /// Notes that the region can be used.
    pub(super) fn ready(&self) {
        // Release: pairs with the Acquire in `claim`.
        self.state.store(READY, Ordering::Release);
        self.magic.store(MAGIC, Ordering::Relaxed);
    }

    /// Returns whether the region can be used.
    pub(super) fn is_ready(&self) -> bool {
        // Acquire: pairs with the Release in `ready`.
        self.state.load(Ordering::Acquire) == READY
    }

    /// Returns how many bytes the region can grow to: 0 if the word was overwritten.
    pub(super) fn limit(&self) -> usize {
        self.limit.get().unwrap_or(0)
    }

    /// Lets the region grow to so many bytes.
    pub(super) fn raise_limit(&self, limit: usize) {
        self.limit.raise(limit);
    }
}

/// Returns whether the first words are those of a region that is being made, by a process that
/// exists.
pub(super) fn is_being_made(words: &[u64; WORDS]) -> bool {
    let [magic, state, ..] = *words;
    magic == MAKING && ![0, READY].contains(&state) && owner::is_alive(state)
}

/// Waits a moment for another process.
pub(super) fn pause() {
    system_calls::nanosleep(1_000_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(place: Place) -> [u64; WORDS] {
        let (base, window) = (Pages::<1>::word(place.base), Pages::<2>::word(place.window));
        [MAGIC, READY, base, window, Pages::<3>::word(place.limit)]
    }

    #[test]
    fn the_first_words_say_what_there_is() {
        let place = Place { base: 1 << 40, window: 1 << 34, limit: 1 << 20 };
        let words = words_of(place);
        let [_, _, base, window, limit] = words;
        assert_eq!(Found::read(&words), Found::Region(place));
        assert_eq!(Found::read(&[0; WORDS]), Found::Nothing);
        assert_eq!(Found::read(&[MAKING, 0, 0, 0, 0]), Found::Nothing);
        assert_eq!(Found::read(&[MAKING, owner::own(), 9, 9, 9]), Found::Nothing);
        assert_eq!(Found::read(&[MAKING, READY, base, window, limit]), Found::Region(place));
        assert_eq!(Found::read(&[MAGIC, 0, 0, 0, 0]), Found::Foreign);
        for wrong in [
            Place { base: 0, ..place },
            Place { window: 3 << 45, ..place },
            Place { window: 4096, ..place },
            Place { limit: 1 << 35, ..place },
        ] {
            assert_eq!(Found::read(&words_of(wrong)), Found::Foreign);
        }
    }

    #[test]
    fn a_word_of_which_a_bit_has_changed_is_noticed() {
        let words = words_of(Place { base: 1 << 40, window: 1 << 34, limit: 1 << 20 });
        for (at, bit) in (0..WORDS).flat_map(|at| (0..64).map(move |bit| (at, bit))) {
            let mut wrong = words;
            wrong[at] ^= 1 << bit;
            assert_eq!(Found::read(&wrong), Found::Foreign, "{at} {bit}");
        }
        let mut exchanged = words;
        exchanged.swap(2, 3);
        assert_eq!(Found::read(&exchanged), Found::Foreign);
    }

    #[test]
    fn a_number_of_pages_is_raised_in_one_step() {
        let pages = Pages::<1>(AtomicU64::new(0));
        pages.set(1 << 20);
        pages.raise(4096);
        assert_eq!(pages.get(), Some(1 << 20));
        pages.raise(3 << 20);
        assert_eq!(pages.get(), Some(3 << 20));
        pages.0.fetch_xor(1, Ordering::Relaxed);
        pages.raise(4 << 20);
        assert_eq!(pages.get(), None);
    }
}
