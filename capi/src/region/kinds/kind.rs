//! What the functions need of a region, for each kind of region.

use super::super::abi::{Vmalloc, Vmethod, event, handle};
use super::super::disciplines::Source;
use super::super::inside::Way;
use super::super::position;
use super::super::trace::{self, Record};
use crate::errno;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use lumalloc_region::raw::{Change, Form, Head, Origin, Value};
use lumalloc_region::{Misuse, Position, Stat, mode};

/// A segment: its start and its bytes.
pub(in super::super) type Span = (usize, usize);

/// A kind of region. The functions take handles of regions of this kind.
pub(in super::super) struct Kind {
    /// What handles hold.
    pub(in super::super) method: Vmethod,
    /// Opens a region, for a handle without core data. Returns the core data.
    pub(in super::super) open: fn(&Vmalloc, Form) -> Option<NonNull<Head>>,
    /// Gives all segments back, and returns whether it did.
    pub(in super::super) close: fn(&Vmalloc) -> bool,
    /// Frees all blocks, and returns whether it did.
    pub(in super::super) clear: fn(&Vmalloc) -> bool,
    /// Counts blocks and segments.
    pub(in super::super) stat: fn(&Vmalloc, Way) -> Option<Stat>,
    /// Returns the start of the segment in which an address lies.
    pub(in super::super) segment: fn(&Vmalloc, usize) -> Option<usize>,
    /// Copies segments, the newest first, after so many of them. Returns how many there were.
    pub(in super::super) segments: fn(&Vmalloc, Way, usize, &mut [Span]) -> usize,
    /// Returns whether a block that is in use begins at an address.
    pub(in super::super) has_block: fn(&Vmalloc, Way, usize) -> bool,
    /// Gives free memory back, and returns whether it did.
    pub(in super::super) compact: fn(&Vmalloc, Way) -> bool,
    /// Calls a function with address and size of each block in use, if the method knows them.
    /// Returns whether it does.
    pub(in super::super) blocks: fn(&Vmalloc, &mut dyn FnMut(usize, usize)) -> bool,
    /// Finds or changes the value of a key. Returns `None` if a call is in the region.
    pub(in super::super) value: fn(&Vmalloc, u64, Change) -> Option<Value>,
    /// Checks all blocks, and returns how many are corrupt, if the method can tell. Returns `None`
    /// if a call is in the region.
    pub(in super::super) check: fn(&Vmalloc, Way, Position) -> Option<Option<usize>>,
}

/// Why a call failed.
#[derive(Clone, Copy)]
pub(super) enum Failure {
    /// There is no memory.
    NoMemory,
    /// The arguments cannot be.
    Invalid,
    /// A call is in the region.
    Busy,
    /// The address is that of no block in use.
    BadAddress,
}

impl Failure {
    pub(super) fn of(misuse: Misuse) -> Failure {
        match misuse {
            Misuse::NotABlock | Misuse::FreedBefore => Failure::BadAddress,
            Misuse::NotTheLast => Failure::Invalid,
            Misuse::NoRoom => Failure::NoMemory,
            Misuse::Entered => Failure::Busy,
        }
    }
}

/// One call of a program: the region, the position, and whether anybody is told.
pub(super) struct Caller<'a> {
    pub(super) vm: &'a Vmalloc,
    pub(super) position: Position,
    is_told: bool,
}

impl<'a> Caller<'a> {
    /// A call through a handle, or `None` for NULL. Nobody is told of a call with `local`.
    ///
    /// # Safety
    /// A pointer other than NULL is that of a handle, which stays open during the call.
    #[inline]
    pub(super) unsafe fn new(vm: *mut Vmalloc, local: c_int) -> Option<Caller<'a>> {
        let position = position::take();
        // SAFETY: the caller's promise.
        let Some(vm) = (unsafe { handle(vm) }) else {
            errno::set(libc::EINVAL);
            return None;
        };
        Some(Caller { vm, position, is_told: local == 0 })
    }

    /// Returns where the call comes from. The method for debugging shows the callers of a program
    /// that records no position.
    #[inline]
    pub(super) fn origin(&self) -> Origin {
        if self.vm.meth.bit() == mode::DEBUG && self.position.is_unknown() {
            Origin::Stack
        } else {
            Origin::Recorded(self.position)
        }
    }

    /// Writes the line of a call, if the region is traced. The region is still locked, so that the
    /// lines of all threads stand in the order of their calls.
    #[inline]
    pub(super) fn trace(&self, record: Record) {
        if self.vm.head().mode() & mode::TRACE != 0 && self.is_told {
            trace::write(self.vm, record, self.position);
        }
    }

    /// Announces that a call was made, if the discipline wants to know. The region is not locked.
    #[inline]
    pub(super) fn tell(&self, event: c_int, block: usize) {
        if self.vm.head().mode() & mode::ANNOUNCE != 0 && self.is_told {
            self.announce(event, block);
        }
    }

    /// Fails with `errno`, after the event of a bad address.
    #[cold]
    pub(super) fn fail(&self, failure: Failure, address: usize) {
        let code = match failure {
            Failure::NoMemory => libc::ENOMEM,
            Failure::Invalid => libc::EINVAL,
            Failure::Busy => libc::EBUSY,
            Failure::BadAddress => {
                self.announce(event::BADADDR, address);
                libc::EINVAL
            }
        };
        errno::set(code);
    }

    fn announce(&self, event: c_int, block: usize) {
        // SAFETY: handle and discipline exist while the region is open.
        let source = unsafe { Source::new(self.vm.address(), self.vm.disc()) };
        source.announce(event, ptr::with_exposed_provenance_mut(block));
    }
}

/// The address of a block as C has it.
#[inline]
pub(super) fn pointer(block: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(block)
}
