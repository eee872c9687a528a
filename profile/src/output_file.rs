//! Files that are written whole: they have their names once nothing is missing.

use crate::file::{
    File, Kind, PRIVATE, ToFile, USUAL, descriptor_of, kind, regular, remove, rename, to_descriptor,
};
use crate::kept_file::Kept;
use crate::path::Path;
use crate::process::{keep_errno, process_id};
use crate::sink::Sink;
use core::ffi::{CStr, c_int};
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is appended to a path while its file is written.
const UNFINISHED: &[u8] = b".tmp";
/// How many names of unfinished files may be taken before there is an error.
pub(crate) const MOST_TAKEN: usize = 1000;

/// Returns a name that a file may have until it is whole. `None`: it is too long.
pub(crate) fn unfinished(path: &CStr, number: usize) -> Option<Path> {
    let mut unfinished = Path::new();
    unfinished.push(path.to_bytes())?;
    if number > 0 {
        unfinished.push(b".")?.push_number(number as u64)?;
    }
    unfinished.push(UNFINISHED)?;
    Some(unfinished)
}

/// Creates a file with these bytes where there is none, and keeps it open. It will take the place
/// of `path`, and gets its mode. Without a file there, nobody but the user of the process can read
/// it.
///
/// # Errors
/// The system's error number: `EEXIST` if there is a file. Otherwise there is none.
pub(crate) fn create(
    kept: &mut Kept,
    unfinished: &CStr,
    path: &CStr,
    bytes: &[u8],
) -> Result<(), c_int> {
    keep_errno(|| {
        let how = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        let file = File::open_with_mode(unfinished, how, PRIVATE)?;
        // It may be opened again to append to it.
        file.resemble(path, libc::S_IWUSR);
        match file.write_at(0, bytes) {
            Ok(()) => {
                // In the child of a fork the present one leads to the parent's file.
                kept.set(file.0);
                Ok(())
            }
            Err(error) => {
                remove(unfinished);
                Err(error)
            }
        }
    })
}

/// Appends bytes to a file of which so many bytes are valid: to the kept one, or else to that of
/// the path.
///
/// # Errors
/// The system's error number. The file has its valid bytes then.
pub(crate) fn append(kept: &mut Kept, path: &CStr, at: u64, bytes: &[u8]) -> Result<(), c_int> {
    keep_errno(|| match kept.get() {
        Some(descriptor) => ManuallyDrop::new(File(descriptor)).write_at(at, bytes),
        None => {
            let file = File::open(path, libc::O_WRONLY)?;
            file.write_at(at, bytes)?;
            kept.opened_again(file.0);
            Ok(())
        }
    })
}

/// Gives a file that is whole its name.
///
/// # Errors
/// The system's error number.
pub(crate) fn complete(unfinished: &CStr, path: &CStr) -> Result<(), c_int> {
    keep_errno(|| {
        if let Ok(file) = File::open(unfinished, libc::O_WRONLY | libc::O_NOFOLLOW) {
            file.resemble(path, 0);
        }
        rename(unfinished, path)
    })
}

/// Where a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The program, or its user, gave it.
    Given,
    /// It was made up, of a prefix and numbers.
    MadeUp,
}

/// Writes a file. It has its name only once it is whole. Until then the number of the process,
/// another number and `.tmp` follow the name, so that two writers of one name do not meet: the file
/// of the one that ends last stays. It has the mode of the file that it replaces.
///
/// Under a name that the program gave, a device, a pipe and what a symbolic link leads to are
/// written to directly, as `/dev/stdout`; a pipe that nobody reads is an error, `ENXIO`. A regular
/// file that is standard output or error is written to by that descriptor, whatever name leads to
/// it, so that what is there stays. Under one that was made up the file takes their place, because
/// others may know such a name before.
///
/// # Errors
/// The system's error number. The file of that name is then as it was before, unless it was written
/// to directly.
pub fn write_whole(
    path: &CStr,
    name: Name,
    write: impl FnOnce(&mut dyn Sink) -> bool,
) -> Result<(), c_int> {
    if name == Name::Given {
        if let Some(descriptor) = descriptor_of(path) {
            return to_descriptor(descriptor, write);
        }
        if matches!(kind(path), Kind::Link | Kind::Special) {
            return write_directly(path, write);
        }
    }
    keep_errno(|| {
        let mut unfinished = Path::new();
        let file = create_unfinished(path, &mut unfinished)?;
        let unfinished = unfinished.as_c_str();
        file.resemble(path, 0);
        let mut sink = ToFile { file: &file, error: None, is_ours: true };
        let is_whole = write(&mut sink);
        let error = sink.error;
        drop(file);
        let moved = match error {
            None if !is_whole => Err(libc::EIO),
            None => rename(unfinished, path),
            Some(error) => Err(error),
        };
        if moved.is_err() {
            remove(unfinished);
        }
        moved
    })
}

fn write_directly(path: &CStr, write: impl FnOnce(&mut dyn Sink) -> bool) -> Result<(), c_int> {
    const HOW: c_int = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
    let file = keep_errno(|| File::open(path, HOW).inspect(File::let_writes_wait))?;
    to_descriptor(file.0, write)
}

/// Creates a file that no other writer has, and sets its name. If it is to take the place of a
/// regular file, nobody else can open it before it has the mode of that one: who has opened a file
/// reads what is written to it later, whatever its mode is then.
fn create_unfinished(path: &CStr, name: &mut Path) -> Result<File, c_int> {
    const HOW: c_int = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mode = if regular(path).is_some() { PRIVATE } else { USUAL };
    for _ in 0..MOST_TAKEN {
        // A process that had this number may have left such a file, here or in a container.
        name_unfinished(path, NEXT.fetch_add(1, Relaxed), name).ok_or(libc::ENAMETOOLONG)?;
        match File::open_with_mode(name.as_c_str(), HOW, mode) {
            Err(libc::EEXIST) => {}
            file => return file,
        }
    }
    Err(libc::EEXIST)
}

fn name_unfinished(path: &CStr, number: u64, name: &mut Path) -> Option<()> {
    name.clear();
    name.push(path.to_bytes())?.push(b".")?.push_number(u64::from(process_id()))?;
    name.push(b".")?.push_number(number)?.push(UNFINISHED).map(|_| ())
}

#[cfg(test)]
#[allow(unsafe_code)] // one test runs as another user
mod tests {
    use super::*;
    use crate::file::{for_each_piece, read_at};
    use crate::path::LONGEST_PATH;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    fn directory(name: &str) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(std::format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        directory
    }

    fn names(directory: &std::path::Path) -> std::vec::Vec<std::string::String> {
        let entries = std::fs::read_dir(directory).expect("the directory");
        let name = |entry: std::fs::DirEntry| entry.file_name().into_string().expect("text");
        entries.map(|entry| name(entry.expect("an entry"))).collect()
    }

    fn c_path(path: &std::path::Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).expect("a path")
    }

    #[test]
    fn a_file_without_readers_can_be_written_again() {
        let directory = directory("written-again");
        let path = directory.join("x");
        let mut begins = std::vec::Vec::new();
        let mut write = |sink: &mut dyn Sink| {
            begins.push(sink.put(b"the first") && sink.begin_again());
            sink.put(b"second")
        };
        assert_eq!(write_whole(&c_path(&path), Name::Given, &mut write), Ok(()));
        assert_eq!(std::fs::read(&path).expect("the file"), b"second");
        let link = directory.join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert_eq!(write_whole(&c_path(&link), Name::Given, &mut write), Ok(()));
        assert_eq!(std::fs::read(&path).expect("the file"), b"the firstsecond");
        assert_eq!(begins, [true, false]);
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn a_file_has_its_name_once_it_is_whole() {
        let directory = directory("lumalloc-whole");
        let path = directory.join("profile");
        let names = || names(&directory);
        write_whole(&c_path(&path), Name::Given, |sink| {
            let unfinished = std::format!("profile.{}.", std::process::id());
            let [name] = &names()[..] else { panic!("{:?}", names()) };
            assert!(name.starts_with(&unfinished) && name.ends_with(".tmp"), "{name}");
            sink.put(b"one ") && sink.put(b"two")
        })
        .expect("a file");
        assert_eq!(std::fs::read(&path).expect("the file"), b"one two");
        assert_eq!(write_whole(&c_path(&path), Name::Given, |_| false), Err(libc::EIO));
        assert_eq!(std::fs::read(&path).expect("the file"), b"one two");
        let mut seen = std::vec::Vec::new();
        for_each_piece(&c_path(&path), |piece| seen.extend_from_slice(piece)).expect("contents");
        assert_eq!(seen, b"one two");
        let mut part = [0; 3];
        assert_eq!(read_at(&c_path(&path), 4, &mut part).map(|()| part), Some(*b"two"));
        assert_eq!(read_at(&c_path(&path), 5, &mut part), None);
        assert_eq!(names(), ["profile"]);
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn what_is_no_file_is_written_to_unless_the_name_was_made_up() {
        use std::io::Read;
        use std::os::unix::fs::FileTypeExt;
        const MORE_THAN_A_PIPE_HOLDS: usize = 200_000;
        let directory = directory("lumalloc-special");
        let [pipe, link, file] = ["pipe", "link", "file"].map(|name| directory.join(name));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let path = c_path(&pipe);
        let put = |sink: &mut dyn Sink| sink.put(&[7; MORE_THAN_A_PIPE_HOLDS]);
        assert_eq!(write_whole(&path, Name::Given, put), Err(libc::ENXIO), "nobody reads it");
        for_each_piece(&path, |piece| panic!("nobody wrote {piece:?}")).expect("a pipe");
        let mut reader = std::fs::File::options().read(true).write(true).open(&pipe).expect("it");
        let writer = std::thread::spawn(move || write_whole(&path, Name::Given, put));
        let mut read = std::vec![0; MORE_THAN_A_PIPE_HOLDS];
        reader.read_exact(&mut read).expect("what comes in");
        assert!(read.iter().all(|byte| *byte == 7));
        assert_eq!(writer.join().expect("no panic"), Ok(()));
        assert!(std::fs::metadata(&pipe).expect("the pipe").file_type().is_fifo());
        std::os::unix::fs::symlink("file", &link).expect("a link");
        for text in [&b"longer"[..], b"short"] {
            write_whole(&c_path(&link), Name::Given, |sink| sink.put(text)).expect("written");
            assert_eq!(std::fs::read(&file).expect("the file"), text);
        }
        assert!(std::fs::symlink_metadata(&link).expect("the link").is_symlink());
        let before = std::fs::metadata(&file).expect("the file").len();
        for place in [&pipe, &link] {
            write_whole(&c_path(place), Name::MadeUp, |sink| sink.put(b"own")).expect("written");
            assert!(std::fs::symlink_metadata(place).expect("the file").is_file());
            assert_eq!(std::fs::read(place).expect("the file"), b"own");
        }
        assert_eq!(std::fs::metadata(&file).expect("the file").len(), before);
        std::fs::remove_dir_all(&directory).expect("removed");
        assert_eq!(
            write_whole(c"/dev/full", Name::Given, |sink| sink.put(b"x")),
            Err(libc::ENOSPC)
        );
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let directory = directory("lumalloc-mode");
        let [path, name] = ["profile", "profile.tmp"].map(|name| directory.join(name));
        let mode = |path: &std::path::Path| {
            std::fs::metadata(path).expect("the file").permissions().mode() & 0o7777
        };
        let set = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("a mode");
        };
        let put = |sink: &mut dyn Sink| sink.put(b"x");
        write_whole(&c_path(&path), Name::Given, put).expect("a file");
        let usual = mode(&path);
        assert_eq!(usual & !0o644, 0, "{usual:o}");
        let mut kept = Kept::NONE;
        let none = c_path(&directory.join("none"));
        create(&mut kept, &c_path(&name), &none, b"x").expect("a file");
        assert_eq!(mode(&name), 0o600);
        std::fs::remove_file(&name).expect("removed");
        for wanted in [0o600, 0o640, 0o666, 0o444] {
            set(wanted);
            let mut unfinished = Path::new();
            create_unfinished(&c_path(&path), &mut unfinished).expect("a file");
            let unfinished = unfinished.as_c_str().to_str().expect("text");
            assert_eq!(mode(unfinished.as_ref()), 0o600, "nobody else opens it at first");
            std::fs::remove_file(unfinished).expect("removed");
            write_whole(&c_path(&path), Name::Given, |sink| {
                let names = names(&directory);
                let unfinished = names.iter().find(|name| name.ends_with(".tmp"));
                let unfinished = directory.join(unfinished.expect("the unfinished file"));
                assert_eq!(mode(&unfinished), wanted, "nobody else can read it before");
                sink.put(b"x")
            })
            .expect("a file");
            assert_eq!(mode(&path), wanted);
            create(&mut kept, &c_path(&name), &c_path(&path), b"x").expect("a file");
            assert_eq!(mode(&name), wanted | 0o200);
            kept.close();
            append(&mut kept, &c_path(&name), 1, b"y").expect("appended");
            assert!(kept.get().is_some(), "it stays open");
            complete(&c_path(&name), &c_path(&path)).expect("a name");
            assert_eq!(mode(&path), wanted);
        }
        set(0o4755);
        write_whole(&c_path(&path), Name::Given, put).expect("a file");
        assert_eq!(mode(&path), 0o755, "it runs as nobody else");
        // Only root can give the file to another user.
        let _ = std::os::unix::fs::chown(&path, Some(65534), Some(65534));
        let owner = || {
            let status = std::fs::metadata(&path).expect("the file");
            (status.uid(), status.gid(), mode(&path))
        };
        let before = owner();
        write_whole(&c_path(&path), Name::Given, put).expect("a file");
        assert_eq!(owner(), before);
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn a_file_of_another_group_gives_it_no_rights() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        const NOBODY: u32 = 65534;
        let directory = directory("lumalloc-group");
        let all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&directory, all).expect("a mode");
        let path = directory.join("profile");
        for (mode, expected) in [(0o640, 0o600), (0o664, 0o644), (0o604, 0o600), (0o755, 0o755)] {
            std::fs::write(&path, "").expect("a file");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
            if chown(&path, Some(1), Some(1)).is_err() {
                // Only root can make a file whose group it cannot give to a file as another user.
                break;
            }
            let path = path.clone();
            let as_nobody = std::thread::spawn(move || {
                // SAFETY: the calls change the user of this thread for files alone.
                unsafe { libc::setfsgid(NOBODY) };
                // SAFETY: as above.
                unsafe { libc::setfsuid(NOBODY) };
                write_whole(&c_path(&path), Name::Given, |sink| sink.put(b"x")).expect("a file");
                let status = std::fs::metadata(&path).expect("the file");
                (status.uid(), status.gid(), status.mode() & 0o7777)
            });
            assert_eq!(as_nobody.join().expect("no panic"), (NOBODY, NOBODY, expected));
        }
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn two_writers_of_one_name_do_not_meet() {
        let directory = directory("lumalloc-writers");
        let path = c_path(&directory.join("profile"));
        write_whole(&path, Name::Given, |outer| {
            let is_put = outer.put(b"outer ");
            write_whole(&path, Name::Given, |inner| inner.put(b"inner")).expect("a file");
            let read = std::fs::read(directory.join("profile")).expect("the file");
            assert_eq!(read, b"inner");
            is_put && outer.put(b"whole")
        })
        .expect("a file");
        assert_eq!(std::fs::read(directory.join("profile")).expect("the file"), b"outer whole");
        assert_eq!(names(&directory), ["profile"]);
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn a_file_that_another_process_left_is_not_written_to() {
        let directory = directory("lumalloc-left");
        let path = c_path(&directory.join("profile"));
        let mut first = Path::new();
        create_unfinished(&path, &mut first).expect("a file");
        let number = first.as_c_str().to_str().expect("text").rsplit('.').nth(1);
        let number: u64 = number.expect("a number").parse().expect("a number");
        // Other tests take numbers too.
        let taken = (number + 1..number + 100).map(|number| {
            let mut name = Path::new();
            name_unfinished(&path, number, &mut name).expect("a name");
            name
        });
        let taken: std::vec::Vec<Path> = taken.collect();
        taken.iter().for_each(|name| {
            let mut kept = Kept::NONE;
            create(&mut kept, name.as_c_str(), &path, b"left").expect("a file");
            kept.close();
        });
        write_whole(&path, Name::Given, |sink| sink.put(b"new")).expect("a file");
        assert_eq!(std::fs::read(directory.join("profile")).expect("the file"), b"new");
        for name in taken {
            let name = name.as_c_str().to_str().expect("text");
            assert_eq!(std::fs::read(name).expect("the file"), b"left", "{name}");
        }
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn errors_are_the_system_s() {
        let put = |sink: &mut dyn Sink| sink.put(b"x");
        assert_eq!(write_whole(c"/nowhere/at/all", Name::Given, put), Err(libc::ENOENT));
        let long = CString::new([b'x'; LONGEST_PATH]).expect("a path");
        assert_eq!(write_whole(&long, Name::Given, put), Err(libc::ENAMETOOLONG));
        let mut seen = 0;
        assert_eq!(for_each_piece(c"/nowhere/at/all", |_| seen += 1), Err(libc::ENOENT));
        assert_eq!(for_each_piece(c"/", |_| seen += 1), Err(libc::EISDIR));
        assert_eq!(seen, 0);
    }
}
