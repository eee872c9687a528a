//! Every key of the namespace as a typed constant, by branch: `arena.<i>.purge` is
//! `keys::arena::PURGE`, and wants its index by `at`. Made from the rows.

use crate::key::{Key, Read, ReadWrite};
use crate::typed::Text;

/// `background_thread`: whether a thread of the library that purges unused pages is kept; false in
/// a forked child.
pub const BACKGROUND_THREAD: Key<ReadWrite<bool>> = Key::new("background_thread");

/// `background_thread_auto`: whether a temporary thread purges when use has fallen far; writing
/// false to background_thread turns this off too.
pub const BACKGROUND_THREAD_AUTO: Key<ReadWrite<bool>> = Key::new("background_thread_auto");

/// `epoch` (count): any write takes a new snapshot of the statistics and counts up; reads give the
/// count.
pub const EPOCH: Key<ReadWrite<u64>> = Key::new("epoch");

/// `max_background_threads` (count): most background threads: 1 to opt.max_background_threads; one
/// is all there ever is.
pub const MAX_BACKGROUND_THREADS: Key<ReadWrite<usize>> = Key::new("max_background_threads");

/// `version`: version of the library.
pub const VERSION: Key<Read<Text>> = Key::new("version");

pub mod approximate_stats;

pub mod arena;

pub mod arenas;

pub mod config;

pub mod ctl;

pub mod experimental;

pub mod fill;

pub mod limit;

pub mod monitor;

pub mod mprof;

pub mod opt;

pub mod prof;

pub mod stats;

pub mod tcache;

pub mod thread;

pub mod vm;
