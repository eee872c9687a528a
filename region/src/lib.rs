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
#![cfg_attr(not(test), no_std)]
#![allow(unsafe_code, reason = "blocks are raw memory")]

#[cfg(test)]
extern crate std;

mod line;
mod damage;
mod errno;
mod owner;
mod lock;
pub mod mode;
mod malloc_options;
mod words;
mod tree;
mod random;
mod stacks;
mod position;
mod warning;
mod watch;
mod usage;
mod misuse;
mod discipline;
mod heap;
mod system;
mod segments;
mod data;
mod visit;
mod call;
mod method;
mod values;
mod shared;
mod shared_region;
mod persistent;
mod region;
mod published;
mod published_persistent;

pub use discipline::{Discipline, Resized, Retry};
pub use heap::Heap;
pub use method::best::Best;
pub use method::debug::Debug;
pub use method::last::Last;
pub use method::pool::Pool;
pub use method::profile::Profile;
pub use method::{Method, Resize, Stat};
pub use misuse::Misuse;
pub use persistent::{AtomicLink, Link, OpenError, Persist, Persistent};
pub use position::Position;
pub use published::PublishedRegion;
pub use published_persistent::PublishedPersistent;
pub use region::Region;
pub use shared_region::SharedRegion;
pub use system::System;
pub use usage::{Shown, summary};
pub use warning::{Action, Moment, Trouble, Warning};
pub use watch::{watch, watch_nothing};

/// What handles for other languages are made of.
pub mod raw {
    pub use crate::call::{Call, Form};
    pub use crate::data::{Data, Head};
    pub use crate::line::Line;
    pub use crate::lock::{Entry, Holder, Lock};
    pub use crate::malloc_options::{MallocOptions, Problem, WATCHED};
    pub use crate::owner::note as note_process;
    pub use crate::position::Origin;
    pub use crate::shared::{FileForm, Mapping, Object, any_address, object_of};
    pub use crate::shared_region::begin;
    pub use crate::usage::lock as usage_lock;
    pub use crate::values::{Change, Value, change};
}
