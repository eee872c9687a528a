//! A file that stays open, so that it is written to also where the program may open no file any
//! more: after a change of its user or its root directory, or without a free descriptor.

use crate::process::thread_id;
use core::ffi::c_int;
use lumalloc::system_calls;

/// The descriptor of a file, with a number that programs do not reach, or none. A program may close
/// descriptors that it did not open, and get the number again. So it counts only while it leads to
/// the same file, and while that has a name.
#[derive(Clone, Copy)]
struct Descriptor {
    number: c_int,
    /// The device and the inode of the file.
    file: (u64, u64),
}

impl Descriptor {
    const NONE: Descriptor = Descriptor { number: -1, file: (0, 0) };

    /// Returns a new descriptor of an open file. It is closed at exec. There is none if the file
    /// has no name, or the system no such number.
    fn of(descriptor: c_int) -> Descriptor {
        let Some((device, inode, true)) = system_calls::identity(descriptor) else {
            return Descriptor::NONE;
        };
        let file = (device, inode);
        system_calls::duplicate_high(descriptor)
            .map_or(Descriptor::NONE, |number| Descriptor { number, file })
    }

    fn is_none(&self) -> bool {
        self.number < 0
    }

    /// Returns whether the file has a name. `None`: the descriptor does not lead to it in the
    /// calling thread's table.
    fn has_name(&self) -> Option<bool> {
        // -1 is no descriptor, so it has no identity.
        let (device, inode, has_name) = system_calls::identity(self.number)?;
        ((device, inode) == self.file).then_some(has_name)
    }

    /// Closes the descriptor, if it still leads to the file. A file without a name is closed too:
    /// otherwise its space on the disk would be lost for as long as the process runs. Returns
    /// whether it led there.
    fn close(&self) -> bool {
        let leads_there = self.has_name().is_some();
        if leads_there {
            system_calls::close(self.number);
        }
        leads_there
    }
}

/// Tables of descriptors that threads of a process have: the program's, and that of the threads of
/// a preloaded exporter.
const TABLES: usize = 2;

/// A file that is kept open in one table of descriptors, or no file. Threads of the other table
/// open it for each piece. One that they left open could be closed by them alone. They may sleep
/// when the file is ended, and its space on the disk would not be free before they wake.
pub(crate) struct Kept {
    open: Descriptor,
    /// The thread that keeps it.
    thread: libc::pid_t,
    /// Descriptors of earlier files that another table still has, because a thread of this one
    /// closed the file.
    left: [Descriptor; TABLES],
}

impl Kept {
    /// No file.
    pub(crate) const NONE: Kept =
        Kept { open: Descriptor::NONE, thread: 0, left: [Descriptor::NONE; TABLES] };

    /// Keeps an open file, whose own descriptor may be closed then, in place of the present one.
    /// Keeps none if there is no descriptor for it.
    pub(crate) fn set(&mut self, descriptor: c_int) {
        self.close();
        self.open = Descriptor::of(descriptor);
        self.thread = thread_id();
    }

    /// Notes that the file was opened once more. It is kept again where the calling thread has kept
    /// it before: the program has closed that descriptor.
    pub(crate) fn opened_again(&mut self, descriptor: c_int) {
        self.close_left();
        if self.thread == thread_id() {
            self.open.close();
            self.open = Descriptor::of(descriptor);
        }
    }

    /// Returns the descriptor, if the calling thread's table has it, it still leads to the file,
    /// and the file has a name.
    pub(crate) fn get(&self) -> Option<c_int> {
        (self.open.has_name() == Some(true)).then_some(self.open.number)
    }

    /// Closes the file. If another table has the descriptor, it stays open until a thread of that
    /// table begins, ends or writes to a later file.
    pub(crate) fn close(&mut self) {
        self.close_left();
        let open = core::mem::replace(&mut self.open, Descriptor::NONE);
        if open.is_none() || open.close() {
            return;
        }
        // Those of a table that is gone, as a forked child's parent's, make room.
        let free = self.left.iter().position(Descriptor::is_none).unwrap_or(0);
        self.left[free] = open;
    }

    fn close_left(&mut self) {
        for left in self.left.iter_mut().filter(|left| !left.is_none()) {
            if left.close() {
                *left = Descriptor::NONE;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::sync::{Barrier, Mutex};

    #[test]
    fn a_file_is_kept_until_it_is_closed_or_has_no_name() {
        let name = |which: &str| {
            std::env::temp_dir().join(std::format!("lumalloc-kept-{which}-{}", std::process::id()))
        };
        let (one, other) = (name("one"), name("other"));
        let file = std::fs::File::create(&one).expect("a file");
        let mut kept = Kept::NONE;
        kept.set(file.as_raw_fd());
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

        kept.set(file.as_raw_fd());
        let number = kept.get().expect("it is open");
        std::fs::remove_file(&other).expect("the file is there");
        assert_eq!(kept.get(), None);
        kept.close();
        // SAFETY: the call takes no pointers.
        assert_eq!(unsafe { libc::fcntl(number, libc::F_GETFD) }, -1, "it is closed all the same");
        kept.set(-1);
        assert_eq!(kept.get(), None);
        std::fs::remove_file(one).expect("the file is there");
    }

    #[test]
    fn a_file_is_kept_in_one_table_of_descriptors() {
        let name = |which: &str| {
            std::env::temp_dir().join(std::format!("lumalloc-table-{which}-{}", std::process::id()))
        };
        let (one, other) = (name("one"), name("other"));
        let create = |path| std::fs::File::create(path).expect("a file");
        // Other tests have the same table and take the same numbers.
        let leads_to = |number, path: &std::path::PathBuf| {
            let file = std::fs::metadata(path).expect("the file is there");
            let its = system_calls::identity(number);
            its.is_some_and(|(device, inode, _)| (device, inode) == (file.dev(), file.ino()))
        };
        const NONE: core::ffi::c_uint = core::ffi::c_uint::MAX;
        const HOW: core::ffi::c_uint = libc::CLOSE_RANGE_UNSHARE;
        // SAFETY: the call takes only numbers, closes nothing, and changes the table of the calling
        // thread alone.
        let unshare = || unsafe { libc::syscall(libc::SYS_close_range, NONE, NONE, HOW) } == 0;
        if !std::thread::spawn(unshare).join().expect("no panic") {
            std::eprintln!("not tried: a thread with its own descriptors: the system has none");
            return;
        }
        let (kept, step) = (Mutex::new(Kept::NONE), Barrier::new(2));
        let kept = || kept.lock().expect("no panic");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(unshare());
                kept().set(create(&one).as_raw_fd());
                step.wait();
                step.wait();
                assert!(kept().get().is_some(), "another table has left it open");
                kept().close();
            });
            step.wait();
            assert_eq!(kept().get(), None, "it is open in the thread's table");
            kept().opened_again(create(&one).as_raw_fd());
            assert_eq!(kept().get(), None, "the thread could not close it");
            step.wait();
        });
        assert!(kept().open.is_none() && kept().left.iter().all(Descriptor::is_none));

        kept().set(create(&one).as_raw_fd());
        let number = kept().get().expect("it is open here");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(unshare());
                system_calls::close(number);
                kept().close();
            });
        });
        assert!(leads_to(number, &one), "the thread cannot close it");
        kept().set(create(&other).as_raw_fd());
        assert!(!leads_to(number, &one), "it is closed before the next file is kept");
        let number = kept().get().expect("it is open here");
        assert!(leads_to(number, &other));
        system_calls::close(number);
        kept().opened_again(create(&other).as_raw_fd());
        let number = kept().get().expect("the thread has kept it before");
        kept().close();
        assert!(!leads_to(number, &other) && kept().left.iter().all(Descriptor::is_none));
        std::fs::remove_file(one).expect("the file is there");
        std::fs::remove_file(other).expect("the file is there");
    }
}
