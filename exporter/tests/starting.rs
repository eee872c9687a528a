//! What keeps an exporter from starting, and what a failed start leaves behind.
mod client;

use client::{any, directory, raw_unix, request, status};
use lumalloc_exporter::{Builder, Exporter};
use std::fs::{Permissions, set_permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

fn refused(builder: Builder) -> String {
    builder.start().err().expect("it starts").to_string()
}

fn exporter() -> Builder {
    Exporter::builder().listen(any())
}

#[test]
fn a_taken_port_is_an_error() {
    let taken = TcpListener::bind(any()).unwrap();
    let address = taken.local_addr().unwrap();
    let says = format!("cannot listen on {address}: Address already in use (os error 98)");
    assert_eq!(refused(Exporter::builder().listen(address)), says);
    assert_eq!(refused(exporter().metrics_on(address)), says);
}

#[test]
fn everything_is_open_to_the_network_with_a_token_only() {
    for address in ["0.0.0.0:0", "[::]:0", "10.1.2.3:9464", "[::ffff:10.1.2.3]:9464"] {
        let says = format!(
            "cannot listen on {address}: what is not a loopback address needs a token file \
             (token:FILE in LUMALLOC_EXPORTER, token_file of the builder); metrics alone may be \
             served there without one (metrics:ADDRESS:PORT, metrics_on)"
        );
        assert_eq!(refused(Exporter::builder().listen(address.parse().unwrap())), says);
    }
    let token = directory("starting").join("token");
    std::fs::write(&token, "0123456789abcdef").unwrap();
    set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let open = Exporter::builder().listen("0.0.0.0:0".parse().unwrap());
    assert!(open.token_file(&token).start().is_ok());
    assert!(exporter().metrics_on("0.0.0.0:0".parse().unwrap()).start().is_ok());
    assert!(Exporter::builder().listen("127.9.9.9:0".parse().unwrap()).start().is_ok());
    set_permissions(&token, Permissions::from_mode(0o604)).unwrap();
    let says =
        format!("the token file {} has mode 0604; it must be 0600 or stricter", token.display());
    assert_eq!(refused(exporter().token_file(&token)), says);
}

#[test]
fn the_directory_for_dumps_is_one() {
    let place = directory("starting").join("dumps");
    let exporter_at = |place: &Path| exporter().dump_directory(place);
    let says = |reason: &str| {
        format!("cannot write to the directory for dumps {}: {reason}", place.display())
    };
    let missing = says("No such file or directory (os error 2)");
    assert_eq!(refused(exporter_at(&place)), missing);
    let service = Exporter::builder().dump_directory(&place).service();
    assert_eq!(service.err().expect("it starts").to_string(), missing);
    std::fs::write(&place, "").unwrap();
    assert_eq!(refused(exporter_at(&place)), says("Not a directory (os error 20)"));
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    assert!(exporter_at(&place).start().is_ok());
}

#[test]
fn a_socket_has_a_path_that_fits() {
    let fits = directory("starting").join("x".repeat(40));
    assert!(Exporter::builder().listen_unix(&fits).start().is_ok());
    let long = Path::new("/tmp").join("x".repeat(104));
    let says = format!(
        "cannot listen on unix:{}: the path has 109 bytes, a socket's at most 107",
        long.display()
    );
    assert_eq!(refused(Exporter::builder().listen_unix(long)), says);
    let says = "cannot listen on unix:/nonexistent/x: No such file or directory (os error 2)";
    assert_eq!(refused(Exporter::builder().listen_unix("/nonexistent/x")), says);
}

fn healthy(path: &Path) -> u16 {
    status(&raw_unix(path, &request("GET", "/-/healthy", "anything", "")))
}

#[test]
fn a_stale_socket_is_replaced_and_ours_removed() {
    let path = directory("starting").join("stale");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the socket is stale");
    let running = Exporter::builder().listen_unix(&path).start().unwrap();
    assert!(running.address().is_none());
    assert_eq!(healthy(&path), 200);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    drop(running);
    assert!(!path.exists(), "the socket is still there");
    let open = Exporter::builder().listen_unix(&path).unix_mode(0o666).start().unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666);
    drop(open);
}

#[test]
fn what_is_somebody_elses_stays() {
    let path = directory("starting").join("answered");
    let other = UnixListener::bind(&path).unwrap();
    let says = format!("cannot listen on unix:{}: another process answers on it", path.display());
    assert_eq!(refused(Exporter::builder().listen_unix(&path)), says);
    drop(other);
    let file = directory("starting").join("file");
    std::fs::write(&file, "kept").unwrap();
    let says =
        format!("cannot listen on unix:{}: something that is no socket is there", file.display());
    assert_eq!(refused(Exporter::builder().listen_unix(&file)), says);
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
}

/// A server that has replaced the socket at the path keeps its socket.
#[test]
fn a_socket_that_was_replaced_stays() {
    let path = directory("starting").join("replaced");
    let running = Exporter::builder().listen_unix(&path).start().unwrap();
    std::fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(running);
    assert!(path.exists());
    drop(other);
}
