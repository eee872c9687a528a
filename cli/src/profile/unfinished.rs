//! A file that is written beside the one that it will replace.
//!
//! Where the file system can, the file has no name until it is whole, so nothing is left of it if a
//! signal ends the process. Elsewhere a file may be left, which no later process touches. Nobody
//! else can open it before it has the mode of the file that it will replace.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that goes with this value, unless it gets its place.
pub(super) struct Unfinished {
    file: File,
    /// The name that it has.
    name: Option<PathBuf>,
}

/// How many names may be taken, by files that other processes left, before there is an error.
const MOST_TAKEN: u32 = 1000;

impl Unfinished {
    /// Makes the file that will be at this path.
    pub(super) fn beside(path: &Path) -> io::Result<Self> {
        if let Some(file) = unnamed(path) {
            return Ok(Self { file, name: None });
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(if path.exists() { 0o600 } else { 0o666 });
        let (name, file) = with_name(path, |name| options.open(name))?;
        Ok(Self { file, name: Some(name) })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file in its place.
    pub(super) fn finish(mut self, path: &Path) -> io::Result<()> {
        let name = match self.name.take() {
            Some(name) => name,
            None => with_name(path, |name| give_name(&self.file, name))?.0,
        };
        let name = self.name.insert(name);
        std::fs::rename(name, path)?;
        self.name = None;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = std::fs::remove_file(name);
        }
    }
}

/// Makes something with a name that nothing has in the directory of a path. In a container, another
/// process had the number of this one, and may have left a file.
fn with_name<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    for number in 0..MOST_TAKEN {
        let name = name(path, number);
        match make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (name, made)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A name in the same directory. The name may be as long as names can be, so only its first
/// characters are taken.
fn name(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(50).collect();
    path.with_file_name(format!(".{name}.{}.{number}", std::process::id()))
}

/// Makes a file without a name in the directory of a path. `None` where that does not work, and
/// where the file could get no name later.
fn unnamed(path: &Path) -> Option<File> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let mut options = OpenOptions::new();
    let file = options.write(true).custom_flags(libc::O_TMPFILE);
    let file = file.open(directory.unwrap_or(Path::new("."))).ok()?;
    Path::new(&descriptor(&file)).exists().then_some(file)
}

fn descriptor(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn give_name(file: &File, name: &Path) -> io::Result<()> {
    let (file, name) =
        (CString::new(descriptor(file))?, CString::new(name.as_os_str().as_bytes())?);
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both paths are NUL-terminated.
    match unsafe { libc::linkat(here, file.as_ptr(), here, name.as_ptr(), follow) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn with_a_name_and_without_it_the_file_gets_its_place_or_goes() {
        let directory = std::env::temp_dir().join(format!("lumalloc-place-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("x");
        let names = || std::fs::read_dir(&directory).unwrap().count();
        let named = || {
            let (name, file) = with_name(&path, |name| File::create_new(name)).unwrap();
            Unfinished { file, name: Some(name) }
        };
        for make in [&named as &dyn Fn() -> Unfinished, &|| Unfinished::beside(&path).unwrap()] {
            drop(make());
            assert_eq!(names(), 0);
            for text in ["one", "two"] {
                let unfinished = make();
                unfinished.file().write_all(text.as_bytes()).unwrap();
                unfinished.finish(&path).unwrap();
                assert_eq!((names(), std::fs::read_to_string(&path).unwrap()), (1, text.into()));
            }
            std::fs::remove_file(&path).unwrap();
        }
        // What another process left under these names stays.
        let left: Vec<PathBuf> = (0..3).map(|number| name(&path, number)).collect();
        left.iter().for_each(|name| std::fs::write(name, "left").unwrap());
        for make in [&named as &dyn Fn() -> Unfinished, &|| Unfinished::beside(&path).unwrap()] {
            make().finish(&path).unwrap();
            assert!(left.iter().all(|name| std::fs::read(name).unwrap() == b"left"));
            assert_eq!(names(), 4);
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
