//! The server: its own named thread and small runtime, listeners, connections and their limits.
mod connection;
mod listener;
mod thread;

pub(crate) use thread::{Running, start};
