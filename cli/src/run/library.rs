//! Finds `liblumalloc.so`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::elf::{Elf, SHARED_OBJECT};
use crate::failure::{Failure, OWN_FAILURE, Outcome, reason};

pub(super) const NAME: &str = "liblumalloc.so";
pub(super) const EXPORTER: &str = "liblumalloc_exporter.so";
const VARIABLE: &str = "LUMALLOC_LIBRARY";

/// Returns the library's absolute path, checked because the loader only warns about a bad library.
pub(crate) fn find(option: Option<&Path>) -> Outcome<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let path = if let Some(path) = option {
        named_file(path, "--library")?
    } else if let Some(path) = named {
        named_file(Path::new(&path), VARIABLE)?
    } else {
        beside(&own_directory(std::env::current_exe())?)?
    };
    check(&path)?;
    Ok(path)
}

/// Returns the exporter's library, which lies beside `library` because both come from one build.
/// `origin` is the option or the variable that asks for it.
pub(crate) fn exporter(library: &Path, origin: &str) -> Outcome<PathBuf> {
    let path = library.with_file_name(EXPORTER);
    if !path.is_file() {
        return Err(failure(format!(
            "{}: no such file: {origin} needs it beside {NAME}; build both with \
             'cargo build --release'",
            path.display()
        )));
    }
    check(&path)?;
    Ok(path)
}

fn own_directory(executable: std::io::Result<PathBuf>) -> Outcome<PathBuf> {
    let executable = executable.map_err(|error| {
        let reason = reason(&error);
        failure(format!(
            "cannot find this executable, which {NAME} lies beside: {reason}; name it with \
             --library PATH or {VARIABLE}"
        ))
    })?;
    Ok(executable.parent().unwrap_or(Path::new("/")).to_owned())
}

/// Returns the path of a file that was named on purpose, or an error if there is no such file.
fn named_file(path: &Path, origin: &str) -> Outcome<PathBuf> {
    if !path.is_file() {
        return Err(failure(format!("{} (from {origin}): no such file", path.display())));
    }
    std::path::absolute(path)
        .map_err(|error| failure(format!("{} (from {origin}): {error}", path.display())))
}

/// Looks beside the executable (Cargo, an unpacked archive), and in `../lib`, the directories in it
/// and `../lib64` (an installation, perhaps with `--libdir`).
fn beside(directory: &Path) -> Outcome<PathBuf> {
    let prefix = directory.parent().unwrap_or(directory);
    let installed = prefix.join("lib");
    let places = [directory.join(NAME), installed.join(NAME)];
    let of_machines = directories_in(&installed).into_iter().map(|inner| inner.join(NAME));
    let further = of_machines.chain([prefix.join("lib64").join(NAME)]);
    if let Some(found) = places.iter().cloned().chain(further).find(|path| path.is_file()) {
        return Ok(found);
    }
    let [first, second] = places.each_ref().map(|path| path.display());
    let (inner, other) = (installed.display(), prefix.display());
    Err(failure(format!(
        "{NAME} not found: looked for {first} and {second}, in {inner}/* and in {other}/lib64; \
         build it with 'cargo build --release', or name it with --library PATH or {VARIABLE}"
    )))
}

/// Returns what lies in a directory, in the order of the names: on Debian a directory for each
/// kind of machine, as `x86_64-linux-gnu`.
fn directories_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn check(path: &Path) -> Outcome {
    let shown = path.display();
    if splits_in_preload(path.as_os_str()) {
        return Err(failure(format!(
            "{shown}: a path with a space or a colon cannot stand in LD_PRELOAD"
        )));
    }
    match Elf::read(path) {
        Err(error) => Err(failure(format!("{shown}: {}", reason(&error)))),
        Ok(Some(elf)) if elf.kind == SHARED_OBJECT => Ok(()),
        Ok(_) => Err(failure(format!("{shown}: not a shared library"))),
    }
}

fn splits_in_preload(path: &OsStr) -> bool {
    path.as_bytes().iter().any(|&byte| byte == b' ' || byte == b':')
}

fn failure(message: String) -> Failure {
    Failure::with_status(OWN_FAILURE, format!("run: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_found_says_where_it_looked() {
        let failure = beside(Path::new("/nowhere/bin")).unwrap_err();
        assert_eq!(failure.status, 125);
        assert_eq!(
            failure.message,
            "run: liblumalloc.so not found: looked for /nowhere/bin/liblumalloc.so and \
             /nowhere/lib/liblumalloc.so, in /nowhere/lib/* and in /nowhere/lib64; build it with \
             'cargo build --release', or name it with --library PATH or LUMALLOC_LIBRARY"
        );
    }

    #[test]
    fn an_installation_may_have_another_directory_of_libraries() {
        let name = format!("lumalloc-library-{}", std::process::id());
        let prefix = std::env::temp_dir().join(name);
        for libraries in ["lib64", "lib/x86_64-linux-gnu", "lib"] {
            let directory = prefix.join(libraries);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join(NAME), "").unwrap();
            let found = beside(&prefix.join("bin")).ok();
            assert_eq!(found, Some(directory.join(NAME)));
        }
        std::fs::remove_dir_all(&prefix).unwrap();
    }

    #[test]
    fn a_named_library_must_exist() {
        let failure = find(Some(Path::new("/nowhere/l.so"))).unwrap_err();
        assert_eq!(failure.message, "run: /nowhere/l.so (from --library): no such file");
    }

    #[test]
    fn the_exporter_s_library_lies_beside() {
        let failure = exporter(Path::new("/nowhere/liblumalloc.so"), "--exporter").unwrap_err();
        assert_eq!(failure.status, 125);
        assert_eq!(
            failure.message,
            "run: /nowhere/liblumalloc_exporter.so: no such file: --exporter needs it beside \
             liblumalloc.so; build both with 'cargo build --release'"
        );
    }

    #[test]
    fn a_text_file_is_no_library() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let failure = find(Some(&file)).unwrap_err();
        assert!(failure.message.ends_with("Cargo.toml: not a shared library"), "{failure}");
    }

    #[test]
    fn paths_that_the_loader_would_split_are_recognised() {
        assert!(splits_in_preload(OsStr::new("/a b/l.so")));
        assert!(splits_in_preload(OsStr::new("/a:b/l.so")));
        assert!(!splits_in_preload(OsStr::new("/a-b/l.so")));
    }

    #[test]
    fn an_executable_that_is_not_found_is_said() {
        let failure = own_directory(Err(std::io::Error::from_raw_os_error(2))).unwrap_err();
        assert_eq!(failure.status, 125);
        assert_eq!(
            failure.message,
            "run: cannot find this executable, which liblumalloc.so lies beside: no such file or \
             directory; name it with --library PATH or LUMALLOC_LIBRARY"
        );
    }
}
