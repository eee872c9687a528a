//! The beginning and end of the process's allocator, of threads and of scopes; forks; and the
//! background thread.

mod may_start;
pub(crate) mod give_back;
mod idle_caches;
mod quiet;
#[allow(unsafe_code)]
pub(crate) mod helper;
mod trim;
mod prompt_purge;
pub(crate) mod background_runs;
pub(crate) mod automatic;
pub(crate) mod most_threads;
pub(crate) mod former_thread;
pub(crate) mod background;
#[allow(unsafe_code)]
pub(crate) mod thread_end;
#[allow(unsafe_code)]
pub(crate) mod fork_lock;
#[allow(unsafe_code)]
pub(crate) mod explicit;
pub(crate) mod started;
#[allow(unsafe_code)]
pub(crate) mod fork;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod process_exit;
#[allow(unsafe_code)]
pub(crate) mod start;
pub(crate) mod thread_begin;
pub(crate) mod scope;
