//! What went between a cache and the arenas, by class: an account for each arena that the cache has
//! dealt with.
//!
//! ```text
//!   class ──▶ account of the home ──▶ account of another arena ──▶ …
//! ```
//! A block is charged to the arena of its slab, when it leaves the slab and when it is returned to
//! it. Refills, flushes and requests are charged to the arena that is the cache's home at the time.
//! Accounts are made on demand and live for ever, so counts only grow. They are written under the
//! lock of the cache's owner. Once a list is long, a table finds its accounts.

use super::run_cache;
use crate::back::metadata;
use crate::back::record_table::{Numbered, RecordTable};
use crate::ground::counters::OwnedCount;
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::middle::arena_counts::MAX_ARENAS;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Lists of accounts: one for each class of blocks, then one for each length of runs that caches
/// keep.
pub(crate) const SLOTS: usize = CLASSES + run_cache::LENGTHS;
const _: () = assert!(SLOTS <= u64::BITS as usize);
/// The bits of an arena's index.
const LG_ARENAS: u32 = 12;
const _: () = assert!(MAX_ARENAS <= 1 << LG_ARENAS);

/// What went between one cache and one arena, in blocks of one class.
pub(crate) struct Account {
    next: AtomicPtr<Account>,
    arena: u32,
    number: u32,
    /// Blocks that left the arena's slabs for the cache. Of runs: kept ones that were used again.
    pub(crate) filled: OwnedCount,
    /// Blocks that the cache returned to the arena's slabs.
    pub(crate) flushed: OwnedCount,
    /// Refills and flushes while the arena was the home.
    pub(crate) fills: OwnedCount,
    pub(crate) flushes: OwnedCount,
    /// Requests while the arena was the home; for the present home see [`Ledger::requests`].
    requests: OwnedCount,
    /// `remote`: blocks flushed to slabs with another guard. `sent`: those of them that the guard
    /// has yet to take in after an atomic OR. `absorbed`: blocks that this cache took in as the
    /// guard.
    pub(crate) remote: OwnedCount,
    pub(crate) sent: OwnedCount,
    pub(crate) absorbed: OwnedCount,
}

/// The accounts of one cache.
pub(crate) struct Ledger {
    /// A bit for each list that has an account.
    used: AtomicU64,
    lists: [AtomicPtr<Account>; SLOTS],
    /// The accounts of all lists, if one is long. Used under the lock of the cache's owner.
    table: RecordTable<Account>,
}

/// Sums over the accounts of one class.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Blocks that the cache took.
    pub(crate) filled: u64,
    /// Blocks that the cache gave back.
    pub(crate) flushed: u64,
}

/// The account to count on where there is no memory for one. It charges the first arena.
static LOST: Account = Account::new(0, 0);

impl Account {
    const fn new(slot: usize, arena: u32) -> Account {
        Account {
            next: AtomicPtr::new(core::ptr::null_mut()),
            arena,
            number: Account::number_of(slot, arena),
            filled: OwnedCount::new(),
            flushed: OwnedCount::new(),
            fills: OwnedCount::new(),
            flushes: OwnedCount::new(),
            requests: OwnedCount::new(),
            remote: OwnedCount::new(),
            sent: OwnedCount::new(),
            absorbed: OwnedCount::new(),
        }
    }

    /// The number of the account of an arena in a list.
    const fn number_of(slot: usize, arena: u32) -> u32 {
        (slot as u32) << LG_ARENAS | arena
    }

    /// The index of the account's arena.
    #[inline]
    pub(crate) fn arena(&self) -> u32 {
        self.arena
    }

    fn next(&self) -> Option<&'static Account> {
        // Acquire: pairs with the Release in `add`.
        // SAFETY: accounts live for ever.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

impl Numbered for Account {
    fn number(&self) -> u32 {
        self.number
    }
}

impl Ledger {
    pub(crate) const fn new() -> Ledger {
        Ledger {
            used: AtomicU64::new(0),
            lists: [const { AtomicPtr::new(core::ptr::null_mut()) }; SLOTS],
            table: RecordTable::new(),
        }
    }

    /// A bit for each list that has an account, so for each class that the cache ever served.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The classes that the cache ever served.
    pub(crate) fn used_classes(&self) -> impl Iterator<Item = SizeClass> {
        let used = self.used();
        SizeClass::all().filter(move |class| used >> class.index() & 1 != 0)
    }

    /// The accounts of a list, that of the home first.
    pub(crate) fn accounts(
        &self,
        slot: usize,
    ) -> impl Iterator<Item = &'static Account> + Clone + use<'_> {
        core::iter::successors(self.first(slot), |account| account.next())
    }

    /// The sums over the accounts of a list.
    pub(crate) fn counts(&self, slot: usize) -> Counts {
        self.accounts(slot).fold(Counts::default(), |sum, account| Counts {
            filled: sum.filled + account.filled.get(),
            flushed: sum.flushed + account.flushed.get(),
        })
    }

    /// The accounts of all lists.
    fn all(&self) -> impl Iterator<Item = &'static Account> + Clone {
        (0..SLOTS).flat_map(|slot| self.accounts(slot))
    }

    #[inline]
    fn first(&self, slot: usize) -> Option<&'static Account> {
        // Acquire: pairs with the Release in `add`.
        // SAFETY: accounts live for ever.
        unsafe { self.lists.get(slot)?.load(Ordering::Acquire).as_ref() }
    }

    /// The account of the arena that was the home at the last refill.
    #[inline]
    pub(crate) fn home(&self, slot: usize) -> &'static Account {
        self.first(slot).unwrap_or(&LOST)
    }

    /// As [`Ledger::home`], but opens an account for `arena` if the list has none.
    #[inline]
    pub(crate) fn home_or(&self, slot: usize, arena: u32) -> &'static Account {
        self.first(slot).or_else(|| self.find(slot, arena)).unwrap_or(&LOST)
    }

    /// The account of an arena in a list, opened if there is none.
    #[inline]
    pub(crate) fn of(&self, slot: usize, arena: u32) -> &'static Account {
        match self.first(slot) {
            Some(first) if first.arena == arena => first,
            _ => self.find(slot, arena).unwrap_or(&LOST),
        }
    }

    /// Makes `arena` the home. `requests` returns all requests that the cache ever served.
    #[inline]
    pub(crate) fn settle(&self, slot: usize, arena: u32, requests: impl Fn() -> u64) {
        if self.first(slot).is_none_or(|first| first.arena != arena) {
            self.move_to(slot, arena, requests());
        }
    }

    /// The requests counted to an account, of `all` that the cache ever served of the class.
    pub(crate) fn requests(&self, slot: usize, account: &Account, all: u64) -> u64 {
        match self.first(slot) {
            Some(first) if core::ptr::eq(first, account) => all.saturating_sub(self.away(first)),
            _ => account.requests.get(),
        }
    }

    /// The requests counted to arenas that were the home before.
    fn away(&self, first: &'static Account) -> u64 {
        core::iter::successors(first.next(), |account| account.next())
            .map(|account| account.requests.get())
            .sum()
    }

    /// Checks how accounts are found. Called under the lock of the cache's owner.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn check(&self) {
        self.table.check(self.all());
    }

    #[cold]
    #[inline(never)]
    fn find(&self, slot: usize, arena: u32) -> Option<&'static Account> {
        let known = self.table.find(Account::number_of(slot, arena), self.accounts(slot));
        known.or_else(|| self.add(slot, arena))
    }

    /// Opens an account, behind that of the home if there is one.
    fn add(&self, slot: usize, arena: u32) -> Option<&'static Account> {
        let list = self.lists.get(slot)?;
        // So aligned an account lies in at most two cache lines, which no other thread writes to.
        let memory = metadata::allocate(size_of::<Account>(), 16)?.cast::<Account>();
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { memory.write(Account::new(slot, arena)) };
        let link = match self.first(slot) {
            Some(first) => &first.next,
            None => list,
        };
        // SAFETY: just written, and never unmapped.
        let account: &'static Account = unsafe { memory.as_ref() };
        account.next.store(link.load(Ordering::Relaxed), Ordering::Relaxed);
        // Release: pairs with the Acquire in `first` and `next`.
        link.store(memory.as_ptr(), Ordering::Release);
        self.used.store(self.used() | 1 << slot, Ordering::Relaxed);
        self.table.add(account, self.accounts(slot), self.all());
        Some(account)
    }

    #[cold]
    #[inline(never)]
    fn move_to(&self, slot: usize, arena: u32, requests: u64) {
        let Some(new) = self.find(slot, arena) else { return };
        let (Some(old), Some(list)) = (self.first(slot), self.lists.get(slot)) else { return };
        if core::ptr::eq(old, new) {
            return;
        }
        // `old` gets all requests that no other account has. Its earlier requests are among them.
        old.requests.reset();
        let away = self.away(old);
        old.requests.add(requests.saturating_sub(away));
        let before = self
            .accounts(slot)
            .find(|account| account.next().is_some_and(|next| core::ptr::eq(next, new)));
        let Some(before) = before else { return };
        before.next.store(new.next.load(Ordering::Relaxed), Ordering::Relaxed);
        new.next.store(core::ptr::from_ref(old).cast_mut(), Ordering::Relaxed);
        // Release: pairs with the Acquire in `first`.
        list.store(core::ptr::from_ref(new).cast_mut(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(ledger: &Ledger, arena: u32, all: u64) -> u64 {
        let account = ledger.accounts(3).find(|account| account.arena() == arena).unwrap();
        ledger.requests(3, account, all)
    }

    #[test]
    fn blocks_are_charged_to_their_arena() {
        let ledger = Ledger::new();
        ledger.settle(3, 7, || 0);
        ledger.of(3, 7).filled.add(10);
        ledger.of(3, 8).filled.add(5);
        ledger.of(3, 8).flushed.add(2);
        ledger.of(3, 7).flushed.add(1);
        let all: Vec<_> =
            ledger.accounts(3).map(|a| (a.arena(), a.filled.get(), a.flushed.get())).collect();
        assert_eq!(all, [(7, 10, 1), (8, 5, 2)]);
        let sums = ledger.counts(3);
        assert_eq!((sums.filled, sums.flushed, ledger.used()), (15, 3, 1 << 3));
    }

    #[test]
    fn requests_stay_with_the_home_that_they_were_made_in() {
        let ledger = Ledger::new();
        ledger.settle(3, 0, || 0);
        ledger.of(3, 2).filled.add(1);
        assert_eq!((requests(&ledger, 0, 100), requests(&ledger, 2, 100)), (100, 0));
        ledger.settle(3, 0, || unreachable!());
        ledger.settle(3, 1, || 100);
        assert_eq!(ledger.home(3).arena(), 1);
        assert_eq!((requests(&ledger, 0, 150), requests(&ledger, 1, 150)), (100, 50));
        ledger.settle(3, 2, || 160);
        ledger.settle(3, 0, || 165);
        let now = [0, 1, 2].map(|arena| requests(&ledger, arena, 170));
        assert_eq!(now, [105, 60, 5]);
        assert_eq!(ledger.accounts(3).count(), 3);
    }

    #[test]
    fn the_accounts_of_many_arenas_are_found_in_whatever_order_homes_change() {
        let ledger = Ledger::new();
        ledger.settle(3, 0, || 0);
        for arena in (0..1000).chain((0..1000).rev()) {
            ledger.of(3, arena).flushed.add(1);
            ledger.of(4, arena).filled.add(1);
            ledger.check();
            if arena % 7 == 0 {
                ledger.settle(3, arena, || 0);
            }
        }
        assert_eq!([3, 4].map(|slot| ledger.accounts(slot).count()), [1000; 2]);
        assert!(ledger.accounts(3).all(|account| account.flushed.get() == 2));
        assert!(ledger.accounts(4).all(|account| account.filled.get() == 2));
    }
}
