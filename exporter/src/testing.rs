//! Requests and answers without a socket.
use crate::answer::Answer;
use crate::asked::Asked;
use crate::context::Context;
use crate::namespace::{Linked, Namespace};
use crate::routes;
use crate::settings::Settings;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use lumalloc_ctl::{Buffers, Error};
use lumalloc_namespace::MAX_DEPTH;
use lumalloc_namespace::heap_map::Part;
use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker};

/// The tests run on the allocator that they read.
#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// Returns the context of an exporter of this executable, with the default settings.
pub(crate) fn context() -> Arc<Context> {
    Context::new(&Linked, Settings::default(), routes::names())
}

/// Returns the request `GET path`.
pub(crate) fn get(path: &str) -> Asked {
    Request::get(path).body(Bytes::new()).expect("a path")
}

/// Returns the request `POST path` with a body.
pub(crate) fn post(path: &str, body: &str) -> Asked {
    Request::post(path).body(Bytes::copy_from_slice(body.as_bytes())).expect("a path")
}

/// Returns the status and the text of an answer.
pub(crate) fn said(answer: Answer) -> (u16, String) {
    let status = answer.status().as_u16();
    let collected = std::pin::pin!(answer.into_body().collect());
    match collected.poll(&mut Task::from_waker(Waker::noop())) {
        Poll::Ready(Ok(body)) => {
            (status, String::from_utf8(body.to_bytes().to_vec()).expect("UTF-8"))
        }
        _ => panic!("a whole body is there at once"),
    }
}

/// Returns the JSON of an answer, whose status must be 200.
#[track_caller]
pub(crate) fn json(answer: Answer) -> serde_json::Value {
    let (status, text) = said(answer);
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

/// An allocator in which no key exists.
pub(crate) struct Mute;

impl Namespace for Mute {
    fn mib(&self, _: &str, _: &mut [usize; MAX_DEPTH]) -> Result<usize, Error> {
        Err(Error::NoEntry)
    }

    #[allow(unsafe_code, reason = "the trait has it so")]
    unsafe fn call(&self, _: &[usize], _: Buffers) -> Result<(), Error> {
        Err(Error::NoEntry)
    }

    fn print(&self, _: &CStr) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    fn map(&self, _: Part) -> Result<Vec<u8>, Error> {
        Err(Error::NoEntry)
    }

    fn map_at(&self, _: usize) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}

/// A directory that is removed at the end of the test.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("lumalloc-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a directory");
        Directory(path)
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).expect("the directory");
        files.map(|file| file.expect("an entry").path()).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the context of an exporter that writes dumps to this directory.
pub(crate) fn into(directory: Option<&Path>) -> Arc<Context> {
    let settings =
        Settings { dump_directory: directory.map(Path::to_path_buf), ..Settings::default() };
    Context::new(&Linked, settings, routes::names())
}
