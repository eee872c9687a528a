//! Regions for C: the names of `vmalloc.h`. Source: vmalloc(3).
//!
//! ```text
//!   vmalloc(vm, size)       calls
//!        │
//!        ▼
//!   handle with a table     kinds: Best, Last, Pool over lumalloc-region, and Vmheap over malloc
//!        │
//!        ▼
//!   lock, region            inside: one call, which is in the region
//!        │
//!        ▼
//!   Vmdisc_t                disciplines: memoryf, exceptf
//! ```
//!
//! The folder has a module for each step, from the layouts of C up to the functions.

mod abi;
mod disciplines;
mod inside;

mod position;
mod trace;
mod kinds;
mod list;

mod fork;
pub mod open;
pub mod calls;
pub mod information;
pub mod malloc;

pub use disciplines::{Vmdcheap, Vmdcsbrk, Vmdcsystem};
pub use kinds::{Vmbest, Vmheap, Vmlast, Vmpool};
pub use position::vmfileline;
pub use trace::vmtrace;
