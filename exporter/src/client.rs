//! Whether the client of a connection has left.
use std::os::fd::{AsRawFd, RawFd};

/// The client at the other end of a connection, or one of which nothing is known.
#[derive(Clone, Copy)]
pub(crate) struct Client(Option<RawFd>);

impl Client {
    /// The client of another server.
    pub(crate) const UNKNOWN: Client = Client(None);

    /// The client of a connection, which lives longer than this value is used.
    pub(crate) fn of(stream: &impl AsRawFd) -> Client {
        Client(Some(stream.as_raw_fd()))
    }

    /// Returns whether the client has closed its side and sent nothing before that is unread. Most
    /// have left then. A few say so that their request is whole, and wait for the answer.
    pub(crate) fn has_closed(self) -> bool {
        let Some(socket) = self.0 else { return false };
        let mut byte = 0u8;
        let (place, flags) = ((&raw mut byte).cast(), libc::MSG_PEEK | libc::MSG_DONTWAIT);
        // SAFETY: one byte on this stack frame is writable.
        unsafe { libc::recv(socket, place, 1, flags) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_client_has_closed_its_side_once_all_is_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let client = Client::of(&ours);
        assert!(!client.has_closed() && !Client::UNKNOWN.has_closed());
        theirs.write_all(b"x").unwrap();
        drop(theirs);
        assert!(!client.has_closed());
        std::io::Read::read_exact(&mut &ours, &mut [0]).unwrap();
        assert!(client.has_closed());
    }
}
