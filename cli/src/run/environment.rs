//! The variables that `run` sets for the program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use lumalloc_exporter::wish::Wish;

use super::library;
use crate::failure::{Failure, OWN_FAILURE, Outcome};

/// Returns `LD_PRELOAD`: our libraries before those that are there already, and none twice.
pub(crate) fn preload(ours: &[PathBuf], existing: Option<&OsStr>) -> OsString {
    let is_ours = |other: &&OsStr| ours.iter().any(|library| library == *other);
    let others = existing.into_iter().flat_map(entries).filter(|other| !is_ours(other));
    let all: Vec<&OsStr> = ours.iter().map(|library| library.as_os_str()).chain(others).collect();
    all.join(OsStr::new(":"))
}

/// Returns `LD_PRELOAD` without our libraries, also those of another build: an outer run may have
/// set it for a program that cannot live with them.
pub(crate) fn without_ours(ours: &[PathBuf], existing: &OsStr) -> OsString {
    let usual = [Path::new(library::NAME), Path::new(library::EXPORTER)];
    let all: Vec<&Path> = ours.iter().map(PathBuf::as_path).chain(usual).collect();
    let is_ours = |other: &&OsStr| {
        let name = Path::new(other).file_name();
        all.iter().any(|library| library.file_name() == name)
    };
    let others: Vec<&OsStr> = entries(existing).filter(|other| !is_ours(other)).collect();
    others.join(OsStr::new(":"))
}

/// The variable that tells the exporter's library where to serve.
pub(crate) const EXPORTER: &str = "LUMALLOC_EXPORTER";

/// Returns where the program is to serve its metrics, and where that was set: by the option, else
/// by the variable. An empty text means nowhere. What is no address is refused: the program would
/// go on without an exporter.
pub(crate) fn exporter<'a>(
    option: Option<&'a OsStr>,
    existing: Option<&'a OsStr>,
) -> Outcome<Option<(&'a OsStr, &'static str)>> {
    let option = option.map(|address| (address, "--exporter"));
    let chosen = option.or(existing.map(|address| (address, EXPORTER)));
    let Some((address, origin)) = chosen.filter(|(address, _)| !address.is_empty()) else {
        return Ok(None);
    };
    Wish::read(address, origin)
        .map_err(|why| Failure::with_status(OWN_FAILURE, format!("run: {why}")))?;
    Ok(Some((address, origin)))
}

/// Returns `LUMALLOC_CONF`: our options after the existing ones, because the last of two equal keys
/// wins.
pub(crate) fn conf(existing: Option<&OsStr>, ours: &[String]) -> OsString {
    let mut value = existing.unwrap_or_default().to_owned();
    for pairs in ours {
        if !value.is_empty() && !value.as_encoded_bytes().ends_with(b",") {
            value.push(",");
        }
        value.push(pairs);
    }
    value
}

/// Returns the entries of `LD_PRELOAD`, which the loader splits at spaces and colons.
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
        let ours = [PathBuf::from("/x/liblumalloc.so")];
        let with = |existing: &str| preload(&ours, Some(OsStr::new(existing)));
        assert_eq!(preload(&ours, None), "/x/liblumalloc.so");
        assert_eq!(with(""), "/x/liblumalloc.so");
        assert_eq!(with("/a.so /b.so"), "/x/liblumalloc.so:/a.so:/b.so");
        assert_eq!(with("/a.so:/x/liblumalloc.so"), "/x/liblumalloc.so:/a.so");
        let both = [PathBuf::from("/x/a.so"), PathBuf::from("/x/b.so")];
        let existing = OsStr::new("/x/b.so /c.so /x/a.so");
        assert_eq!(preload(&both, Some(existing)), "/x/a.so:/x/b.so:/c.so");
    }

    #[test]
    fn a_program_that_cannot_have_our_libraries_gets_the_others() {
        let ours = [PathBuf::from("/x/lu.so")];
        let others = |existing: &str| without_ours(&ours, OsStr::new(existing));
        let existing = "/y/liblumalloc.so:/a.so /y/liblumalloc_exporter.so:/y/lu.so";
        assert_eq!(others(existing), "/a.so");
        assert_eq!(others("/x/liblumalloc.so"), "");
    }

    #[test]
    fn the_option_wins_over_the_variable() {
        let [a, b, empty] = ["127.0.0.1:9464", "unix:/x,program:b", ""].map(OsStr::new);
        let exporter = |option, existing| exporter(option, existing).unwrap();
        assert_eq!(exporter(None, None), None);
        assert_eq!(exporter(None, Some(a)), Some((a, "LUMALLOC_EXPORTER")));
        assert_eq!(exporter(None, Some(empty)), None);
        assert_eq!(exporter(Some(b), Some(a)), Some((b, "--exporter")));
        assert_eq!(exporter(Some(b), None), Some((b, "--exporter")));
        assert_eq!(exporter(Some(empty), Some(a)), None);
    }

    #[test]
    fn an_exporter_s_address_is_read_before_the_program_begins() {
        let refused = |option: Option<&str>, variable: &str| {
            exporter(option.map(OsStr::new), Some(OsStr::new(variable))).unwrap_err()
        };
        let failure = |why: &str| Failure::with_status(125, format!("run: {why}"));
        let no_address = "is neither ADDRESS:PORT, as 127.0.0.1:9464, nor unix:PATH";
        for wrong in ["foo", ":9464", "127.0.0.1", "localhost:9464"] {
            let why = format!("--exporter: \"{wrong}\" {no_address}");
            assert_eq!(refused(Some(wrong), ""), failure(&why));
        }
        let why = format!("LUMALLOC_EXPORTER: \"foo\" {no_address}");
        assert_eq!(refused(None, "foo"), failure(&why));
        let why = "--exporter: \"dump:/x\" is none of metrics:ADDRESS:PORT, token:FILE, \
                   dumps:DIRECTORY, host:NAME and program:NAME";
        assert_eq!(refused(Some("127.0.0.1:9464,dump:/x"), ""), failure(why));
    }

    #[test]
    fn conf_is_appended_after_a_comma() {
        let ours = ["a:1".to_owned(), "b:2,c:3".to_owned()];
        assert_eq!(conf(None, &ours), "a:1,b:2,c:3");
        assert_eq!(conf(Some(OsStr::new("")), &ours[..1]), "a:1");
        assert_eq!(conf(Some(OsStr::new("x:y")), &ours), "x:y,a:1,b:2,c:3");
        assert_eq!(conf(Some(OsStr::new("x:y,")), &ours[..1]), "x:y,a:1");
    }
}
