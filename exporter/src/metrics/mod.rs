//! Metrics: the table of families, one consistent reading of them, and the formats.
//!
//! ```text
//!  families: the table
//!     │
//!  reading: one snapshot, by reader (keys by name), made (what no key has), arenas, residence
//!     │
//!  settle: counters never go back, arenas keep their labels
//!     │
//!  text, openmetrics, Collector
//! ```
//!
//! Nothing is counted here, and nothing is read between scrapes. All numbers are the allocator's,
//! from a snapshot that is taken for the scrape.
mod arenas;
mod collector;
mod families;
pub(crate) mod family;
pub(crate) mod group;
mod kinds;
mod made;
mod monotone;
pub(crate) mod openmetrics;
mod own;
mod reader;
mod reading;
mod regions;
mod residence;
pub(crate) mod sample;
mod settle;
#[allow(unsafe_code, reason = "clocks and numbers of the system")]
pub(crate) mod system;
pub(crate) mod text;
mod tracker;

#[cfg(test)]
mod clients_test;
#[cfg(test)]
#[allow(unsafe_code, reason = "blocks of the allocator")]
mod gather_test;
#[cfg(test)]
mod golden_test;
#[cfg(test)]
mod lint_test;

pub(crate) use arenas::OVERFLOW;
pub use collector::Collector;
pub use families::families;
pub use family::Family;
pub use group::Group;
pub(crate) use group::Groups;
pub use kinds::{Kind, Unit};
pub(crate) use settle::{Metrics, Served};
