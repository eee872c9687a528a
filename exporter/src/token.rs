//! The bearer token, in a file that other users cannot read. It is read again when it changes.
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use subtle::ConstantTimeEq;

/// The least characters of a token. A shorter one could be guessed.
const SHORTEST: usize = 16;
/// Tokens of so many characters or more are refused.
const LONGEST: usize = 4096;
/// Permission bits of the group and of others.
const TOO_OPEN: u32 = 0o077;

/// Why a token file is refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// The path is a directory, a pipe or a device.
    NotAFile(PathBuf),
    /// The permissions of the file let other users in.
    TooOpen(PathBuf, u32),
    /// The file belongs to a user who is neither the user of this process nor root.
    NotOurs(PathBuf, u32),
    /// The file holds no word.
    Empty(PathBuf),
    /// The word in the file is too short to be a secret.
    TooShort(PathBuf, usize),
    /// The file does not hold one word of visible ASCII, or the word is too long.
    NotAWord(PathBuf),
}

impl fmt::Display for TokenError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Unreadable(path, error) => {
                write!(to, "the token file {} cannot be read: {error}", path.display())
            }
            TokenError::NotAFile(path) => {
                write!(to, "the token file {} is not a file", path.display())
            }
            TokenError::TooOpen(path, mode) => {
                let path = path.display();
                write!(to, "the token file {path} has mode {mode:04o}; it must be 0600 or stricter")
            }
            TokenError::NotOurs(path, user) => {
                write!(to, "the token file {} belongs to user {user}", path.display())
            }
            TokenError::Empty(path) => write!(to, "the token file {} is empty", path.display()),
            TokenError::TooShort(path, length) => {
                let path = path.display();
                write!(
                    to,
                    "the token in {path} has {length} characters; it must have at least {SHORTEST}"
                )
            }
            TokenError::NotAWord(path) => {
                let path = path.display();
                write!(to, "the token in {path} is not one word of at most {LONGEST} characters")
            }
        }
    }
}

impl std::error::Error for TokenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TokenError::Unreadable(_, error) => Some(error),
            _ => None,
        }
    }
}

/// The metadata that differs when the file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp([i64; 8]);

impl Stamp {
    fn of(file: &Metadata) -> Stamp {
        Stamp([
            file.dev() as i64,
            file.ino() as i64,
            file.size() as i64,
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec(),
            i64::from(file.uid()) << 32 | i64::from(file.mode()),
        ])
    }
}

/// A file with a token. Clones share the file.
#[derive(Clone, Debug)]
pub(crate) struct TokenFile(Arc<Inner>);

struct Inner {
    path: PathBuf,
    read: Mutex<(Stamp, Vec<u8>)>,
}

impl fmt::Debug for Inner {
    /// Writes the path, without the token.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(to)
    }
}

impl TokenFile {
    /// Reads the file.
    pub(crate) fn open(path: PathBuf) -> Result<TokenFile, TokenError> {
        let read = read(&path)?;
        Ok(TokenFile(Arc::new(Inner { path, read: Mutex::new(read) })))
    }

    /// Whether this is the token. The time of the comparison does not tell how much of it is right.
    /// The current file counts, so that removing the token locks out all clients at once.
    pub(crate) fn is(&self, offered: &[u8]) -> Result<bool, TokenError> {
        let path = &self.0.path;
        let now = std::fs::metadata(path).map_err(|e| TokenError::Unreadable(path.clone(), e))?;
        let mut read_once = self.0.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read_once.0 != Stamp::of(&now) {
            *read_once = read(path)?;
        }
        Ok(read_once.1.ct_eq(offered).into())
    }
}

fn read(path: &Path) -> Result<(Stamp, Vec<u8>), TokenError> {
    let unreadable = |error| TokenError::Unreadable(path.into(), error);
    // Opening a pipe would wait, so what is not a file is refused before it is opened.
    let before = std::fs::metadata(path).map_err(unreadable)?;
    if !before.is_file() {
        return Err(TokenError::NotAFile(path.into()));
    }
    let file = File::open(path).map_err(unreadable)?;
    let is = file.metadata().map_err(unreadable)?;
    let mode = is.mode() & 0o7777;
    if mode & TOO_OPEN != 0 {
        return Err(TokenError::TooOpen(path.into(), mode));
    }
    if is.uid() != 0 && is.uid() != crate::user::effective() {
        return Err(TokenError::NotOurs(path.into(), is.uid()));
    }
    let mut text = Vec::new();
    file.take(LONGEST as u64 + 2).read_to_end(&mut text).map_err(unreadable)?;
    let token = text.trim_ascii();
    match token.len() {
        0 => Err(TokenError::Empty(path.into())),
        length if length > LONGEST => Err(TokenError::NotAWord(path.into())),
        _ if !token.iter().all(u8::is_ascii_graphic) => Err(TokenError::NotAWord(path.into())),
        short @ ..SHORTEST => Err(TokenError::TooShort(path.into(), short)),
        _ => Ok((Stamp::of(&is), token.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    fn file(name: &str, text: &str, mode: u32) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("lumalloc-token-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join(name);
        write(&path, text).unwrap();
        set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn refused(path: PathBuf) -> String {
        TokenFile::open(path).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_file_is_refused_with_its_reason() {
        let none = PathBuf::from("/nonexistent/token");
        let says = "the token file /nonexistent/token cannot be read: No such file or directory \
                    (os error 2)";
        assert_eq!(refused(none), says);
        assert_eq!(refused("/dev/null".into()), "the token file /dev/null is not a file");
        let open = file("open", "0123456789abcdef", 0o640);
        let says =
            format!("the token file {} has mode 0640; it must be 0600 or stricter", open.display());
        assert_eq!(refused(open), says);
        let empty = file("empty", " \n", 0o600);
        let says = format!("the token file {} is empty", empty.display());
        assert_eq!(refused(empty), says);
        let short = file("short", "secret\n", 0o600);
        let says =
            format!("the token in {} has 6 characters; it must have at least 16", short.display());
        assert_eq!(refused(short), says);
        for (name, text) in [("two", "0123456789 abcdef".into()), ("long", "x".repeat(4097))] {
            let path = file(name, &text, 0o600);
            let says = format!(
                "the token in {} is not one word of at most 4096 characters",
                path.display()
            );
            assert_eq!(refused(path), says);
        }
        assert!(TokenFile::open(file("longest", &"x".repeat(4096), 0o600)).is_ok());
    }

    /// Only root can give a file to another user.
    #[test]
    fn a_file_of_somebody_else_is_refused() {
        let says = TokenError::NotOurs("/t".into(), 7).to_string();
        assert_eq!(says, "the token file /t belongs to user 7");
        if crate::user::effective() == 0 {
            let path = file("theirs", "0123456789abcdef", 0o600);
            std::os::unix::fs::chown(&path, Some(7), None).unwrap();
            assert!(matches!(TokenFile::open(path), Err(TokenError::NotOurs(_, 7))));
        }
    }

    #[test]
    fn the_file_counts_as_it_is_now() {
        let path = file("changing", "0123456789abcdef\n", 0o600);
        let token = TokenFile::open(path.clone()).unwrap();
        assert!(token.is(b"0123456789abcdef").unwrap());
        for wrong in [&b""[..], b"0123456789abcde", b"0123456789abcdeg", b"0123456789abcdef0"] {
            assert!(!token.is(wrong).unwrap());
        }
        write(&path, "another-and-longer").unwrap();
        assert!(!token.is(b"0123456789abcdef").unwrap());
        assert!(token.is(b"another-and-longer").unwrap());
        set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(token.is(b"another-and-longer"), Err(TokenError::TooOpen(_, 0o644))));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(token.is(b"another-and-longer"), Err(TokenError::Unreadable(..))));
    }

    #[test]
    fn the_token_is_not_shown() {
        let token = TokenFile::open(file("shown", "0123456789abcdef", 0o600)).unwrap();
        assert!(!format!("{token:?}").contains("0123456789"));
    }
}
