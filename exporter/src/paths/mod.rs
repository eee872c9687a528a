//! The paths that are served, with one file for each.
pub(crate) mod ctl;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod dumps;
pub(crate) mod flame_graph;
pub(crate) mod health;
pub(crate) mod map;
pub(crate) mod metrics;
pub(crate) mod monitor;
pub(crate) mod page;
pub(crate) mod pprof;
pub(crate) mod profile;
pub(crate) mod stats;
