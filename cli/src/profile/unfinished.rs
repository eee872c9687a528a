//! A file that is written beside the one that it will replace.
//!
//! Where the file system can, the file has no name until it is whole, so nothing is left of it if a
//! signal ends the process.

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
    /// The name that it has, or gets just before the final one.
    name: PathBuf,
    is_named: bool,
}

impl Unfinished {
    /// Makes the file that will be at this path.
    pub(super) fn beside(path: &Path) -> io::Result<Self> {
        let name = name(path);
        if let Some(file) = unnamed(path) {
            return Ok(Self { file, name, is_named: false });
        }
        let file = OpenOptions::new().write(true).create_new(true).open(&name)?;
        Ok(Self { file, name, is_named: true })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file in its place.
    pub(super) fn finish(mut self, path: &Path) -> io::Result<()> {
        if !self.is_named {
            give_name(&self.file, &self.name)?;
            self.is_named = true;
        }
        std::fs::rename(&self.name, path)?;
        self.is_named = false;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.is_named {
            let _ = std::fs::remove_file(&self.name);
        }
    }
}

/// A name of its own in the same directory. The name may be as long as names can be, so only its
/// first characters are taken.
fn name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(50).collect();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
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
        let (path, hidden) = (directory.join("x"), name(&directory.join("x")));
        let names = || std::fs::read_dir(&directory).unwrap().count();
        let named = || Unfinished {
            file: File::create_new(&hidden).unwrap(),
            name: hidden.clone(),
            is_named: true,
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
        std::fs::remove_dir(&directory).unwrap();
    }
}
