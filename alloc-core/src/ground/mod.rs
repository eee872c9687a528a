//! The foundation of all tiers: units, size classes, locks, options, messages, fatal errors.
//!
//! Imports nothing from the other tiers.

pub(crate) mod units;
#[allow(unsafe_code)]
pub(crate) mod probes;
#[allow(unsafe_code)]
pub(crate) mod weak;
pub(crate) mod low;
#[allow(unsafe_code)]
pub(crate) mod checked;
#[allow(unsafe_code)]
pub(crate) mod in_register;
#[allow(unsafe_code)]
pub(crate) mod in_place;
pub(crate) mod size_class;
#[cfg(not(loom))]
pub(crate) mod operator;
#[cfg(not(loom))]
pub(crate) mod geometric;
#[cfg(not(loom))]
pub(crate) mod shared_random;
pub(crate) mod counters;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod seen;
#[cfg(not(loom))]
pub(crate) mod heap_sort;
pub(crate) mod calls;
#[allow(unsafe_code)]
pub(crate) mod system_calls;
#[allow(unsafe_code)]
pub(crate) mod os;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod stream_list;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod raised_signals;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod process;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod untouchable;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod callback;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod own_thread;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod signal;
#[cfg(not(loom))]
pub(crate) mod text;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod files;
#[cfg(not(loom))]
pub(crate) mod own_files;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod message;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod loaded_file;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod trace;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod fatal;
#[cfg(not(loom))]
pub(crate) mod guarded_fatal;
#[cfg(any(test, feature = "checks"))]
pub(crate) mod holds;
pub(crate) mod sync;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod cpu_quota;
#[cfg(not(loom))]
pub(crate) mod memory_quota;
#[cfg(not(loom))]
pub(crate) mod cache_limits;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod options;
#[cfg(not(loom))]
pub(crate) mod warning;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod intervals;
#[cfg(not(loom))]
pub(crate) mod fill_mode;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod prof_prefix;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod conf_record;
#[cfg(not(loom))]
pub(crate) mod conf_table;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod conf;
#[cfg(not(loom))]
pub(crate) mod conf_check;
