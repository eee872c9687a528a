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
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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
            Failure::File(error) => write!(to, "there is no file for the profile: {error}"),
        }
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Answer {
        let status = match failure {
            Failure::Off => StatusCode::NOT_FOUND,
            Failure::Unwritten(_) | Failure::File(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        line(status, failure)
    }
}

/// Returns the error of a key of the profiler as a failure.
pub(crate) fn failure(error: Error) -> Failure {
    if error == Error::NoEntry { Failure::Off } else { Failure::Unwritten(error) }
}

/// Leaves what the calling thread allocates out of profiles, until this value is dropped.
pub(crate) struct LeftOut {
    namespace: &'static dyn Namespace,
    was_active: bool,
}

impl LeftOut {
    pub(crate) fn begin(namespace: &'static dyn Namespace) -> LeftOut {
        let key = namespace.find(THREAD);
        let was_active = key.and_then(|key| namespace.read(&key)) == Ok(Value::Bool(true));
        set_thread(namespace, false);
        LeftOut { namespace, was_active }
    }
}

impl Drop for LeftOut {
    fn drop(&mut self) {
        set_thread(self.namespace, self.was_active);
    }
}

/// The key that says it.
const THREAD: &str = "thread.prof.active";

/// Sets whether what the calling thread allocates is in profiles.
pub(crate) fn set_thread(namespace: &dyn Namespace, is_active: bool) {
    // Without the profiler the key does not exist.
    let _ = namespace.find(THREAD).and_then(|key| namespace.write(&key, Value::Bool(is_active)));
}

/// Takes the present profile.
pub(crate) fn take(namespace: &dyn Namespace, format: Format) -> Result<Vec<u8>, Failure> {
    let mut file = memory_file().map_err(Failure::File)?;
    let descriptor = file.as_raw_fd().cast_unsigned();
    let key = namespace.find(format.key()).map_err(failure)?;
    namespace.write(&key, Value::Unsigned(descriptor)).map_err(failure)?;
    let mut profile = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut profile)).map_err(Failure::File)?;
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
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}

/// Opens a file without a name, which lies in memory.
fn memory_file() -> io::Result<File> {
    // SAFETY: the name is NUL-terminated.
    let descriptor = unsafe { libc::memfd_create(c"lumalloc-profile".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and belongs to nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }.into())
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
    }

    #[test]
    fn a_profile_is_compressed_and_stays_the_same() {
        let plain = b"profile ".repeat(1000);
        let packed = packed(&plain).unwrap();
        assert!(packed.len() < plain.len() / 10);
        assert_eq!(unpacked(&packed).unwrap(), plain);
    }

    #[test]
    fn a_file_in_memory_keeps_what_is_written() {
        let mut file = memory_file().unwrap();
        file.write_all(b"text").unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }
}
