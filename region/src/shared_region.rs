//! A region in a file, as tools see it: they look at it, check it and compact it, and do not know
//! what is in its blocks.

use crate::call::Call;
use crate::data::Data;
use crate::lock::{Entry, Holder};
use crate::method::best::{Best, State};
use crate::method::{Method, Stat};
use crate::shared::{FileForm, Mapping};
use core::ffi::{CStr, c_int};
use core::ptr::NonNull;

/// A region that `vmmopen` made, opened from its file.
///
/// Each call waits until no process is in the region, and finds anew what is free if one ended
/// there. Source: vmalloc(3), `vmmopen`.
pub struct SharedRegion {
    mapping: Mapping,
    data: NonNull<Data<State>>,
    holder: Option<Holder>,
}

impl SharedRegion {
    /// Opens the region in a file, which exists.
    ///
    /// # Errors
    /// A number of `errno`: `EINVAL` if it holds no region, or is cut off; `EADDRINUSE` if
    /// something else lies at the region's addresses; and those of the system.
    pub fn open(path: &CStr) -> Result<SharedRegion, c_int> {
        let mapping = Mapping::of_file(path, FileForm::default())?;
        let data = mapping.existing(Best::MODE).ok_or(libc::EINVAL)?;
        // SAFETY: the core data is mapped as long as the mapping exists.
        let lock = unsafe { data.as_ref() }.lock();
        let holder = lock.holder();
        let mut region = SharedRegion { mapping, data: data.cast(), holder };
        region.begin();
        Ok(region)
    }

    /// Makes the region whole if no other process has it, because nobody else does.
    fn begin(&mut self) {
        if self.mapping.is_alone() {
            // SAFETY: the core data is mapped as long as the mapping exists.
            unsafe { self.data.as_ref() }.head.begin_again();
            self.enter(|call| call.recover());
        }
        self.mapping.ready();
    }

    /// Returns the process that was in the region when it was opened, or ended there.
    pub fn holder(&self) -> Option<Holder> {
        self.holder
    }

    /// Returns where the region lies in each process.
    pub fn base(&self) -> usize {
        self.mapping.base()
    }

    /// Returns how many bytes the region can grow to.
    pub fn room(&self) -> usize {
        self.mapping.room()
    }

    /// Counts blocks and segments.
    pub fn stat(&mut self) -> Stat {
        self.enter(|call| call.stat())
    }

    /// Calls `see` with address and size of each block in use.
    pub fn for_each_block(&mut self, see: &mut dyn FnMut(usize, usize)) {
        self.enter(|call| Best::blocks(call, see));
    }

    /// Returns whether the words between all blocks are whole.
    pub fn is_whole(&mut self) -> bool {
        self.enter(Best::check) == Some(0)
    }

    /// Gives free pages at the end back to the file system.
    pub fn compact(&mut self) {
        self.enter(Best::compact);
    }

    fn enter<T>(&mut self, f: impl FnOnce(&mut Call<'_, Best, Mapping>) -> T) -> T {
        // SAFETY: the core data is mapped as long as the mapping exists.
        let lock = unsafe { self.data.as_ref() }.head.lock();
        // This thread is in no call, because `&mut self` keeps others out.
        lock.enter(Entry::Processes);
        // SAFETY: the region has this method, and the lock is held.
        let mut call = unsafe { Call::new(self.data, &mut self.mapping) };
        if lock.is_damaged() {
            call.recover();
        }
        let result = f(&mut call);
        lock.leave(Entry::Processes);
        result
    }
}
