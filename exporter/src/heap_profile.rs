//! The heap profile of the allocator, as a file in memory.
use crate::answer::{Answer, line};
use crate::namespace::Namespace;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use lumalloc_ctl::{Error, Value};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The most bytes of a profile in memory.
const MOST_BYTES: u64 = 64 << 20;
/// More than gzip adds at the begin and the end.
const HEAD: usize = 64;
/// What is written at once is no longer. The seal of the file may refuse all of it.
const LONGEST_WRITE: u64 = 64 << 10;

/// The formats of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The text that jeprof reads.
    HeapV2,
    /// The gzipped message that pprof reads.
    Pprof,
}

impl Format {
    fn key(self) -> &'static str {
        match self {
            Format::HeapV2 => "prof.write_heap_v2",
            Format::Pprof => "prof.write_pprof",
        }
    }
}

/// Why there is no profile.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The program was started without the profiler.
    Off,
    /// The allocator could not write it.
    Unwritten(Error),
    /// It has more bytes than that, which are [`MOST_BYTES`] or the system's limit for files.
    TooLarge(u64),
    /// The system had no file in memory for it.
    File(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Off => to.write_str(
                "this process takes no heap profile: start it with prof:true in LUMALLOC_CONF",
            ),
            Failure::Unwritten(error) => {
                let error = io::Error::from_raw_os_error(error.errno());
                write!(to, "the profile could not be written: {error}")
            }
            Failure::TooLarge(MOST_BYTES) => write!(
                to,
                "the profile has more than {MOST_BYTES} bytes: write it to a file with prof.dump"
            ),
            Failure::TooLarge(most) => write!(
                to,
                "the profile has more than {most} bytes, which is the limit of this process for \
                 files (ulimit -f)"
            ),
            Failure::File(error) => write!(to, "there is no file for the profile: {error}"),
        }
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Answer {
        let status = match failure {
            Failure::Off => StatusCode::NOT_FOUND,
            Failure::TooLarge(_) => StatusCode::INSUFFICIENT_STORAGE,
            Failure::Unwritten(_) | Failure::File(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        line(status, failure)
    }
}

/// Returns the error of a key of the profiler as a failure.
pub(crate) fn failure(error: Error) -> Failure {
    if error == Error::NoEntry { Failure::Off } else { Failure::Unwritten(error) }
}

/// Takes the present profile.
pub(crate) fn take(namespace: &dyn Namespace, format: Format) -> Result<Vec<u8>, Failure> {
    let limit = longest_file();
    let most = MOST_BYTES.min(limit);
    let mut file = memory_file(most).map_err(Failure::File)?;
    let descriptor = file.as_raw_fd().cast_unsigned();
    let key = namespace.find(format.key()).map_err(failure)?;
    let written = namespace.write(&key, Value::Unsigned(descriptor));
    // At the system's limit the last write is shortened, and the file is full.
    let full = if limit <= MOST_BYTES { most } else { most - LONGEST_WRITE + 1 };
    contents(&mut file, written.map_err(failure), most, full)
}

/// Returns what was written to a file of at most `most` bytes, which is full from `full` bytes on.
fn contents(
    file: &mut File,
    written: Result<(), Failure>,
    most: u64,
    full: u64,
) -> Result<Vec<u8>, Failure> {
    let length = file.stream_position().map_err(Failure::File)?;
    if matches!(written, Err(Failure::Unwritten(_))) && length >= full {
        return Err(Failure::TooLarge(most));
    }
    written?;
    let mut profile = Vec::new();
    let reserved = profile.try_reserve_exact(length as usize);
    reserved.map_err(|_| Failure::File(io::ErrorKind::OutOfMemory.into()))?;
    file.rewind().map_err(Failure::File)?;
    file.take(length).read_to_end(&mut profile).map_err(Failure::File)?;
    Ok(profile)
}

/// Takes the present profile for pprof, compressed. The allocator does not compress it, because it
/// works without memory.
pub(crate) fn compressed(namespace: &dyn Namespace) -> Result<Vec<u8>, Failure> {
    changed(namespace, |_| ())
}

/// As [`compressed`], after a change of the message.
pub(crate) fn changed(
    namespace: &dyn Namespace,
    change: impl FnOnce(&mut Vec<u8>),
) -> Result<Vec<u8>, Failure> {
    let mut plain = unpacked(&take(namespace, Format::Pprof)?).map_err(Failure::File)?;
    change(&mut plain);
    packed(&plain).map_err(Failure::File)
}

fn unpacked(profile: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    GzDecoder::new(profile).read_to_end(&mut plain)?;
    Ok(plain)
}

fn packed(plain: &[u8]) -> io::Result<Vec<u8>> {
    // What cannot be compressed becomes longer, by 5 bytes in some kilobytes. With room for that a
    // lack of memory is an error.
    let mut room = Vec::new();
    room.try_reserve_exact(plain.len() + plain.len() / 256 + HEAD)?;
    let mut encoder = GzEncoder::new(room, Compression::fast());
    encoder.write_all(plain)?;
    let long = encoder.finish()?;
    let mut packed = Vec::new();
    packed.try_reserve_exact(long.len())?;
    packed.extend_from_slice(&long);
    Ok(packed)
}

/// Returns how many bytes a profile that [`packed`] made has when it is unpacked.
pub(crate) fn plain_length(packed: &[u8]) -> usize {
    packed.last_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize)
}

/// Returns the system's limit for the length of a file, which also counts for files in memory.
fn longest_file() -> u64 {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the call fills the structure.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) };
    // SAFETY: it was filled.
    if status == 0 { unsafe { limit.assume_init() }.rlim_cur } else { u64::MAX }
}

/// Opens a file without a name, which lies in memory and refuses to have more than `most` bytes.
fn memory_file(most: u64) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is NUL-terminated.
    let descriptor = unsafe { libc::memfd_create(c"lumalloc-profile".as_ptr(), flags) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and belongs to nothing else.
    let file: File = unsafe { OwnedFd::from_raw_fd(descriptor) }.into();
    // The file takes no memory before it is written to.
    file.set_len(most)?;
    // SAFETY: the descriptor is open, and the command has a number as its argument.
    let status = unsafe { libc::fcntl(descriptor, libc::F_ADD_SEALS, libc::F_SEAL_GROW) };
    if status == 0 { Ok(file) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Linked;
    use crate::testing::said;

    #[test]
    fn each_failure_has_its_status_and_its_text() {
        let off = "this process takes no heap profile: start it with prof:true in LUMALLOC_CONF\n";
        // The tests run without the option.
        for format in [Format::HeapV2, Format::Pprof] {
            let failure = take(&Linked, format).unwrap_err();
            assert_eq!(said(failure.into()), (404, off.into()));
        }
        let unwritten = said(failure(Error::Fault).into());
        let text = "the profile could not be written: Bad address (os error 14)\n";
        assert_eq!(unwritten, (503, text.into()));
        let file = said(Failure::File(io::ErrorKind::OutOfMemory.into()).into());
        assert_eq!(file, (503, "there is no file for the profile: out of memory\n".into()));
        let text = "the profile has more than 67108864 bytes: write it to a file with prof.dump\n";
        assert_eq!(said(Failure::TooLarge(MOST_BYTES).into()), (507, text.into()));
    }

    #[test]
    fn a_profile_is_compressed_and_stays_the_same() {
        let plain = b"profile ".repeat(1000);
        let packed = packed(&plain).unwrap();
        assert!(packed.len() < plain.len() / 10);
        assert_eq!((unpacked(&packed).unwrap(), plain_length(&packed)), (plain, 8000));
        assert_eq!((plain_length(b"abc"), packed.capacity()), (0, packed.len()));
        // Random numbers, which gzip makes longer.
        let mut state = 1u64;
        let noise = (0..1 << 20).map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        });
        let noise: Vec<u8> = noise.collect();
        let longer = super::packed(&noise).unwrap().len();
        assert!(
            longer > noise.len() && longer < noise.len() + noise.len() / 256 + HEAD,
            "{longer}"
        );
    }

    #[test]
    fn a_file_in_memory_keeps_what_is_written() {
        let mut file = memory_file(1 << 20).unwrap();
        file.write_all(b"text").unwrap();
        assert_eq!(contents(&mut file, Ok(()), 1 << 20, 1 << 20).unwrap(), b"text");
        let failed = |full, error| {
            let mut file = memory_file(1 << 20).unwrap();
            file.write_all(b"text").unwrap();
            contents(&mut file, Err(failure(error)), 1 << 20, full).unwrap_err()
        };
        assert!(matches!(failed(5, Error::Fault), Failure::Unwritten(Error::Fault)));
        assert!(matches!(failed(4, Error::Fault), Failure::TooLarge(1_048_576)));
        assert!(matches!(failed(0, Error::NoEntry), Failure::Off));
    }

    #[test]
    fn a_profile_has_a_longest_length() {
        const MOST: usize = 1 << 20;
        let mut file = memory_file(MOST as u64).unwrap();
        let whole = vec![1; MOST];
        file.write_all(&whole).unwrap();
        let full = MOST as u64 - LONGEST_WRITE + 1;
        assert_eq!(contents(&mut file, Ok(()), MOST as u64, full).unwrap(), whole);
        let mut file = memory_file(MOST as u64).unwrap();
        let pieces = std::iter::repeat_n([1; 5000], MOST);
        let written = pieces.into_iter().try_for_each(|piece| file.write_all(&piece));
        let written = written.map_err(|_| Failure::Unwritten(Error::Fault));
        let failure = contents(&mut file, written, MOST as u64, full).unwrap_err();
        assert!(matches!(failure, Failure::TooLarge(most) if most == MOST as u64), "{failure}");
    }
}
