//! Arenas with extent hooks: what is done for them when no lock is held. See
//! [`crate::back::hooked_pages`].

use super::arena::{self, Arena};
use crate::back::extent::Extent;
use crate::back::hooked_pages::{self, Taken, Want};
use crate::back::hooks::ExtentHooks;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Neighbours made one before new memory is asked for.
const MERGES: usize = 64;

/// Some arena has hooks.
static HOOKED: AtomicBool = AtomicBool::new(false);
/// An arena with hooks has freed pages that are to go at once.
static DUE: AtomicBool = AtomicBool::new(false);

/// Whether there is something that [`tick`] should do.
#[inline]
pub(crate) fn is_due() -> bool {
    DUE.load(Relaxed)
}

/// Notes that pages of an arena with hooks are to go as soon as no lock is held.
pub(super) fn note_due() {
    DUE.store(true, Relaxed);
}

/// Arenas with hooks.
fn hooked() -> impl Iterator<Item = &'static Arena> {
    let any = HOOKED.load(Relaxed);
    arena::all().filter(move |arena| any && arena.is_hooked())
}

/// Gives back what freed pages are to go at once. Under no lock.
#[cold]
#[inline(never)]
pub(crate) fn tick() {
    DUE.store(false, Relaxed);
    hooked().filter(|arena| arena.purges_at_once()).for_each(|arena| arena.purge_beyond(0, 0));
}

/// Ages the unused pages of arenas with hooks. Under no lock. Answers when it should come again.
pub(crate) fn decay(now: u64) -> Option<u64> {
    let mut next = None::<u64>;
    for arena in hooked() {
        arena.pages.lock().allocator.file_ready();
        let again = arena.decay(now);
        next = [next, again].into_iter().flatten().min();
    }
    next
}

/// Purges all unused pages of some arenas with hooks. Under no lock.
pub(crate) fn purge(wanted: impl Fn(&Arena) -> bool) {
    for arena in hooked().filter(|arena| wanted(arena)) {
        arena.pages.lock().allocator.file_ready();
        arena.purge_beyond(0, 0);
    }
}

/// Makes runs ready that allocations lacked, in all arenas. Under no lock. `false`: there was none
/// that could be.
#[cold]
#[inline(never)]
pub(crate) fn serve() -> bool {
    if !hooked_pages::is_wanting() {
        return false;
    }
    let mut served = false;
    for arena in hooked() {
        let want = arena.pages.lock().allocator.take_want();
        served |= want.is_some_and(|want| arena.make_ready(want));
    }
    served
}

impl Arena {
    /// Whether its pages come by hooks.
    #[inline]
    pub(crate) fn is_hooked(&self) -> bool {
        self.hooked.load(Relaxed)
    }

    /// The table of its hooks.
    pub(crate) fn hook_table(&self) -> *mut ExtentHooks {
        self.hooks.table()
    }

    /// Sets the table, and answers the one before. From then on its pages come by hooks.
    pub(crate) fn set_hooks(&'static self, table: *mut ExtentHooks) -> *mut ExtentHooks {
        let before = self.hooks.table();
        self.hooks.set(table);
        self.pages.lock().allocator.hook(&self.hooks);
        self.hooked.store(true, Relaxed);
        HOOKED.store(true, Relaxed);
        before
    }

    /// Forgets the hooks: another life begins, without pages.
    pub(super) fn forget_hooks(&self) {
        self.hooks.set(core::ptr::null_mut());
        self.hooked.store(false, Relaxed);
    }

    /// Makes a run ready, from those that are free or from new memory.
    fn make_ready(&'static self, want: Want) -> bool {
        let free = |exact| self.pages.lock().allocator.take_for(want, exact);
        self.cut_free(free(false), want)
            || self.merge_free() && self.cut_free(free(false), want)
            || self.cut_free(free(true), want)
            || self.cut_new(want)
            || self.make_ready_at_last(want)
    }

    /// Makes one of all neighbours that may be; and then gives everything back, and asks again.
    fn make_ready_at_last(&'static self, want: Want) -> bool {
        while self.merge_free() {
            let taken = self.pages.lock().allocator.take_for(want, false);
            if self.cut_free(taken, want) {
                return true;
            }
        }
        self.pages.lock().allocator.file_ready();
        self.purge_beyond(0, 0);
        loop {
            let retained = self.pages.lock().allocator.take_retained();
            let Some(taken) = retained else { break };
            if !hooked_pages::dalloc(&self.hooks, taken.run) {
                self.put_back(taken);
                break;
            }
            self.pages.lock().allocator.strike_off_taken(&taken);
        }
        self.cut_new(want)
    }

    /// Cuts a wanted run out of a free one. `false`: hooks refused; what there is was put back.
    fn cut_free(&'static self, taken: Option<Taken>, want: Want) -> bool {
        let Some(mut taken) = taken else { return false };
        let Some(lead) = lead_of(taken.run, want) else { return self.put_back(taken) };
        if !hooked_pages::commit(&self.hooks, taken.run) {
            return self.put_back(taken);
        }
        if lead > 0 {
            match self.cut(taken, lead) {
                Ok((front, back)) => {
                    self.put_back(front);
                    taken = back;
                }
                Err(whole) => return self.put_back(whole),
            }
        }
        match self.shorten(taken, want.pages) {
            Ok(run) => self.pages.lock().allocator.make_ready(run),
            Err(whole) => return self.put_back(whole),
        }
        true
    }

    /// Cuts a run that is in nobody's list in two. `Err`: refused.
    fn cut(&'static self, taken: Taken, pages: usize) -> Result<(Taken, Taken), Taken> {
        let record = self.pages.lock().allocator.record_for_cut();
        let Some(record) = record else { return Err(taken) };
        let may = hooked_pages::may_cut(&self.hooks, taken.run, pages);
        let allocator = &mut self.pages.lock().allocator;
        if may {
            return Ok(allocator.cut_taken(taken, pages, record));
        }
        allocator.keep_record(record);
        Err(taken)
    }

    /// Cuts a run down to `pages` pages. `Err`: refused.
    fn shorten(&'static self, taken: Taken, pages: usize) -> Result<Taken, Taken> {
        if taken.run.pages() == pages {
            return Ok(taken);
        }
        let (front, back) = self.cut(taken, pages)?;
        self.put_back(back);
        Ok(front)
    }

    fn put_back(&'static self, taken: Taken) -> bool {
        self.pages.lock().allocator.put_back(taken);
        false
    }

    /// Makes one run of two free neighbours, a few times. `false`: there are none that may be.
    fn merge_free(&'static self) -> bool {
        let mut merged = false;
        for _ in 0..MERGES {
            let pair = self.pages.lock().allocator.take_neighbours();
            let Some((left, right)) = pair else { return merged };
            let may = hooked_pages::may_merge(&self.hooks, left.run, right.run);
            self.pages.lock().allocator.put_neighbours(left, right, may);
            if !may {
                return merged;
            }
            merged = true;
        }
        merged
    }

    /// Asks for a generous piece of new memory, or else for exactly what is wanted.
    fn cut_new(&'static self, want: Want) -> bool {
        let chunk = self.pages.lock().allocator.next_chunk(want.pages);
        if chunk > want.pages
            && let Some(taken) = self.reserve(chunk, want.align)
        {
            let run = taken.run;
            if self.cut_free(Some(taken), want) {
                self.pages.lock().allocator.note_chunk();
                return true;
            }
            // It may not be cut, so it is of no use.
            self.give_back_whole(run);
        }
        let taken = self.reserve(want.pages, want.align);
        self.cut_free(taken, want)
    }

    fn reserve(&'static self, pages: usize, align: usize) -> Option<Taken> {
        let got = hooked_pages::reserve(&self.hooks, pages, align)?;
        let taken = self.pages.lock().allocator.take_in(&got, pages);
        if taken.is_none() {
            hooked_pages::give_up(&self.hooks, &got, pages);
        }
        taken
    }

    /// Gives a free run back that was put back as it was; refused, it stays.
    fn give_back_whole(&'static self, run: &'static Extent) {
        let whole = Want { pages: run.pages(), align: 1 };
        let Some(taken) = self.pages.lock().allocator.take_run(run, whole) else { return };
        if hooked_pages::dalloc(&self.hooks, run) {
            self.pages.lock().allocator.strike_off_taken(&taken);
        } else {
            self.put_back(taken);
        }
    }

    /// Lengthens a block in place to `pages`, under no lock. Answers whether the new part reads
    /// zero; `None`: it cannot be.
    pub(super) fn grow_hooked(&'static self, run: &'static Extent, pages: usize) -> Option<bool> {
        let more = pages - run.pages();
        let taken = self.pages.lock().allocator.take_behind(run, more)?;
        if !hooked_pages::commit(&self.hooks, taken.run) {
            self.put_back(taken);
            return None;
        }
        match self.shorten(taken, more) {
            Ok(taken) if hooked_pages::may_append(&self.hooks, run, more) => {
                Some(self.pages.lock().allocator.append(run, &taken))
            }
            Ok(refused) | Err(refused) => {
                self.put_back(refused);
                None
            }
        }
    }

    /// Whether a block may be cut down in place to `pages`. Under no lock.
    pub(super) fn may_shrink_hooked(&'static self, run: &Extent, pages: usize) -> bool {
        hooked_pages::may_cut(&self.hooks, run, pages)
    }
}

/// Pages before the part of a run that a want fits in.
fn lead_of(run: &Extent, want: Want) -> Option<usize> {
    let begin = run.fit(want.pages, want.align)?;
    Some((begin - run.base()) >> crate::ground::units::LG_PAGE)
}
