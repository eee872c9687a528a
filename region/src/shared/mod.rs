//! Memory that processes share and that outlives them: a file, or a segment of System V. Source:
//! vmalloc(3), `vmmopen`.
//!
//! ```text
//!   base                FRONT                             limit                 window
//!     │ front, one page   │ core data │ blocks  │ not used  │ only addresses      │
//!                                               │ the end of the file, which grows
//! ```
//!
//! All addresses of the window are mapped from the start, so a region that one process lets grow
//! has grown for all. A region lies at the same address in each process, because programs keep
//! pointers in it; the region itself would work at any.

mod file;
mod front;
mod growth;
mod maps;
mod making;
mod memory;
mod segment;

use crate::data::Head;
use core::ffi::{CStr, c_int};
use core::ptr::NonNull;
use file::{File, Locked};
use front::{FRONT, Found, Front, Place};
use making::claim;
use segment::Identity;

pub use making::{LOCKED, when_made};
pub use memory::any_address;

/// The least bytes of a region.
const LEAST: usize = 64 * lumalloc::PAGE;

/// What holds the memory.
enum Backing {
    File(File),
    Segment(Identity),
}

/// The memory of a shared region in this process.
pub struct Mapping {
    start: usize,
    window: usize,
    backing: Backing,
    /// Whether the region is still to be made.
    is_new: bool,
    /// Whether no other process has the region, as far as is known.
    is_alone: bool,
    /// How many bytes the region is to have room for once it is accepted.
    wanted: usize,
}

/// A file or a segment, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Device and number of a file.
    File(u64, u64),
    /// The number of a segment of System V.
    Segment(c_int),
}

/// What a file of a region is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileForm {
    /// Where the region is to lie, or 0. A region that exists lies where it did.
    pub base: usize,
    /// How many bytes it has room for, at least.
    pub size: usize,
    /// Whether it can grow as far as there are addresses.
    pub grows: bool,
    /// Whether it exists already. Then no file is made, and none is changed.
    pub exists: bool,
}

impl Mapping {
    /// Maps the region that lies in a file. Makes the file if there is none; it is removed again if
    /// the region does not get ready. Returns `None` while another process makes the region: see
    /// [`when_made`].
    ///
    /// # Errors
    /// A number of `errno`: `EINVAL` if the file holds something else, or was cut off;
    /// `EADDRINUSE` if something else lies at the region's addresses. [`LOCKED`].
    pub fn of_file(path: &CStr, form: FileForm) -> Result<Option<Mapping>, c_int> {
        let file = if form.exists { File::open_existing(path)? } else { File::open(path)? };
        Mapping::of_open_file(file, path, form)
    }

    fn of_open_file(file: File, path: &CStr, form: FileForm) -> Result<Option<Mapping>, c_int> {
        let Some((found, is_alone)) = claim(&file)? else { return Ok(None) };
        match found {
            Found::Foreign => Err(libc::EINVAL),
            // A process that had the file has removed it since it was opened here.
            _ if file::identity_of(path) != Some(file.identity()) => Ok(None),
            Found::Region(place) => Mapping::of_old_file(file, place, is_alone, form).map(Some),
            Found::Nothing if form.exists => Err(libc::EINVAL),
            Found::Nothing => {
                file.remove_if_made();
                Mapping::of_new_file(file, form).map(Some)
            }
        }
    }

    fn of_old_file(
        file: File,
        place: Place,
        is_alone: bool,
        form: FileForm,
    ) -> Result<Mapping, c_int> {
        let differs = form.base != 0 && form.base != place.base;
        if differs || file.length().ok_or(libc::EBADF)? < FRONT + lumalloc::PAGE {
            return Err(libc::EINVAL);
        }
        let (start, window) = map_old_file(&file, place, is_alone, form)?;
        let backing = Backing::File(file);
        let mut mapping = Mapping { start, window, backing, is_new: false, is_alone, wanted: 0 };
        mapping.wanted = mapping.room_for(form)?;
        Ok(mapping)
    }

    fn of_new_file(file: File, form: FileForm) -> Result<Mapping, c_int> {
        let room = room(form.size).ok_or(libc::ENOMEM)?;
        if !form.base.is_multiple_of(lumalloc::PAGE) {
            return Err(libc::EINVAL);
        }
        file.write_start(front::MAKING)?;
        file.reserve(0, FRONT)?;
        let (start, window) = memory::map_window(&file, form, room)?;
        let backing = Backing::File(file);
        let mapping = Mapping { start, window, backing, is_new: true, is_alone: true, wanted: 0 };
        let limit = if form.grows { window - FRONT } else { room };
        mapping.front().take();
        mapping.front().place(Place { base: start, window, limit });
        Ok(mapping)
    }

    /// Attaches the region in the segment of a file and a project. Makes the segment if there is
    /// none. Returns `None` while another process makes the region.
    ///
    /// # Errors
    /// As for [`Mapping::of_file`].
    pub fn of_segment(path: &CStr, project: c_int, size: usize) -> Result<Option<Mapping>, c_int> {
        let bytes = room(size).and_then(|room| room.checked_add(FRONT)).ok_or(libc::ENOMEM)?;
        loop {
            let identity = Identity::of(path, project, bytes)?;
            let (window, _) = identity.status()?;
            if window < FRONT + lumalloc::PAGE {
                return Err(libc::EINVAL);
            }
            let found = look(&identity)?;
            let start = match found {
                Found::Foreign => return Err(libc::EINVAL),
                Found::Region(place) => identity.attach(place.base)?,
                Found::Nothing => identity.attach(any_address(window).unwrap_or(0))?,
            };
            let is_alone = identity.status().is_ok_and(|(_, attached)| attached == 1);
            let backing = Backing::Segment(identity);
            let mut mapping =
                Mapping { start, window, backing, is_new: false, is_alone, wanted: 0 };
            let Some(is_new) = mapping.front().claim() else { return Ok(None) };
            mapping.is_new = is_new;
            if mapping.is_new {
                mapping.front().place(Place { base: start, window, limit: window - FRONT });
                return Ok(Some(mapping));
            }
            if found != Found::Nothing {
                mapping.wanted = mapping.room_for(FileForm { size, ..FileForm::default() })?;
                return Ok(Some(mapping));
            }
            // Another process was faster, and has it elsewhere.
        }
    }

    /// Returns the numbers of the file or the segment.
    pub fn object(&self) -> Object {
        match &self.backing {
            Backing::File(file) => {
                let (device, inode) = file.identity();
                Object::File(device, inode)
            }
            Backing::Segment(identity) => Object::Segment(identity.number()),
        }
    }

    /// Returns where the core data of the region lies.
    pub fn data(&self) -> usize {
        self.start + FRONT
    }

    /// Returns the core data of a region that was made earlier, if it looks like that of a region
    /// with this method.
    pub fn existing(&self, method: u32) -> Option<NonNull<Head>> {
        let data = NonNull::new(core::ptr::with_exposed_provenance_mut::<Head>(self.data()))?;
        // SAFETY: the memory is mapped, the file is longer, and any bytes are a value.
        let head = unsafe { data.as_ref() };
        let is_sound = !self.is_new && head.is_intact(method) && head.is_shared(|| self.limit());
        is_sound.then_some(data)
    }

    /// Returns how many bytes the region can grow to.
    pub fn room(&self) -> usize {
        self.front().limit()
    }

    /// Returns where the region's pages begin.
    pub fn base(&self) -> usize {
        self.start
    }

    /// Returns whether the region lies in a file.
    pub fn is_file(&self) -> bool {
        matches!(self.backing, Backing::File(_))
    }

    /// Copies the path of the file, and returns its length: 0 for a segment. A longer path loses
    /// its beginning.
    pub fn path(&self, into: &mut [u8]) -> usize {
        match &self.backing {
            Backing::File(file) => file.path(self.start, into),
            Backing::Segment(_) => 0,
        }
    }

    /// Returns the most bytes that the region can have as long as its file.
    fn limit(&self) -> usize {
        let length = match &self.backing {
            Backing::File(file) => file.length().unwrap_or(0),
            Backing::Segment(_) => self.window,
        };
        length.saturating_sub(FRONT).min(self.front().limit())
    }

    /// Returns whether the region is still to be made, at [`Mapping::data`].
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns whether no other process had the region when it was opened.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Notes that the region was made or is whole, so that other processes may use it, and gives it
    /// the room that is wanted.
    pub fn ready(&self) {
        if self.is_alone {
            self.front().widen(self.window);
            self.note_file();
        }
        self.front().raise_limit(self.wanted);
        self.front().ready();
        if let Backing::File(file) = &self.backing {
            file.keep_when_closed();
            file.lock(Locked::Together);
        }
    }

    /// Notes in which file the region lies. Nobody else has it.
    fn note_file(&self) {
        if let Backing::File(file) = &self.backing {
            self.front().note_file(file.identity());
        }
    }

    /// Returns whether the file is a copy of the one in which the region was used last.
    pub(crate) fn is_copy(&self) -> bool {
        match &self.backing {
            Backing::File(file) => self.front().is_copied_to(file.identity()),
            Backing::Segment(_) => false,
        }
    }

    /// Lets the end of the mapping remove the file, if it was made for this mapping.
    pub fn remove_if_made(&self) {
        if let Backing::File(file) = &self.backing {
            file.remove_if_made();
        }
    }

    /// Lets the end of the mapping remove the file or the segment.
    pub fn remove_when_closed(&self) {
        match &self.backing {
            Backing::File(file) => file.remove_when_closed(),
            Backing::Segment(identity) => identity.remove_when_closed(),
        }
    }

    fn front(&self) -> &Front {
        // SAFETY: the page is mapped as long as the value exists.
        unsafe { Front::at(self.start) }
    }

    /// Lets the region of a file be as large as a form wants, if there are so many addresses.
    ///
    /// # Errors
    /// `ENOMEM`, a number of `errno`.
    pub fn make_room_for(&self, form: FileForm) -> Result<(), c_int> {
        self.front().raise_limit(self.room_for(form)?);
        Ok(())
    }

    /// Returns how many bytes a form wants room for, if there are so many addresses.
    fn room_for(&self, form: FileForm) -> Result<usize, c_int> {
        let most = self.window - FRONT;
        let wanted = room(form.size).filter(|room| *room <= most).ok_or(libc::ENOMEM)?;
        Ok(if form.grows { most } else { wanted })
    }

    /// Sees to it that the region can have so many bytes, of which it has `size`.
    fn reserve(&self, size: usize, new_size: usize) -> bool {
        match &self.backing {
            Backing::File(file) => {
                if self.front().is_ready() {
                    file.open_again(self.start);
                }
                file.reserve(FRONT + size, FRONT + new_size).is_ok()
            }
            Backing::Segment(_) => FRONT + new_size <= self.window,
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.is_new && !self.front().is_ready() {
            self.front().abandon();
        }
        match &self.backing {
            Backing::File(file) => {
                if file.is_removed_when_closed() && self.front().is_ready() {
                    file.open_again(self.start);
                }
                memory::unmap(self.start, self.window);
            }
            Backing::Segment(identity) => identity.detach(self.start),
        }
    }
}

/// Returns how many bytes a region has room for, if so many are wanted.
fn room(size: usize) -> Option<usize> {
    size.max(LEAST).checked_next_multiple_of(lumalloc::PAGE).filter(|size| *size <= 1 << 45)
}

/// Maps the region of a file. If nobody else has the region, it gets more addresses if a form wants
/// them and nothing else lies there. Returns where they begin, and how many there are.
fn map_old_file(
    file: &File,
    place: Place,
    is_alone: bool,
    form: FileForm,
) -> Result<(usize, usize), c_int> {
    let map = |window| memory::map_shared(place.base, window, file.descriptor());
    let room = room(form.size).unwrap_or(0);
    let is_short = form.grows || room > place.window.saturating_sub(FRONT);
    let wanted = memory::window_for(form, room);
    if is_alone
        && is_short
        && wanted > place.window
        && let Ok(start) = map(wanted)
    {
        return Ok((start, wanted));
    }
    Ok((map(place.window)?, place.window))
}

/// Reads the front of a segment, which is longer.
fn look(identity: &Identity) -> Result<Found, c_int> {
    let start = identity.attach(0)?;
    // SAFETY: the segment is attached, and longer.
    let found = unsafe { Found::at(start) };
    segment::detach(start);
    Ok(found)
}

/// Returns the numbers of the file, or for a project of at least 0 of the segment, if there is one.
pub fn object_of(path: &CStr, project: c_int) -> Option<Object> {
    if project < 0 {
        return file::identity_of(path).map(|(device, inode)| Object::File(device, inode));
    }
    Identity::find(path, project).ok().map(|identity| Object::Segment(identity.number()))
}

#[cfg(test)]
mod tests {
    use super::making::is_in_use;
    use super::*;
    use crate::owner;
    use crate::shared_region::SharedRegion;
    use std::ffi::CString;
    use std::vec;

    /// A path for a file of a test.
    fn path_of(name: &str) -> CString {
        let name = std::format!("lumalloc-{name}-{}", std::process::id());
        CString::new(std::env::temp_dir().join(name).into_os_string().into_encoded_bytes()).unwrap()
    }

    #[test]
    fn who_makes_a_region_or_is_in_it_is_seen_while_it_exists() {
        let path = path_of("in-use");
        let file = File::open(&path).unwrap();
        file.remove_when_closed();
        let (own, gone) = (owner::own(), owner::of_another_boot());
        for (state, lock, is_used) in [
            (own, 0, true),
            (gone, 0, false),
            (0, 0, false),
            (gone, own, true),
            (gone, own | 1 << 31, true),
            (gone, gone, false),
        ] {
            let mut words = vec![0; FRONT / 8 + 1];
            (words[0], words[1], words[FRONT / 8]) = (front::MAKING, state, lock);
            let bytes: vec::Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            std::fs::write(path.to_str().unwrap(), bytes).unwrap();
            assert_eq!(is_in_use(&file), Ok(is_used), "{state:x} {lock:x}");
        }
    }

    #[test]
    fn a_file_that_was_removed_after_it_was_opened_is_not_used() {
        let path = path_of("removed");
        let make = || SharedRegion::open_or_make(&path, 0).unwrap();
        let form = FileForm { exists: true, ..FileForm::default() };
        drop(make());
        let old = File::open_existing(&path).unwrap();
        make().remove_when_closed();
        let mut new = make();
        assert!(matches!(Mapping::of_open_file(old, &path, form), Ok(None)));
        new.remove_when_closed();
    }

    #[test]
    fn a_file_of_whose_first_words_a_bit_has_changed_is_refused() {
        let path = path_of("changed");
        drop(SharedRegion::open_or_make(&path, 1 << 20).unwrap());
        let whole = std::fs::read(path.to_str().unwrap()).unwrap();
        // Where the region lies, how many addresses it has, and its room.
        for at in 16..40 {
            let mut wrong = whole.clone();
            wrong[at] ^= 1 << (at % 8);
            std::fs::write(path.to_str().unwrap(), &wrong).unwrap();
            assert_eq!(SharedRegion::open(&path).err(), Some(libc::EINVAL), "{at}");
            assert!(std::fs::read(path.to_str().unwrap()).unwrap() == wrong);
        }
        std::fs::write(path.to_str().unwrap(), whole).unwrap();
        SharedRegion::open(&path).unwrap().remove_when_closed();
    }

    #[test]
    fn a_region_grows_to_the_room_that_is_promised() {
        if crate::limits::addresses().is_some() {
            std::eprintln!("not tried: the process has a limit of addresses");
            return;
        }
        let path = path_of("room");
        for (made, most) in [(1 << 20, 64 << 20), (8 << 20, 128 << 20)] {
            let form = |size| FileForm { size, ..FileForm::default() };
            let mapping = Mapping::of_file(&path, form(made)).unwrap().unwrap();
            assert_eq!(mapping.make_room_for(form(most + 1)), Err(libc::ENOMEM));
            assert_eq!(mapping.make_room_for(form(most)), Ok(()));
            assert_eq!(mapping.room(), most);
        }
        let form = FileForm { grows: true, ..FileForm::default() };
        assert_eq!(Mapping::of_file(&path, form).unwrap().unwrap().room(), 16 << 30);
    }
}
