//! What everything stands on: units, size classes, words of bits, locks, options, last words.
//!
//! Imports nothing from the tiers above.

#[allow(unsafe_code)]
pub(crate) mod checked;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod conf;
#[cfg(not(loom))]
pub(crate) mod conf_table;
#[cfg(not(loom))]
pub(crate) mod counters;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod cpu_quota;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod fatal;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod message;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod options;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod os;
pub(crate) mod size_class;
pub(crate) mod sync;
#[cfg(not(loom))]
pub(crate) mod text;
pub(crate) mod units;
