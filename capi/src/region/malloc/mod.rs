//! malloc over regions. Source: vmalloc(3), Malloc-compatible functions.
//!
//! ```text
//!   malloc, free, …
//!        │  fast: the thread's cache
//!        ▼
//!   a slow path of the core ──asks──▶ divert: is Vmregion another region than Vmheap, or traced?
//!                                        │ then calls go to it, from then on
//!                                        ▼
//!                                     the region, by its handle's table
//! ```
//!
//! The arenas that threads open for themselves are the further regions of vmalloc(3).

mod arenas;
mod output;
mod checks;
mod start;
mod divert;

pub use arenas::setregmax;
pub use divert::vmfilelinemalloc;
pub use start::{begin, end};
