//! Regions for C: the names of `vmalloc.h`. Source: vmalloc(3).
//!
//! ```text
//!   vmalloc(vm, size)       calls
//!        │
//!        ▼
//!   handle with a table     kinds: those of lumalloc-region, and Vmheap over malloc
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
mod shared;
mod disciplines;

mod position;
mod own_file;
mod trace;
mod warnings;
mod inside;
mod kinds;
mod index;
mod list;

mod vmregion;

mod fork;
mod publish;
pub mod open;
pub mod mmopen;
pub mod calls;
pub mod information;
pub mod profile;
pub mod malloc;

pub use disciplines::{Vmdcheap, Vmdcsbrk, Vmdcsystem};
pub use kinds::{Vmbest, Vmdebug, Vmheap, Vmlast, Vmpool, Vmprofile};
pub use position::vmfileline;
pub use publish::vmname;
pub use trace::{vmtrace, vmtracetimed};
pub use vmregion::Vmregion;
pub use warnings::{vmdbwatch, vmdebug};
