//! lumalloc over HTTP: metrics for Prometheus, statistics and settings for people on call.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use lumalloc_exporter::Exporter;
//!
//! let exporter = Exporter::builder().listen("127.0.0.1:9464".parse()?).start()?;
//! # drop(exporter);
//! # Ok(())
//! # }
//! ```
//!
//! A request passes through the files in this order, which is also the order to read them in:
//!
//! ```text
//!  builder → server (thread, listeners, connections, who may ask)
//!                │
//!             dispatch → routes: the table of all paths
//!                │              │
//!             worker: one thread that reads the allocator
//!                               │
//!             paths (a file each) → metrics, namespace
//! ```
//!
//! The exporter gathers no numbers in the background. It makes each answer from the allocator's own
//! numbers when a client asks for it.

pub mod address;
pub mod answer;
pub(crate) mod asked;
pub mod builder;
pub(crate) mod chores;
#[allow(unsafe_code, reason = "whether a client has left")]
pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod countdown;
pub mod counts;
pub(crate) mod deadline;
pub(crate) mod dispatch;
pub(crate) mod format;
pub(crate) mod own_files;
pub(crate) mod symbols;
pub(crate) mod frames;
pub(crate) mod guard;
#[allow(unsafe_code, reason = "a file in memory")]
pub(crate) mod heap_profile;
pub(crate) mod lines;
#[allow(unsafe_code, reason = "mappings of the system")]
pub(crate) mod memory;
pub mod metrics;
#[allow(unsafe_code, reason = "text from a C callback")]
pub mod namespace;
pub(crate) mod negotiate;
pub(crate) mod paths;
pub(crate) mod query;
#[allow(unsafe_code, reason = "masks of signals")]
pub(crate) mod quiet_thread;
#[allow(unsafe_code, reason = "the table of descriptors")]
pub(crate) mod descriptors;
pub(crate) mod regions;
pub(crate) mod ring;
pub(crate) mod route;
pub(crate) mod route_names;
pub(crate) mod routes;
#[allow(unsafe_code, reason = "standard error")]
pub mod say;
pub(crate) mod server;
pub mod service;
pub mod settings;
pub(crate) mod single_flight;
pub(crate) mod snapshot;
pub mod start_error;
#[cfg(test)]
pub(crate) mod testing;
pub mod token;
pub(crate) mod unsent;
#[allow(unsafe_code, reason = "the user of this process")]
pub(crate) mod user;
pub mod wish;
pub(crate) mod worker;

pub use builder::{Builder, Exporter};
pub use metrics::Collector;
pub use service::Service;
pub use settings::Limits;
pub use start_error::StartError;
