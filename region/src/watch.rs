//! Addresses that the method `Debug` reports whenever a block there is met.

use core::sync::atomic::{AtomicUsize, Ordering};

/// How many addresses are watched at most.
const PLACES: usize = 32;

/// The addresses, in the order in which places are filled, and 0 in places without one.
static WATCHED: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

/// How many addresses were added since the list was empty. The next goes to this place, modulo
/// their number.
static ADDED: AtomicUsize = AtomicUsize::new(0);

/// Watches an address from now on. Returns the one that had to go for it, if any. Source:
/// vmalloc(3), `vmdbwatch`.
///
/// ```
/// let address = 0x1230;
/// assert_eq!(lumalloc_region::watch(address), None);
/// lumalloc_region::watch_nothing();
/// ```
pub fn watch(address: usize) -> Option<usize> {
    if address == 0 || is_watched(address) {
        return None;
    }
    let place = ADDED.fetch_add(1, Ordering::Relaxed) % PLACES;
    let before = WATCHED.get(place)?.swap(address, Ordering::Relaxed);
    (before != 0).then_some(before)
}

/// Watches no address any more.
pub fn watch_nothing() {
    for place in &WATCHED {
        place.store(0, Ordering::Relaxed);
    }
    ADDED.store(0, Ordering::Relaxed);
}

/// Returns whether an address is watched.
pub(crate) fn is_watched(address: usize) -> bool {
    let is_any = ADDED.load(Ordering::Relaxed) != 0;
    is_any && WATCHED.iter().any(|place| place.load(Ordering::Relaxed) == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list is one for the process, so that one test uses it.
    #[test]
    fn the_oldest_address_goes() {
        assert!(!is_watched(0));
        for address in 1..=PLACES {
            assert_eq!(watch(address), None);
        }
        assert_eq!(watch(5), None);
        assert_eq!(watch(100), Some(1));
        assert!(is_watched(100) && is_watched(2) && !is_watched(1));
        assert_eq!(watch(101), Some(2));
        watch_nothing();
        assert!(!is_watched(100));
        assert_eq!(watch(7), None);
        watch_nothing();
    }
}
