//! A file that stays open, so that it is written to also where the program may open no file any
//! more: after a change of its user or its root directory, or without a free descriptor.

use core::ffi::c_int;
use lumalloc::system_calls;

/// The descriptor of a file, with a number that programs do not reach, or none. A program may close
/// descriptors that it did not open, and get the number again. So it counts only while it leads to
/// the same file, and while that has a name.
pub(crate) struct Kept {
    number: c_int,
    /// The device and the inode of the file.
    file: (u64, u64),
}

impl Kept {
    /// No file.
    pub(crate) const NONE: Kept = Kept { number: -1, file: (0, 0) };

    /// Keeps an open file, whose own descriptor may be closed then. Keeps none if there is no such
    /// number. It is closed at exec.
    pub(crate) fn of(descriptor: c_int) -> Kept {
        let Some(file) = file(descriptor) else { return Kept::NONE };
        system_calls::duplicate_high(descriptor).map_or(Kept::NONE, |number| Kept { number, file })
    }

    /// Returns the descriptor, if it still leads to the file.
    pub(crate) fn get(&self) -> Option<c_int> {
        let is_it = self.number >= 0 && file(self.number) == Some(self.file);
        is_it.then_some(self.number)
    }

    /// Closes the descriptor.
    pub(crate) fn close(&mut self) {
        if let Some(number) = self.get() {
            system_calls::close(number);
        }
        *self = Kept::NONE;
    }
}

/// Returns the device and the inode of a descriptor's file. `None`: there is none, or it has no
/// name any more.
fn file(descriptor: c_int) -> Option<(u64, u64)> {
    let (device, inode, has_name) = system_calls::identity(descriptor)?;
    has_name.then_some((device, inode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_file_is_kept_until_it_is_closed_or_has_no_name() {
        let name = |which: &str| {
            std::env::temp_dir().join(std::format!("lumalloc-kept-{which}-{}", std::process::id()))
        };
        let (one, other) = (name("one"), name("other"));
        let file = std::fs::File::create(&one).expect("a file");
        let mut kept = Kept::of(file.as_raw_fd());
        drop(file);
        let number = kept.get().expect("it is open");
        assert!(number > 40);
        // The program closes it, and the number is another file's.
        let file = std::fs::File::create(&other).expect("a file");
        // SAFETY: the descriptor is this test's.
        assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
        assert_eq!(kept.get(), None);
        kept.close();
        // SAFETY: the call takes no pointers.
        assert!(unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0, "it is the program's");
        system_calls::close(number);

        let mut kept = Kept::of(file.as_raw_fd());
        let number = kept.get().expect("it is open");
        std::fs::remove_file(&other).expect("the file is there");
        assert_eq!(kept.get(), None);
        system_calls::close(number);
        kept.close();
        assert_eq!(Kept::of(-1).get(), None);
        std::fs::remove_file(one).expect("the file is there");
    }
}
