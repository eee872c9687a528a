//! What the names of profiles begin with. Source: jemalloc(3), `opt.prof_prefix`, `prof.prefix`.

use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use core::cell::UnsafeCell;
use core::ffi::CStr;

/// The longest prefix, with the zero byte behind it (PATH_MAX). A longer one is cut.
const LONGEST: usize = 4096;

/// A prefix, as a C string.
#[derive(Clone, Copy)]
pub struct Prefix([u8; LONGEST]);

impl Prefix {
    const fn new(text: &[u8]) -> Prefix {
        let mut prefix = Prefix([0; LONGEST]);
        prefix.set(text);
        prefix
    }

    const fn set(&mut self, text: &[u8]) {
        let cut = if text.len() < LONGEST { text.len() } else { LONGEST - 1 };
        let (begin, rest) = self.0.split_at_mut(cut);
        begin.copy_from_slice(text.split_at(cut).0);
        if let Some(end) = rest.first_mut() {
            *end = 0;
        }
    }

    /// Returns the prefix.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

struct Option(UnsafeCell<Prefix>);

// SAFETY: written at start only, before the options are in force.
unsafe impl Sync for Option {}

/// The prefix that the options said, and the one in force.
static OPTION: Option = Option(UnsafeCell::new(Prefix::new(b"jeprof")));
pub(crate) static CURRENT: RankedMutex<Prefix> =
    RankedMutex::new(LockRank::Sites, Prefix::new(b"jeprof"));

/// Sets the prefix as an option says. Called at start.
pub(crate) fn set_option(text: &[u8]) {
    // SAFETY: at start, by the one thread that reads the options.
    unsafe { &mut *OPTION.0.get() }.set(text);
    CURRENT.lock().set(text);
}

/// Returns the prefix that the options said.
pub(crate) fn option() -> &'static CStr {
    // SAFETY: no thread writes after the start.
    unsafe { &*OPTION.0.get() }.as_c_str()
}

/// Returns the prefix in force.
pub(crate) fn current() -> Prefix {
    *CURRENT.lock()
}

/// Sets the prefix in force.
pub(crate) fn set(text: &[u8]) {
    CURRENT.lock().set(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_prefix_is_cut() {
        assert_eq!(Prefix::new(b"").as_c_str(), c"");
        assert_eq!(Prefix::new(b"/tmp/name").as_c_str(), c"/tmp/name");
        let long = Prefix::new(&[b'x'; 2 * LONGEST]);
        assert_eq!(long.as_c_str().to_bytes(), [b'x'; LONGEST - 1]);
        let mut shorter = long;
        shorter.set(b"y");
        assert_eq!(shorter.as_c_str(), c"y");
    }

    #[test]
    fn the_default_is_that_of_jemalloc() {
        assert_eq!(option(), c"jeprof");
    }
}
