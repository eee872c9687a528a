//! What a process calls itself, and what its paths mean.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the number that a process has for itself, which in a container differs from ours.
pub(crate) fn own_number(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut lines = status.lines();
    let numbers = lines.find_map(|line| line.strip_prefix("NSpid:"));
    let innermost = numbers.and_then(|numbers| numbers.split_whitespace().next_back());
    innermost.and_then(|number| number.parse().ok()).unwrap_or(pid)
}

/// Returns the path that a process means: `%p` stands for its number, and a relative path begins
/// in its directory.
pub(crate) fn path(pid: u32, text: &[u8]) -> PathBuf {
    let number = own_number(pid).to_string();
    let mut whole = Vec::with_capacity(text.len() + number.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"%p") {
            whole.extend_from_slice(number.as_bytes());
            rest = after;
        } else {
            whole.push(*byte);
            rest = after;
        }
    }
    seen_from_here(pid, Path::new(OsStr::from_bytes(&whole)), || has_our_root(pid))
}

/// Returns what this process calls a path of another one. Paths of one with another root, as in a
/// container, begin there.
fn seen_from_here(pid: u32, path: &Path, has_our_root: impl FnOnce() -> bool) -> PathBuf {
    match path.strip_prefix("/") {
        Ok(_) if has_our_root() => path.to_owned(),
        Ok(below) => Path::new(&format!("/proc/{pid}/root")).join(below),
        Err(_) => Path::new(&format!("/proc/{pid}/cwd")).join(path),
    }
}

/// Returns whether a process has the root and the mounts of this one. It is taken to have them if
/// the system does not say.
fn has_our_root(pid: u32) -> bool {
    let link = |of: &str, name: &str| fs::read_link(format!("/proc/{of}/{name}")).ok();
    let is_same = |name| {
        let other = link(&pid.to_string(), name);
        other.is_none() || other == link("self", name)
    };
    is_same("root") && is_same("ns/mnt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_process() {
        let pid = std::process::id();
        assert_eq!(path(pid, b"/run/%p%p/%x%"), Path::new(&format!("/run/{pid}{pid}/%x%")));
        assert_eq!(path(pid, b"a/b"), Path::new(&format!("/proc/{pid}/cwd/a/b")));
        assert_eq!((own_number(pid), own_number(u32::MAX)), (pid, u32::MAX));
        let elsewhere = |path: &str| seen_from_here(7, Path::new(path), || false);
        assert_eq!(elsewhere("/run/x.sock"), Path::new("/proc/7/root/run/x.sock"));
        assert_eq!(elsewhere("x.sock"), Path::new("/proc/7/cwd/x.sock"));
    }
}
