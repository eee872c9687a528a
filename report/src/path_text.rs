//! Paths as text. The system writes the end of a line in the path of a mapping as `\012`, and bytes
//! that are no UTF-8 as they are. Those are written in the same way here, so that none is lost.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Returns the text, with `\377` and the like in place of each byte that is no UTF-8.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\{byte:03o}")));
    }
    Cow::Owned(text)
}

/// Returns the path: that of the text as it is, if there is such a file, because a path may have a
/// backslash.
pub(crate) fn path(text: &str) -> PathBuf {
    let path = PathBuf::from(text);
    if !text.contains('\\') || path.exists() {
        return path;
    }
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        let (byte, behind) = escaped(rest).unwrap_or((*first, behind));
        bytes.push(byte);
        rest = behind;
    }
    OsString::from_vec(bytes).into()
}

/// The byte that a text begins with as a backslash and three octal digits, and what is behind it.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, behind) = text.strip_prefix(b"\\")?.split_first_chunk::<3>()?;
    let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()?;
    is_octal.then_some((byte, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn no_byte_of_a_path_is_lost() {
        assert_eq!(text(b"/a\xff\xc3/\xc3\xa4"), "/a\\377\\303/\u{e4}");
        for bytes in [&b"/nowhere/a"[..], b"/nowhere/\xff\xc3(", b"/nowhere/\\(", b"/nowhere/\\40"]
        {
            assert_eq!(path(&text(bytes)).as_os_str().as_bytes(), bytes);
        }
        for (text, bytes) in [
            ("/nowhere/a\\012b\\", &b"/nowhere/a\nb\\"[..]),
            ("/nowhere/\\400\\018\\+12", b"/nowhere/\\400\\018\\+12"),
        ] {
            assert_eq!(path(text).as_os_str().as_bytes(), bytes, "{text}");
        }
    }

    #[test]
    fn a_file_with_a_backslash_is_found() {
        let file = format!("lumalloc-path-{}-\\012", std::process::id());
        let file = std::env::temp_dir().join(file);
        std::fs::write(&file, "").expect("written");
        let found = path(file.to_str().expect("text"));
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(found, file);
    }
}
