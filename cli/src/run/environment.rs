//! The two variables that `run` sets for the program.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// `LD_PRELOAD`: our library before what is there already, and not twice.
pub(crate) fn preload(library: &Path, existing: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    for other in existing.into_iter().flat_map(entries) {
        if other != library.as_os_str() {
            value.push(":");
            value.push(other);
        }
    }
    value
}

/// `LUMALLOC_CONF`: ours after what is there, because the last of two equal keys wins.
pub(crate) fn conf(existing: Option<&OsStr>, ours: &[String]) -> OsString {
    let mut value = existing.unwrap_or_default().to_owned();
    for pairs in ours {
        if !value.is_empty() {
            value.push(",");
        }
        value.push(pairs);
    }
    value
}

/// The loader splits `LD_PRELOAD` at spaces and colons.
fn entries(value: &OsStr) -> impl Iterator<Item = &OsStr> {
    use std::os::unix::ffi::OsStrExt;
    value
        .as_bytes()
        .split(|&byte| byte == b' ' || byte == b':')
        .filter(|entry| !entry.is_empty())
        .map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first_and_once() {
        let ours = Path::new("/x/liblumalloc.so");
        let with = |existing: &str| preload(ours, Some(OsStr::new(existing)));
        assert_eq!(preload(ours, None), "/x/liblumalloc.so");
        assert_eq!(with(""), "/x/liblumalloc.so");
        assert_eq!(with("/a.so /b.so"), "/x/liblumalloc.so:/a.so:/b.so");
        assert_eq!(with("/a.so:/x/liblumalloc.so"), "/x/liblumalloc.so:/a.so");
    }

    #[test]
    fn conf_is_appended_after_a_comma() {
        let ours = ["a:1".to_owned(), "b:2,c:3".to_owned()];
        assert_eq!(conf(None, &ours), "a:1,b:2,c:3");
        assert_eq!(conf(Some(OsStr::new("")), &ours[..1]), "a:1");
        assert_eq!(conf(Some(OsStr::new("x:y")), &ours), "x:y,a:1,b:2,c:3");
    }
}
