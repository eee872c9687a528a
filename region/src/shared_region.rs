//! A region in a file, whatever is in its blocks.

use crate::data::{Data, Head};
use crate::entry::Entry;
use crate::errno;
use crate::holder::Holder;
use crate::lock::Lock;
use crate::method::best::{Best, State};
use crate::method::call::{Call, Form};
use crate::method::{Method, Stat};
use crate::mode;
use crate::shared::{FileForm, LOCKED, Mapping, when_made};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int};
use core::ptr::NonNull;

/// A region in a file, which other processes may use at the same time, as `vmmopen` makes it.
///
/// Each call waits until no process is in the region, and finds anew what is free if one ended
/// there. Source: vmalloc(3), `vmmopen`.
pub struct SharedRegion {
    mapping: UnsafeCell<Mapping>,
    data: NonNull<Data<State>>,
    holder: Option<Holder>,
}

// SAFETY: the mapping is the same in all threads.
unsafe impl Send for SharedRegion {}

// SAFETY: the lock in the core data lets one thread at a time use mapping and words.
unsafe impl Sync for SharedRegion {}

impl SharedRegion {
    /// Opens the region in a file, which exists.
    ///
    /// # Errors
    /// A number of `errno`: `ENOENT` if there is no file, and none is made; `EINVAL` if it holds no
    /// region, or is cut off; `EADDRINUSE` if something else lies at the region's addresses;
    /// `EBUSY` if another program has locked the file by `flock(2)`, or stays in a call of the
    /// region although it has closed the file; and those of the system.
    pub fn open(path: &CStr) -> Result<SharedRegion, c_int> {
        SharedRegion::of_file(path, FileForm { exists: true, ..FileForm::default() })
    }

    /// Opens the region in a file, with room for at least `size` bytes. Makes the file and the
    /// region if there is none.
    ///
    /// # Errors
    /// As for [`SharedRegion::open`], but `ENOENT` only if there is no directory; `ENOMEM` if the
    /// region cannot be so large; `ENOSPC` if the disk is full.
    pub fn open_or_make(path: &CStr, size: usize) -> Result<SharedRegion, c_int> {
        SharedRegion::of_file(path, FileForm { size, ..FileForm::default() })
    }

    fn of_file(path: &CStr, form: FileForm) -> Result<SharedRegion, c_int> {
        let mut holder = None;
        when_made(|| {
            let mapping = Mapping::of_file(path, form)?;
            mapping.map(|mapping| SharedRegion::of(mapping, &mut holder)).transpose()
        })
    }

    /// Keeps the process that is in the region, for the next attempt if this one fails.
    fn of(mut mapping: Mapping, holder: &mut Option<Holder>) -> Result<SharedRegion, c_int> {
        // SAFETY: the core data is mapped as long as the mapping exists.
        let head = mapping.existing(Best::MODE).map(|head| unsafe { head.as_ref() });
        *holder = head.and_then(|head| head.lock().holder()).or(*holder);
        let data = begin(&mut mapping)?.cast();
        Ok(SharedRegion { mapping: UnsafeCell::new(mapping), data, holder: *holder })
    }

    /// Lets the end of the value remove the file, if it was made for this value.
    pub(crate) fn remove_if_made(&mut self) {
        self.mapping.get_mut().remove_if_made();
    }

    /// Lets the end of the value remove the file.
    pub fn remove_when_closed(&mut self) {
        self.mapping.get_mut().remove_when_closed();
    }

    /// Returns the process that was in the region when it was opened, or ended there.
    pub fn holder(&self) -> Option<Holder> {
        self.holder
    }

    /// Returns where the region lies in each process.
    pub fn base(&mut self) -> usize {
        self.mapping.get_mut().base()
    }

    /// Returns how many bytes the region can grow to.
    pub fn room(&mut self) -> usize {
        self.mapping.get_mut().room()
    }

    /// Counts blocks and segments. All counts are 0 in a call from [`for_each_block`].
    ///
    /// [`for_each_block`]: SharedRegion::for_each_block
    pub fn stat(&self) -> Stat {
        self.enter(|call| call.stat()).unwrap_or_default()
    }

    /// Calls `see` with address and size of each block in use. `see` may not use the region: calls
    /// of it fail.
    pub fn for_each_block(&self, see: &mut dyn FnMut(usize, usize)) {
        self.enter(|call| Best::blocks(call, see));
    }

    /// Returns whether the words between all blocks are whole.
    pub fn is_whole(&self) -> bool {
        self.enter(Best::check).flatten() == Some(0)
    }

    /// Gives free pages at the end back to the file system.
    pub fn compact(&self) {
        self.enter(Best::compact);
    }

    /// Returns the address that distances are counted from.
    pub(crate) fn origin(&self) -> usize {
        self.data.as_ptr().expose_provenance()
    }

    /// Runs `f` in the region. Returns `None` if this thread is in it.
    pub(crate) fn enter<T>(&self, f: impl FnOnce(&mut Call<'_, Best, Mapping>) -> T) -> Option<T> {
        let lock = self.head().lock();
        if !lock.enter(Entry::Processes) {
            return None;
        }
        let leave = Leave(lock);
        // SAFETY: the lock is held.
        let result = unsafe { self.run(f) };
        drop(leave);
        Some(result)
    }

    /// As [`SharedRegion::enter`], but does not wait for long. The list of regions is held.
    pub(crate) fn visit<T>(&self, f: impl FnOnce(&mut Call<'_, Best, Mapping>) -> T) -> Option<T> {
        if !self.head().visit(Entry::Processes) {
            return None;
        }
        let leave = Leave(self.head().lock());
        // SAFETY: the lock is held.
        let result = unsafe { self.run(f) };
        drop(leave);
        Some(result)
    }

    /// Returns what every region has in its core data.
    pub(crate) fn head(&self) -> &Head {
        // SAFETY: the core data is mapped as long as the mapping exists.
        &unsafe { self.data.as_ref() }.head
    }

    /// Copies the path of the file, and returns its length. A longer path loses its beginning. The
    /// list of regions is held, and the region is in it.
    pub(crate) fn path(&self, into: &mut [u8]) -> usize {
        // SAFETY: what leads to the file changes only where the region is borrowed for a change.
        unsafe { &*self.mapping.get() }.path(into)
    }

    /// # Safety
    /// The lock is held.
    unsafe fn run<T>(&self, f: impl FnOnce(&mut Call<'_, Best, Mapping>) -> T) -> T {
        // SAFETY: the lock is held, so nobody else uses the mapping.
        let mapping = unsafe { &mut *self.mapping.get() };
        // SAFETY: the region has this method, and the lock is held.
        let mut call = unsafe { Call::new(self.data, mapping) };
        call.mend();
        f(&mut call)
    }
}

/// Makes the region of new memory. One that was made earlier is made whole if no other process has
/// it, because then nobody else does. Returns its core data.
///
/// # Errors
/// A number of `errno`: the system's if it gives no memory; `EINVAL` if there is no region.
/// [`LOCKED`] if a process is in the region, which may not be waited for here.
pub fn begin(mapping: &mut Mapping) -> Result<NonNull<Head>, c_int> {
    if mapping.is_new() {
        let form = Form { flags: mode::SHARE | mode::PROCESSES, handle: 0 };
        let data = errno::keeping(|| {
            // What is left if no call of the system was refused.
            errno::set(libc::ENOSPC);
            Call::<Best, Mapping>::open(mapping, form).ok_or_else(errno::get)
        })?;
        mapping.ready();
        return Ok(data.cast());
    }
    let head = mapping.existing(Best::MODE).ok_or(libc::EINVAL)?;
    if mapping.is_alone() {
        make_whole(mapping, head)?;
    }
    mapping.ready();
    Ok(head)
}

fn make_whole(mapping: &mut Mapping, head: NonNull<Head>) -> Result<(), c_int> {
    // SAFETY: the core data is mapped as long as the mapping exists.
    let region = unsafe { head.as_ref() };
    if mapping.is_file() {
        // A file shows that no process has the region, so nobody holds the lock: unless one closed
        // its descriptors on a file system where a mapping does not keep the file locked, as
        // overlayfs.
        // A copy names the processes that have the file it was made of.
        region.begin_again(mapping.is_copy());
    }
    if !region.lock().enter_at_once() {
        return Err(LOCKED);
    }
    let leave = Leave(region.lock());
    region.clear_flags();
    // SAFETY: the region has this method, and the lock is held.
    unsafe { Call::<Best, Mapping>::new(head.cast(), mapping) }.recover();
    drop(leave);
    Ok(())
}

/// Leaves the region, also if a function of the program panicked.
struct Leave<'a>(&'a Lock);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.leave(Entry::Processes);
    }
}
