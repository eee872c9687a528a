//! Regions: heaps of their own, with a method that cuts blocks and a discipline that supplies
//! memory. Source: vmalloc(3).
//!
//! ```text
//!   Region ──▶ method: Best, Last, Pool, …       which free piece becomes a block
//!                │
//!                ▼
//!              segments                          pieces of memory, by age and by address
//!                │
//!                ▼
//!              discipline: System, Heap, yours   where memory comes from
//! ```
//!
//! A region is good for what is dropped as a whole: a parsed document, the memory of a request. It
//! closes without a look at its blocks.
//!
//! The region's words between blocks carry seals, so that a block that was overrun is noticed, and
//! an address that is no block is an error and no corruption.
#![cfg_attr(not(any(test, loom)), no_std)]
#![cfg_attr(loom, allow(dead_code, unused_imports, unreachable_pub))]
#![allow(unsafe_code, reason = "blocks are raw memory")]

#[cfg(test)]
extern crate std;

#[cfg(not(loom))]
mod line;
#[cfg(not(loom))]
mod damage;
#[cfg(not(loom))]
mod errno;
#[cfg(not(loom))]
mod owner;
#[cfg(loom)]
mod owner_loom;
#[cfg(loom)]
use owner_loom as owner;
mod seam;
mod futex;
mod entry;
mod holder;
mod lock;
pub mod mode;
#[cfg(not(loom))]
mod malloc_options;
#[cfg(not(loom))]
mod words;
#[cfg(not(loom))]
mod tree;
#[cfg(not(loom))]
mod limits;
#[cfg(not(loom))]
mod random;
#[cfg(not(loom))]
mod marks;
#[cfg(not(loom))]
mod noted;
#[cfg(not(loom))]
mod stacks;
#[cfg(not(loom))]
mod position;
#[cfg(not(loom))]
mod warning;
#[cfg(not(loom))]
mod watch;
#[cfg(not(loom))]
mod usage;
#[cfg(not(loom))]
mod misuse;
#[cfg(not(loom))]
mod discipline;
#[cfg(not(loom))]
mod heap;
#[cfg(not(loom))]
mod system;
#[cfg(not(loom))]
mod segments;
mod flags;
#[cfg(not(loom))]
mod data;
#[cfg(loom)]
mod data_loom;
#[cfg(loom)]
use data_loom as data;
mod head_mode;
mod visit;
#[cfg(not(loom))]
mod method;
#[cfg(not(loom))]
mod values;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod shared_region;
#[cfg(not(loom))]
mod persistent;
#[cfg(not(loom))]
mod region;
#[cfg(not(loom))]
mod published;
#[cfg(not(loom))]
mod published_persistent;

#[cfg(not(loom))]
pub use discipline::{Discipline, Resized, Retry};
#[cfg(not(loom))]
pub use heap::Heap;
#[cfg(not(loom))]
pub use method::best::Best;
#[cfg(not(loom))]
pub use method::debug::Debug;
#[cfg(not(loom))]
pub use method::last::Last;
#[cfg(not(loom))]
pub use method::pool::Pool;
#[cfg(not(loom))]
pub use method::profile::Profile;
#[cfg(not(loom))]
pub use method::{Method, Resize, Stat};
#[cfg(not(loom))]
pub use misuse::Misuse;
#[cfg(not(loom))]
#[doc(hidden)]
pub use persistent::Kind;
#[cfg(not(loom))]
pub use persistent::{AtomicLink, Link, OpenError, Persist, Persistent};
#[cfg(not(loom))]
pub use position::Position;
#[cfg(not(loom))]
pub use published::PublishedRegion;
#[cfg(not(loom))]
pub use published_persistent::PublishedPersistent;
#[cfg(not(loom))]
pub use region::Region;
#[cfg(not(loom))]
pub use shared_region::SharedRegion;
#[cfg(not(loom))]
pub use system::System;
#[cfg(not(loom))]
pub use usage::{Shown, summary};
#[cfg(not(loom))]
pub use warning::{Action, Moment, Trouble, Warning};
#[cfg(not(loom))]
pub use watch::{watch, watch_nothing};

/// What handles for other languages are made of.
#[cfg(not(loom))]
pub mod raw {
    pub use crate::data::{Data, Head};
    pub use crate::entry::Entry;
    pub use crate::holder::Holder;
    pub use crate::line::Line;
    pub use crate::lock::Lock;
    pub use crate::malloc_options::{MallocOptions, Problem, WATCHED};
    pub use crate::marks::note_process;
    pub use crate::method::call::{Call, Form};
    pub use crate::position::Origin;
    pub use crate::shared::{FileForm, LOCKED, Mapping, Object, any_address, object_of, when_made};
    pub use crate::shared_region::begin;
    pub use crate::usage::lock as usage_lock;
    pub use crate::values::{Change, Value, change};
}
