//! The demonstration's service: an HTTP key-value store of the usual kind.
//!
//! [`store`] keeps the values within a bound of memory, [`handler`] answers HTTP requests, [`keys`]
//! says which names are allowed, [`stats`] reports what the process and its allocator use,
//! [`leak`] leaks when that is asked for, and [`exporter`] shows the allocator. This module accepts
//! connections on tokio's multi-threaded runtime.

mod exporter;
mod handler;
mod keys;
mod leak;
pub(crate) mod process;
pub(crate) mod stats;
mod store;
#[allow(unsafe_code)] // mallinfo2 of the C library
mod system_heap;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use lumalloc_exporter::Exporter;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, TcpStream};

use crate::arguments::ServeArguments;
use crate::failure::{Failure, Outcome, no_runtime, reason};
use handler::Service;
use store::Store;

/// The largest value, in bytes.
pub(crate) const MAX_VALUE: usize = 64 << 10;

/// The line with which the service says that it listens.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listening {
    /// The port on 127.0.0.1.
    pub(crate) port: u16,
    /// The address on which the allocator is shown.
    pub(crate) exporter: Option<SocketAddr>,
}

/// Serves until standard input ends, which happens when the parent is gone.
pub(crate) fn serve(arguments: &ServeArguments) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| no_runtime(&error))?;
    let ttl = Duration::from_secs(arguments.ttl.into());
    let store = Store::new((arguments.memory as usize) << 20, ttl);
    let exporter = exporter::start(arguments)?;
    let shown = exporter.as_ref().and_then(Exporter::address);
    runtime.block_on(listen(arguments.port, shown, Arc::new(Service::new(store, arguments.leak))))
}

async fn listen(port: u16, exporter: Option<SocketAddr>, service: Arc<Service>) -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| refused(port, &error))?;
    let port = listener.local_addr().map_err(|error| Failure::new(error.to_string()))?.port();
    tokio::spawn(accept(listener, Arc::clone(&service)));
    tokio::spawn(sweep(service));
    say(&Listening { port, exporter })?;
    end_of_input().await
}

/// Why the service cannot listen.
fn refused(port: u16, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AddrInUse => Failure::new(format!("port {port} is already taken")),
        _ => Failure::new(format!("cannot listen on port {port}: {}", reason(error))),
    }
}

async fn accept(listener: TcpListener, service: Arc<Service>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(stream, Arc::clone(&service)))),
            // There are no descriptors left, or the connection is gone already. Wait a little and
            // go on.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Answers all requests of one connection.
async fn converse(stream: TcpStream, service: Arc<Service>) {
    // Without it the answer may leave later, but the connection works.
    let _ = stream.set_nodelay(true);
    let answer = service_fn(|request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, std::convert::Infallible>(service.answer(request).await) }
    });
    // A peer that breaks off affects no other connection.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

/// Drops values that are older than their time to live, once a second.
async fn sweep(service: Arc<Service>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        service.store.sweep(Instant::now());
    }
}

/// Writes one line of JSON for the parent.
pub(crate) fn say(message: &impl Serialize) -> Outcome {
    let mut line = serde_json::to_string(message).expect("plain data is always JSON");
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::new(format!("the demonstration is gone: {}", reason(&error))))
}

/// Waits until the parent closes our standard input, on purpose or because it died.
pub(crate) async fn end_of_input() -> Outcome {
    let input = io::stdin().as_fd().try_clone_to_owned().and_then(pipe::Receiver::from_owned_fd);
    let Ok(mut input) = input else {
        return Err(Failure::new("this is a part of the demonstration; run lumalloc instead"));
    };
    let mut ignored = [0; 64];
    while let Ok(1..) = input.read(&mut ignored).await {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_the_system_refuses_is_said() {
        let said = |error| refused(80, &io::Error::from_raw_os_error(error)).message;
        assert_eq!(said(libc::EACCES), "cannot listen on port 80: permission denied");
        assert_eq!(said(libc::EADDRINUSE), "port 80 is already taken");
    }
}
