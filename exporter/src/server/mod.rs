//! The server: its own named thread and small runtime, listeners, connections and their limits.
mod connection;
#[allow(unsafe_code, reason = "what a forked child does")]
mod fork;
#[allow(unsafe_code, reason = "whether a client waits")]
mod listener;
mod phase;
mod places;
mod thread;
mod watched;

pub(crate) use thread::{Running, start};
