//! What the `check` functions of structures call. Compiled for tests only, with the feature
//! `checks`.

#[cfg(not(test))]
use super::fatal;

/// Ends the process if `is_so` is false: the structure that the caller checks contradicts itself.
#[track_caller]
pub(crate) fn holds(is_so: bool) {
    #[cfg(test)]
    assert!(is_so, "the structure contradicts itself");
    #[cfg(not(test))]
    if !is_so {
        let place = core::panic::Location::caller();
        fatal::contradiction(place.file(), place.line());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_so_goes_on() {
        holds(true);
    }
}
