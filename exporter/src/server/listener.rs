//! The sockets that the exporter listens on, and the file of a unix socket.
use super::fork::{Noted, Step};
use crate::address::Address;
use crate::guard::Peer;
use crate::route::Surface;
use crate::settings::Settings;
use crate::start_error::{LONGEST_PATH, StartError};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll, ready};

/// The most clients that wait in the system's queue.
const BACKLOG: i32 = 1024;

/// A socket that is listened on.
pub(super) struct Bound {
    /// Noted from its first moment on, because a program may fork as soon as it has an exporter.
    pub(super) socket: Noted<Socket>,
    pub(super) surface: Surface,
    pub(super) address: Option<SocketAddr>,
    pub(super) file: Option<SocketFile>,
}

/// Binds all sockets that the settings ask for.
pub(super) fn bind(settings: &Settings) -> Result<Vec<Bound>, StartError> {
    let admin = match &settings.admin {
        Address::Tcp(address) => tcp(*address, Surface::Admin)?,
        Address::Unix(path) => unix(path, settings.unix_mode)?,
    };
    let mut all = vec![admin];
    if let Some(address) = settings.metrics {
        all.push(tcp(address, Surface::Metrics)?);
    }
    Ok(all)
}

/// Opens a socket that no child keeps.
fn open(domain: Domain) -> io::Result<Noted<Socket>> {
    let step = Step::begin();
    Ok(Noted::new(&step, Socket::new(domain, Type::STREAM, None)?))
}

fn tcp(address: SocketAddr, surface: Surface) -> Result<Bound, StartError> {
    let refused = |error| StartError::Listen(Address::Tcp(address), error);
    let listen = || {
        let socket = open(Domain::for_address(address))?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?.as_socket();
        Ok(Bound { socket, surface, address, file: None })
    };
    listen().map_err(refused)
}

fn unix(path: &Path, mode: u32) -> Result<Bound, StartError> {
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(StartError::PathTooLong(path.into()));
    }
    let refused = |error| StartError::Listen(Address::Unix(path.into()), error);
    let socket = open(Domain::UNIX).map_err(refused)?;
    let name = SockAddr::unix(path).map_err(refused)?;
    match socket.bind(&name) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path)?;
            socket.bind(&name).map_err(refused)?;
        }
        other => other.map_err(refused)?,
    }
    // No client can connect before the socket listens, so none connects with other permissions.
    let listen = || {
        let file = SocketFile::of(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(file)
    };
    let file = listen().map_err(refused)?;
    Ok(Bound { socket, surface: Surface::Admin, address: None, file: Some(file) })
}

/// Removes a socket on which no process answers.
fn remove_stale(path: &Path) -> Result<(), StartError> {
    let refused = |error| StartError::Listen(Address::Unix(path.into()), error);
    let before = std::fs::symlink_metadata(path).map_err(refused)?;
    if !before.file_type().is_socket() {
        return Err(StartError::NotASocket(path.into()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        // A process answered, or is so busy that it cannot. The socket is in use.
        _ => return Err(StartError::Taken(path.into())),
    }
    let now = std::fs::symlink_metadata(path).map_err(refused)?;
    if (now.dev(), now.ino()) != (before.dev(), before.ino()) {
        return Err(StartError::Taken(path.into()));
    }
    std::fs::remove_file(path).map_err(refused)
}

/// The file of a unix socket. Dropping it removes the file, unless another socket has replaced it.
pub(super) struct SocketFile {
    path: PathBuf,
    is: (u64, u64),
    process: u32,
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<SocketFile> {
        let file = std::fs::symlink_metadata(path)?;
        let is = (file.dev(), file.ino());
        Ok(SocketFile { path: std::path::absolute(path)?, is, process: std::process::id() })
    }
}

impl SocketFile {
    /// Removes the file, if it is still this one and this process made it.
    pub(super) fn remove(&self) {
        let file = std::fs::symlink_metadata(&self.path);
        let is = file.is_ok_and(|file| (file.dev(), file.ino()) == self.is);
        if is && self.process == std::process::id() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A socket that is listened on, in the runtime.
pub(super) enum Listener {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

/// A client's connection.
pub(super) enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

impl Listener {
    /// Must be called inside a runtime.
    pub(super) fn new(bound: Bound) -> io::Result<Noted<Listener>> {
        bound.socket.change(|socket| match bound.address {
            Some(_) => tokio::net::TcpListener::from_std(socket.into()).map(Listener::Tcp),
            None => tokio::net::UnixListener::from_std(socket.into()).map(Listener::Unix),
        })
    }

    /// Whether a client waits. Without descriptors the system says so instead of that none waits.
    pub(super) fn has_waiting(&self) -> bool {
        let fd = match self {
            Listener::Tcp(listener) => listener.as_raw_fd(),
            Listener::Unix(listener) => listener.as_raw_fd(),
        };
        let mut asked = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure on this stack frame, and no waiting.
        unsafe { libc::poll(&raw mut asked, 1, 0) != 0 }
    }

    /// Returns the connection of the next client, and who the client is.
    pub(super) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Stream, Peer)>> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = ready!(listener.poll_accept(cx))?;
                // An error only makes the connection slower.
                let _ = stream.set_nodelay(true);
                Poll::Ready(Ok((Stream::Tcp(stream), Peer::Tcp)))
            }
            Listener::Unix(listener) => {
                let (stream, _) = ready!(listener.poll_accept(cx))?;
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                Poll::Ready(Ok((Stream::Unix(stream), Peer::Unix(user))))
            }
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }
}
