//! Samples of allocations: which are taken, from where they were asked for, and which are live.
//!
//! ```text
//!   front ──▶ sampler ──▶ backtrace ──▶ sites: stacks, counts by size
//!                │                        ▲
//!                ├──────▶ live ───────────┘  samples in use, by address
//!                ├──────▶ hooks               functions of the program
//!                └──────▶ names               names of threads
//! ```

pub(crate) mod rate;
#[allow(unsafe_code)]
pub(crate) mod backtrace;
#[allow(unsafe_code)]
pub(crate) mod names;
#[allow(unsafe_code)]
pub(crate) mod hooks;
#[allow(unsafe_code)]
pub(crate) mod sites;
#[allow(unsafe_code)]
pub(crate) mod live;
#[allow(unsafe_code)]
pub(crate) mod sampler;
