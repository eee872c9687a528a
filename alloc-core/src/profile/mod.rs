//! Samples of allocations: which are taken, from where they were asked for, and which are live. And
//! the events of the heap monitor.
//!
//! ```text
//!   front ──▶ sampler ──▶ backtrace ──▶ sites: stacks, counts by size
//!                │                        ▲
//!                ├──────▶ live ───────────┘  samples in use, by address
//!                ├──────▶ history             the last ones, and a log of freed ones
//!                ├──────▶ hooks               functions of the program
//!                └──────▶ names               names of threads
//!
//!   front ──▶ recorder ──▶ event_buffer         each allocation and each free
//! ```

pub(crate) mod rate;
#[allow(unsafe_code)]
pub(crate) mod backtrace;
#[allow(unsafe_code)]
pub(crate) mod names;
#[allow(unsafe_code)]
pub(crate) mod hooks;
#[allow(unsafe_code)]
mod heads;
#[allow(unsafe_code)]
mod hash_table;
mod notice;
mod stack_depth;
#[allow(unsafe_code)]
pub(crate) mod sites;
pub(crate) mod event;
#[allow(unsafe_code)]
pub(crate) mod event_buffer;
#[allow(unsafe_code)]
pub(crate) mod recorder;
#[allow(unsafe_code)]
pub(crate) mod history;
#[allow(unsafe_code)]
pub(crate) mod live;
#[allow(unsafe_code)]
pub(crate) mod sampler;
