//! Regions in files as values of Rust: a root of the program's type, and links to blocks.

use crate::method::best::Best;
use crate::method::call::Call;
use crate::method::{Method, Stat};
use crate::shared::Mapping;
use crate::shared_region::SharedRegion;
use crate::values::{Change, change};
use crate::words::GRANULE;
use core::ffi::{CStr, c_int};
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering,
};

/// Keys that C, whose keys have 32 bits, does not reach: the root's distance, and its type.
const ROOT: u64 = u64::MAX;
const TYPE: u64 = u64::MAX - 1;

/// A type that can lie in a file and be used by several processes at once.
///
/// # Safety
/// Any bytes are a value of the type. It holds no address and nothing else that means something in
/// one process only. Its layout is fixed: `repr(C)` or `repr(transparent)`. It is not changed but
/// through atomics. Types of the same size, alignment and version have their atomics at the same
/// bytes.
pub unsafe trait Persist: Sync + 'static {
    /// A number that changes when the meaning of the type changes.
    const VERSION: u16 = 0;

    /// Tells the types of this library apart: those of one kind have their atomics at the same
    /// bytes.
    #[doc(hidden)]
    const KIND: Kind = Kind::Other;
}

/// What a type is to the library.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Kind {
    /// A type of the program.
    Other,
    /// Integers that stay as they are, and links.
    Plain,
    /// Atomics.
    Atomic,
}

macro_rules! persist {
    ($kind:ident: $($type:ty),*) => {
        $(
            // SAFETY: an integer is as it is in each process, and any bytes are one.
            unsafe impl Persist for $type {
                const KIND: Kind = Kind::$kind;
            }
        )*
    };
}

persist!(Plain: u8, u16, u32, u64, i8, i16, i32, i64);
persist!(Atomic: AtomicU8, AtomicU16, AtomicU32, AtomicU64);
persist!(Atomic: AtomicI8, AtomicI16, AtomicI32, AtomicI64);

// SAFETY: the elements keep the promises.
unsafe impl<T: Persist, const N: usize> Persist for [T; N] {
    const VERSION: u16 = T::VERSION;
    const KIND: Kind = T::KIND;
}

// SAFETY: a link is a number, which is checked when it is used.
unsafe impl<T: Persist> Persist for Link<T> {
    const KIND: Kind = Kind::Plain;
}

// SAFETY: as above.
unsafe impl<T: Persist> Persist for AtomicLink<T> {
    const KIND: Kind = Kind::Atomic;
}

/// Leads to a block of a persistent region, in all processes and wherever the region lies.
#[repr(transparent)]
pub struct Link<T> {
    distance: u64,
    block: PhantomData<fn() -> T>,
}

impl<T> Clone for Link<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Link<T> {}

impl<T> PartialEq for Link<T> {
    fn eq(&self, other: &Self) -> bool {
        self.distance == other.distance
    }
}

impl<T> Eq for Link<T> {}

impl<T> Default for Link<T> {
    fn default() -> Self {
        Link::NOWHERE
    }
}

impl<T> core::fmt::Debug for Link<T> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Link({:#x})", self.distance)
    }
}

impl<T> Link<T> {
    /// Leads to no block.
    pub const NOWHERE: Link<T> = Link::to(0);

    const fn to(distance: u64) -> Link<T> {
        Link { distance, block: PhantomData }
    }

    /// Returns whether the link leads to no block.
    #[must_use]
    pub fn is_nowhere(self) -> bool {
        self.distance == 0
    }
}

/// A [`Link`] that processes change.
#[repr(transparent)]
pub struct AtomicLink<T> {
    distance: AtomicU64,
    block: PhantomData<fn() -> T>,
}

impl<T> Default for AtomicLink<T> {
    fn default() -> Self {
        AtomicLink { distance: AtomicU64::new(0), block: PhantomData }
    }
}

impl<T> AtomicLink<T> {
    /// Returns the link.
    #[must_use]
    pub fn load(&self, order: Ordering) -> Link<T> {
        Link::to(self.distance.load(order))
    }

    /// Changes the link.
    pub fn store(&self, link: Link<T>, order: Ordering) {
        self.distance.store(link.distance, order);
    }

    /// Changes the link if it is `present`.
    ///
    /// # Errors
    /// The link, if it is another one.
    pub fn compare_exchange(
        &self,
        present: Link<T>,
        new: Link<T>,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Link<T>, Link<T>> {
        let (present, new) = (present.distance, new.distance);
        let changed = self.distance.compare_exchange(present, new, success, failure);
        changed.map(Link::to).map_err(Link::to)
    }
}

/// Why a persistent region was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The file holds something else, or was cut off.
    NoRegion,
    /// The region's root has another type, or another version of it.
    OtherRoot,
    /// Something else lies at the region's addresses in this process.
    AddressInUse,
    /// There is no room: the region cannot be so large, or the disk is full.
    NoRoom,
    /// A call of the system failed, with this `errno`.
    System(c_int),
}

impl From<c_int> for OpenError {
    fn from(code: c_int) -> OpenError {
        match code {
            libc::EINVAL => OpenError::NoRegion,
            libc::EADDRINUSE => OpenError::AddressInUse,
            libc::ENOMEM | libc::ENOSPC => OpenError::NoRoom,
            other => OpenError::System(other),
        }
    }
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            OpenError::NoRegion => "the file holds no region, or is cut off",
            OpenError::OtherRoot => "the region's root has another type",
            OpenError::AddressInUse => "something else lies at the region's addresses",
            OpenError::NoRoom => "there is no room for the region",
            OpenError::System(code) => {
                return write!(formatter, "the system's error {code}");
            }
        })
    }
}

impl core::error::Error for OpenError {}

/// A region in a file, with a root of type `T`. Several processes use it at once, and it is there
/// when they start again. C opens the same files by `vmmopen`. Source: vmalloc(3), `vmmopen`.
///
/// Programs that have the region change the file through it only. If one cuts the file off
/// meanwhile, the next access to what is gone ends the process by `SIGBUS`.
///
/// ```
/// use lumalloc_region::Persistent;
/// use std::ffi::CString;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let path = std::env::temp_dir().join(format!("persistent-{}", std::process::id()));
/// let path = CString::new(path.into_os_string().into_encoded_bytes()).unwrap();
/// let visits: Persistent<AtomicU64> = Persistent::open(&path, 0, AtomicU64::new(100)).unwrap();
/// visits.root().fetch_add(1, Ordering::Relaxed);
/// drop(visits);
///
/// // Another process, another day.
/// let visits: Persistent<AtomicU64> = Persistent::open(&path, 0, AtomicU64::new(100)).unwrap();
/// assert_eq!(visits.root().load(Ordering::Relaxed), 101);
/// visits.remove();
/// ```
pub struct Persistent<T: Persist> {
    region: SharedRegion,
    root: NonNull<T>,
}

// SAFETY: the root is shared by processes anyway, and `T` is `Sync`.
unsafe impl<T: Persist> Send for Persistent<T> {}

// SAFETY: as above; the region has a lock.
unsafe impl<T: Persist> Sync for Persistent<T> {}

impl<T: Persist> Persistent<T> {
    /// Opens the region in a file, with room for at least `size` bytes. A new one begins with
    /// `root`.
    ///
    /// # Errors
    /// See [`OpenError`]. What was in the file before is there still.
    pub fn open(path: &CStr, size: usize, root: T) -> Result<Persistent<T>, OpenError> {
        let mut region = SharedRegion::open_or_make(path, size)?;
        let found = region.enter(|call| {
            if let Some(distance) = change(call, ROOT, Change::Get).after {
                let is_same = change(call, TYPE, Change::Get).after == Some(fingerprint::<T>());
                return if is_same { Ok(distance) } else { Err(OpenError::OtherRoot) };
            }
            make_root(call, root).ok_or(OpenError::NoRoom)
        });
        let found = found.unwrap_or(Err(OpenError::NoRegion));
        if found.is_err() {
            region.remove_if_made();
        }
        let distance = found?;
        let root = block_at::<T>(&region, distance).ok_or(OpenError::NoRegion)?;
        Ok(Persistent { region, root })
    }

    /// Returns the root.
    pub fn root(&self) -> &T {
        // SAFETY: the block is in use as long as the region, and any bytes are a value.
        unsafe { self.root.as_ref() }
    }

    /// Puts a value in a new block. Returns `None` if there is no room. The block stays until
    /// [`Persistent::free`], also when no link leads to it.
    pub fn alloc<U: Persist>(&self, value: U) -> Option<Link<U>> {
        self.region.enter(|call| put(call, value))?.map(Link::to)
    }

    /// Returns what a link leads to, or `None` if there is no such block in use, or it was made of
    /// a type with another size, alignment or version. Like all calls but
    /// [`Persistent::root`], this one takes the region's lock.
    pub fn get<U: Persist>(&self, link: Link<U>) -> Option<&U> {
        let block = block_at::<U>(&self.region, link.distance)?;
        // SAFETY: the block is in use and was made of such a type, any bytes are a value, and
        // whoever frees it promises that no process uses a reference to it.
        Some(unsafe { block.as_ref() })
    }

    /// Frees a block. Returns false if there is no such block in use.
    ///
    /// # Safety
    /// No process uses a reference to the block, and the link is not that of the root.
    pub unsafe fn free<U: Persist>(&self, link: Link<U>) -> bool {
        if block_at::<U>(&self.region, link.distance).is_none() {
            return false;
        }
        let at = self.region.origin().wrapping_add(link.distance as usize);
        self.region.enter(|call| Best::free(call, at).is_ok()).unwrap_or(false)
    }

    /// The region without a type.
    pub(crate) fn region(&self) -> &SharedRegion {
        &self.region
    }

    /// Counts blocks and segments. Blocks of the region's own are among them: three at first.
    pub fn stat(&self) -> Stat {
        self.region.stat()
    }

    /// Gives free pages at the end back to the file system.
    pub fn compact(&self) {
        self.region.compact();
    }

    /// Removes the file. Processes that have the region keep it until they end.
    pub fn remove(mut self) {
        self.region.remove_when_closed();
    }
}

/// How far behind the start of its block a value lies. A block begins with the number of its type.
const fn lead<U>() -> usize {
    if align_of::<U>() > GRANULE { align_of::<U>() } else { GRANULE }
}

/// Puts a value in a new block, and returns the block's distance.
fn put<U: Persist>(call: &mut Call<'_, Best, Mapping>, value: U) -> Option<u64> {
    let (size, align) = (lead::<U>().checked_add(size_of::<U>())?, align_of::<U>());
    let block = match align {
        ..=GRANULE => Best::alloc(call, size),
        _ => Best::align(call, size, align),
    }?;
    let start = core::ptr::with_exposed_provenance_mut::<u64>(block);
    // SAFETY: the block is new, long enough, and aligned.
    unsafe { start.write(fingerprint::<U>()) };
    // SAFETY: as above.
    let place = unsafe { start.byte_add(lead::<U>()) };
    // SAFETY: as above.
    unsafe { place.cast::<U>().write(value) };
    Some(call.words().distance(block) as u64)
}

/// Makes the root of a region without one. Returns its distance.
fn make_root<T: Persist>(call: &mut Call<'_, Best, Mapping>, root: T) -> Option<u64> {
    let distance = put(call, root)?;
    // There is a root once this key has a value, so it comes last.
    let is_noted = change(call, TYPE, Change::Set(fingerprint::<T>())).after.is_some()
        && change(call, ROOT, Change::Set(distance)).after.is_some();
    if !is_noted {
        let block = call.words().address(distance as usize);
        // A block whose header was overwritten stays unused.
        let _ = Best::free(call, block);
    }
    is_noted.then_some(distance)
}

/// Returns a number of a type: its size, its kind, its alignment and its version.
fn fingerprint<T: Persist>() -> u64 {
    let align = u64::from(align_of::<T>().trailing_zeros());
    let kind = T::KIND as u64;
    (size_of::<T>() as u64) << 32 | kind << 24 | align << 16 | u64::from(T::VERSION)
}

/// Returns the value in the block in use at a distance, if it was made of a type as `U` is.
fn block_at<U: Persist>(region: &SharedRegion, distance: u64) -> Option<NonNull<U>> {
    let at = region.origin().wrapping_add(usize::try_from(distance).ok()?);
    let start = core::ptr::with_exposed_provenance_mut::<u64>(at);
    let is_one = region.enter(|call| {
        let bytes = Best::size(call, at)?.checked_sub(lead::<U>())?;
        let is_long = bytes >= size_of::<U>() && at.is_multiple_of(align_of::<U>());
        // SAFETY: a block in use, which the lock keeps so meanwhile, and long enough.
        Some(is_long && unsafe { start.read() } == fingerprint::<U>())
    })??;
    NonNull::new(start.map_addr(|start| start.wrapping_add(lead::<U>())).cast()).filter(|_| is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::vec::Vec;

    /// Blocks that are as large as the entry of a value with a key, and as the root.
    const SIZE: usize = 24;

    #[test]
    fn a_root_for_which_there_is_no_room_leaves_no_block() {
        let name = std::format!("persistent-no-room-{}", std::process::id());
        let path = std::env::temp_dir().join(name).into_os_string().into_encoded_bytes();
        let path = CString::new(path).unwrap();
        let region = SharedRegion::open_or_make(&path, 0).unwrap();
        let blocks: Vec<u64> = region
            .enter(|call| {
                let more = || Some(call.words().distance(Best::alloc(call, SIZE)?) as u64);
                core::iter::from_fn(more).collect()
            })
            .unwrap();
        drop(region);
        // With one free block there is room for the root alone, with two for its type.
        for (block, more) in [(blocks[0], 0), (blocks[1], 1)] {
            let region = SharedRegion::open(&path).unwrap();
            let at = region.origin() + block as usize;
            region.enter(|call| Best::free(call, at)).unwrap().unwrap();
            let busy = region.stat().busy;
            drop(region);
            for _ in 0..2 {
                let opened = Persistent::open(&path, 0, AtomicU64::new(7)).err();
                assert_eq!(opened, Some(OpenError::NoRoom));
            }
            let region = SharedRegion::open(&path).unwrap();
            assert_eq!(region.stat().busy, busy + more);
        }
        let region = SharedRegion::open(&path).unwrap();
        let at = region.origin() + blocks[2] as usize;
        region.enter(|call| Best::free(call, at)).unwrap().unwrap();
        drop(region);
        let region = Persistent::open(&path, 0, AtomicU64::new(7)).unwrap();
        assert_eq!(region.root().load(Ordering::Relaxed), 7);
        region.remove();
    }
}
