//! Files of `/proc` about this process. Those of `/proc/self` are of its first thread. They are
//! empty, or cannot be read, once this has ended, as by `pthread_exit` in `main`.

use std::{fs, io};

/// The file of the running program.
const PROGRAM: [&str; 2] = ["/proc/self/exe", "/proc/thread-self/exe"];

/// Reads one, by its name.
pub(crate) fn read(name: &str) -> io::Result<Vec<u8>> {
    match fs::read(format!("/proc/self/{name}")) {
        Ok(contents) if !contents.is_empty() => Ok(contents),
        first => fs::read(format!("/proc/thread-self/{name}")).or(first),
    }
}

/// Returns a link that leads to the file of the running program.
pub(crate) fn program() -> &'static str {
    let [first, second] = PROGRAM;
    if fs::metadata(first).is_ok() { first } else { second }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_by_their_names() {
        assert!(read("maps").unwrap().contains(&b'/'));
        assert_eq!(read("nothing").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(program(), PROGRAM[0]);
    }
}
