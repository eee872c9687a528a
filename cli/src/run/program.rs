//! Finds the file that the program's name means, and whether preloading reaches it.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::named::Named;
use super::{NOT_EXECUTABLE, NOT_FOUND, access, capabilities};
use crate::failure::{Failure, Outcome};

/// The directories that the C library searches when there is no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
/// The longest chain of scripts that name scripts which the kernel follows.
const SCRIPT_DEPTH: usize = 4;

/// Returns the file to execute, found as a shell would find it.
pub(crate) fn find(name: &OsStr, path: Option<&OsStr>) -> Outcome<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return match refusal(Path::new(name)) {
            None => Ok(PathBuf::from(name)),
            Some(failure) => Err(failure),
        };
    }
    if name.is_empty() {
        // Joined to a directory it would name the directory.
        return Err(not_found(Path::new("''")));
    }
    let mut denied = None;
    for directory in std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))) {
        let candidate = Path::new(".").join(directory).join(name);
        match refusal(&candidate) {
            None => return Ok(candidate),
            Some(failure) if failure.status == NOT_EXECUTABLE => denied = denied.or(Some(failure)),
            Some(_) => {}
        }
    }
    Err(denied.unwrap_or_else(|| not_found(Path::new(name))))
}

/// Returns why this file cannot be the program.
fn refusal(path: &Path) -> Option<Failure> {
    let denied =
        |why| Failure::with_status(NOT_EXECUTABLE, format!("run: {}: {why}", path.display()));
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Some(denied("is a directory")),
        Ok(metadata) if !metadata.is_file() || metadata.mode() & 0o111 == 0 => {
            Some(denied("not executable"))
        }
        Ok(_) if !access::may_execute(path) => Some(denied("permission denied")),
        Ok(_) => None,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Some(denied("permission denied"))
        }
        Err(_) => Some(not_found(path)),
    }
}

fn not_found(path: &Path) -> Failure {
    Failure::with_status(NOT_FOUND, format!("run: {}: program not found", path.display()))
}

/// Returns why the loader will not read `LD_PRELOAD` for this program, or `None` if it will.
pub(crate) fn escapes_preloading(path: &Path, library: &Path) -> Option<&'static str> {
    let path = interpreter_of(path)?;
    let metadata = path.metadata().ok()?;
    if capabilities::may_gain(&path) {
        let own = Identity::of(&Path::new("/proc/self").metadata().ok()?);
        if own.changes(&Identity::of(&metadata), metadata.mode()) {
            return Some("setuid or setgid program");
        }
        // For root, what a file grants is nothing new.
        if own.user != 0 && capabilities::gains(&path) {
            return Some("program with capabilities of its file");
        }
    }
    let program = Elf::read(&path).ok()??;
    let library = Elf::read(library).ok()??;
    if !program.has_interpreter {
        Some("statically linked program")
    } else if !program.same_machine(&library) {
        Some("program for another kind of processor than the library")
    } else {
        None
    }
}

/// Returns why this program would not run with the library preloaded, or `None` if it would.
pub(crate) fn ends_preloaded(path: &Path) -> Option<&'static str> {
    let named = Named::read(&interpreter_of(path)?).ok()?;
    let needs = |start: &str| named.needed.iter().any(|name| name.starts_with(start));
    if named.loader.starts_with("ld-musl-") {
        Some("program for musl, and the library is for glibc")
    } else if needs("libasan.so") {
        Some("program with the address sanitizer, which has to be the first library")
    } else if needs("libtsan.so") {
        Some("program with the thread sanitizer, which has to be the first library")
    } else {
        None
    }
}

/// Returns the binary that runs: the file itself, or the file that the `#!` lines lead to.
fn interpreter_of(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..=SCRIPT_DEPTH {
        let mut line = Vec::new();
        let mut start = BufReader::new(File::open(&path).ok()?.take(256));
        start.read_until(b'\n', &mut line).ok()?;
        let Some(rest) = line.strip_prefix(b"#!") else { return Some(path) };
        let word = rest.trim_ascii().split(u8::is_ascii_whitespace).next()?;
        path = PathBuf::from(OsStr::from_bytes(word));
    }
    None
}

/// The owner of a file or a process.
#[derive(Debug, Clone, Copy)]
struct Identity {
    user: u32,
    group: u32,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self { user: metadata.uid(), group: metadata.gid() }
    }

    /// Whether a program of this owner and mode would change our identity. It then ignores
    /// `LD_PRELOAD`. A program that is set to the identity that we have already changes nothing.
    fn changes(self, program: &Self, mode: u32) -> bool {
        (mode & SETUID != 0 && program.user != self.user)
            || (mode & SETGID != 0 && program.group != self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(name: &str, path: &str) -> (u8, String) {
        let failure = find(OsStr::new(name), Some(OsStr::new(path))).unwrap_err();
        (failure.status, failure.message)
    }

    #[test]
    fn the_path_is_searched_in_order() {
        let found = find(OsStr::new("sh"), Some(OsStr::new("/nowhere:/bin:/usr/bin"))).unwrap();
        assert_eq!(found, Path::new("/bin/sh"));
        assert_eq!(find(OsStr::new("sh"), None).unwrap(), Path::new("/bin/sh"));
        assert_eq!(find(OsStr::new("/bin/sh"), None).unwrap(), Path::new("/bin/sh"));
    }

    #[test]
    fn errors_have_the_statuses_of_a_shell() {
        let missing = (127, "run: nope-x: program not found".to_owned());
        assert_eq!(failure("nope-x", "/bin"), missing);
        let missing = (127, "run: /nope/x: program not found".to_owned());
        assert_eq!(failure("/nope/x", "/bin"), missing);
        assert_eq!(failure("/etc/passwd", ""), (126, "run: /etc/passwd: not executable".into()));
        assert_eq!(failure("passwd", "/etc"), (126, "run: /etc/passwd: not executable".into()));
        assert_eq!(failure("/etc", ""), (126, "run: /etc: is a directory".into()));
    }

    #[test]
    fn scripts_lead_to_their_interpreter() {
        let script = std::env::temp_dir().join(format!("lumalloc-cli-{}", std::process::id()));
        std::fs::write(&script, "#! /bin/sh -e\n").unwrap();
        let found = interpreter_of(&script);
        std::fs::remove_file(&script).unwrap();
        assert_eq!(found.as_deref(), Some(Path::new("/bin/sh")));
        assert_eq!(interpreter_of(Path::new("/bin/sh")).as_deref(), Some(Path::new("/bin/sh")));
    }

    #[test]
    fn only_another_identity_counts() {
        let (us, root) = (Identity { user: 7, group: 7 }, Identity { user: 0, group: 0 });
        assert!(us.changes(&root, 0o4755));
        assert!(us.changes(&root, 0o2755));
        assert!(!us.changes(&root, 0o755));
        assert!(!us.changes(&us, 0o6755));
    }

    #[test]
    fn an_ordinary_program_can_be_preloaded() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(escapes_preloading(&own, &own), None);
    }

    #[test]
    fn a_program_of_another_processor_cannot_be_preloaded() {
        let own = std::env::current_exe().unwrap();
        let mut start = Vec::new();
        File::open(&own).unwrap().take(4096).read_to_end(&mut start).unwrap();
        // e_machine.
        start[18] ^= 0xff;
        let name = format!("lumalloc-other-processor-{}", std::process::id());
        let other = std::env::temp_dir().join(name);
        std::fs::write(&other, start).unwrap();
        let reason = escapes_preloading(&other, &own);
        std::fs::remove_file(&other).unwrap();
        assert_eq!(reason, Some("program for another kind of processor than the library"));
    }
}
