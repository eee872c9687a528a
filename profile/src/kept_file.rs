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
        let Some((device, inode, true)) = system_calls::identity(descriptor) else {
            return Kept::NONE;
        };
        let file = (device, inode);
        system_calls::duplicate_high(descriptor).map_or(Kept::NONE, |number| Kept { number, file })
    }

    /// Returns the descriptor, if it still leads to the file, and the file has a name.
    pub(crate) fn get(&self) -> Option<c_int> {
        (self.has_name() == Some(true)).then_some(self.number)
    }

    /// Closes the descriptor, if it still leads to the file. A file without a name is closed too:
    /// otherwise its space on the disk would be lost for as long as the process runs.
    pub(crate) fn close(&mut self) {
        if self.has_name().is_some() {
            system_calls::close(self.number);
        }
        *self = Kept::NONE;
    }

    /// Returns whether the file has a name. `None`: the descriptor does not lead to it any more.
    fn has_name(&self) -> Option<bool> {
        // -1 is no descriptor, so it has no identity.
        let (device, inode, has_name) = system_calls::identity(self.number)?;
        ((device, inode) == self.file).then_some(has_name)
    }
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
        kept.close();
        // SAFETY: the call takes no pointers.
        assert_eq!(unsafe { libc::fcntl(number, libc::F_GETFD) }, -1, "it is closed all the same");
        assert_eq!(Kept::of(-1).get(), None);
        std::fs::remove_file(one).expect("the file is there");
    }
}
