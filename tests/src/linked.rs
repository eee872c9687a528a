//! Programs of `tests/c` that are linked with the library, as programs of users are.

use std::path::Path;

use crate::build::{cc, liblumalloc, liblumalloc_archive};
use crate::run::Run;

/// Compiles a program with the shared object.
pub fn linked(source: &str) -> Run {
    linked_with(source, &[])
}

/// As [`linked`], with more arguments for the compiler.
pub fn linked_with(source: &str, flags: &[&str]) -> Run {
    let library = liblumalloc();
    let [dir, file] = [library.parent().map(Path::as_os_str), library.file_name()]
        .map(|part| part.expect("a file in a directory").to_string_lossy());
    let [dir_flag, file_flag] = [format!("-L{dir}"), format!("-l:{file}")];
    let program = cc(source, &[&[&*dir_flag, &file_flag, "-lpthread"], flags].concat());
    // Cargo sets this variable for tests, perhaps to an older build.
    Run::plain(program).env("LD_LIBRARY_PATH", &*dir)
}

/// Compiles a static program with the archive.
pub fn fully_static(source: &str) -> Run {
    let archive = liblumalloc_archive().display().to_string();
    Run::plain(cc(source, &["-static", &archive]))
}
