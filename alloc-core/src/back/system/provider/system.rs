//! The provider of all memory, except for arenas that have their own.

use crate::back::system::page_provider::PageProvider;

/// The provider: the data segment where options say so, and the system's mappings.
#[cfg(not(any(test, feature = "testing")))]
pub(crate) fn system() -> &'static dyn PageProvider {
    use super::dss::WithBreak;
    use super::mmap::Mmap;
    static SYSTEM: WithBreak<Mmap> = WithBreak::new(Mmap);
    &SYSTEM
}

/// The provider, which tests can make refuse calls.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn system() -> &'static dyn PageProvider {
    &super::failing::SYSTEM
}
