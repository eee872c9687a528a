//! Recordings of the heap monitor: each allocation and each deletion with its thread, time and stack.

#[cfg(test)]
mod testing;
mod source;
mod chunks;
mod mappings;
mod stacks;
mod index;
mod decoder;
mod merge;
mod old;
mod recording;
mod names;
mod filter;
mod ledger;
mod selection;
mod stop;
mod lines;

pub use filter::{Filter, Old, Range, Thread};
pub use index::{Message, Process};
pub use lines::lines;
pub use names::Names;
pub use recording::Recording;
pub use regex::Regex;
pub use stop::Stop;
