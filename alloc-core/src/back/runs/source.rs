//! The source of the pages of one arena.

use super::growth::{FIRST_CHUNK, Growth};
use super::reserved;
use crate::back::map::page_map;
use crate::back::system::page_provider::{PageProvider, Reserved};
use crate::back::system::thp;
use crate::ground::options::{self, Dss};
use crate::ground::os;
use crate::ground::units::{LG_PAGE, PAGE};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Reservations begin at a multiple of this.
const CHUNK_ALIGN: usize = 2 << 20;
/// How many pages without memory an arena keeps that keeps few.
const FEW: usize = 2 * FIRST_CHUNK;

/// In a process with a limit of addresses, an arena keeps this part of them without memory. The
/// program needs addresses too: for its threads' stacks and for its mappings.
const KEPT_PART: usize = 16;

/// How many pages without memory an arena keeps for the process's limit of addresses. All accesses
/// are relaxed: the number stands alone.
static KEPT_UNDER_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Notes the most bytes of addresses that the process may have now, in all or of writable ones. A
/// program may set both at any time, and a sandbox may end a process that asks for them. So this is
/// called at the start, when the program sets them, and when the system has refused addresses.
pub(crate) fn note_address_limit() {
    let kept = match os::address_limit().min(os::data_limit()) {
        usize::MAX => usize::MAX,
        bytes => ((bytes / KEPT_PART) >> LG_PAGE).max(FIRST_CHUNK),
    };
    KEPT_UNDER_LIMIT.store(kept, Relaxed);
}

/// As [`note_address_limit`], in a process that had a limit: it may be another one now.
pub(crate) fn note_changed_limit() {
    if are_addresses_limited() {
        note_address_limit();
    }
}

/// Returns whether the process had a limit of addresses when that was last noted.
pub(crate) fn are_addresses_limited() -> bool {
    KEPT_UNDER_LIMIT.load(Relaxed) != usize::MAX
}

/// The provider of one arena, and how much is reserved at a time.
pub(crate) struct Source {
    provider: &'static dyn PageProvider,
    dss: Dss,
    growth: Growth,
    keeps_few: bool,
    /// How many pages without memory are kept at most for now.
    kept_for_now: usize,
    /// Lost pages, which are not used and were not given back.
    abandoned: usize,
}

impl Source {
    /// Creates the source of an arena without pages.
    pub(in crate::back) fn new(provider: &'static dyn PageProvider, dss: Dss) -> Source {
        let growth = Growth::new();
        Source { provider, dss, growth, keeps_few: false, kept_for_now: usize::MAX, abandoned: 0 }
    }

    /// Resets the source of an arena without pages.
    pub(in crate::back) fn begin_anew(&mut self, dss: Dss) {
        self.dss = dss;
        self.growth = Growth::new();
        self.keeps_few = false;
    }

    /// The provider of new pages.
    pub(crate) fn provider(&self) -> &'static dyn PageProvider {
        self.provider
    }

    /// Sets the provider of new pages.
    pub(in crate::back) fn set_provider(&mut self, provider: &'static dyn PageProvider) {
        self.provider = provider;
    }

    /// When addresses come from the data segment.
    pub(crate) fn dss(&self) -> Dss {
        self.dss
    }

    /// Sets when addresses come from the data segment.
    pub(crate) fn set_dss(&mut self, dss: Dss) {
        self.dss = dss;
    }

    /// How much is reserved at a time.
    pub(crate) fn growth(&mut self) -> &mut Growth {
        &mut self.growth
    }

    /// How many pages without memory are kept. The addresses of more are given back.
    pub(in crate::back) fn kept(&self) -> usize {
        self.wanted().min(KEPT_UNDER_LIMIT.load(Relaxed)).min(self.kept_for_now)
    }

    /// How many pages without memory would be kept in a process without a limit of addresses.
    fn wanted(&self) -> usize {
        match options::current().retain {
            false => FIRST_CHUNK,
            true if self.keeps_few => FEW,
            true => usize::MAX,
        }
    }

    /// Sets whether few pages without memory are kept.
    pub(crate) fn set_keeps_few(&mut self, keeps_few: bool) {
        self.keeps_few = keeps_few;
    }

    /// Sets how many pages without memory are kept at most until this is set anew.
    pub(crate) fn set_kept_for_now(&mut self, kept: usize) {
        self.kept_for_now = kept;
    }

    /// The number of lost pages.
    pub(in crate::back) fn abandoned(&self) -> usize {
        self.abandoned
    }

    /// Counts lost pages.
    pub(in crate::back) fn abandon(&mut self, pages: usize) {
        self.abandoned += pages;
    }

    /// Reserves at least `pages` pages, for a run at a multiple of `align`, and returns how many.
    /// The page map covers them. Returns `None` without addresses or memory for the page map.
    pub(in crate::back) fn reserve(
        &mut self,
        pages: usize,
        align: usize,
    ) -> Option<(Reserved, usize)> {
        let retains = self.wanted() == usize::MAX;
        // Addresses that are not kept are not taken in advance either.
        if align > CHUNK_ALIGN || (!retains && pages >= FIRST_CHUNK) {
            return self.reserve_exactly(pages, align);
        }
        let chunk = self.growth.chunk(pages, true);
        if let Some(got) = self.reserve_exactly(chunk, CHUNK_ALIGN) {
            self.growth.note(retains);
            return Some(got);
        }
        // There is no room for a generous chunk, so only what is needed is reserved.
        self.reserve_exactly(pages, align.max(PAGE))
    }

    fn reserve_exactly(&mut self, pages: usize, align: usize) -> Option<(Reserved, usize)> {
        let bytes = pages << LG_PAGE;
        note_changed_limit();
        let Some(got) = self.provider.reserve_by(self.dss, bytes, align) else {
            note_address_limit();
            return None;
        };
        if !page_map::cover(got.base.as_ptr().expose_provenance(), bytes) {
            // SAFETY: just reserved, and no other code knows it. If refused, it stays unused.
            if !unsafe { self.provider.release(got.base, bytes) } {
                self.abandoned += pages;
            }
            return None;
        }
        reserved::note(got.base.as_ptr().addr(), bytes);
        thp::advise_new(self.provider, got.base, bytes);
        Some((got, pages))
    }
}
