//! What a profile shows, as text for a terminal and in the formats of other programs.

mod value;
mod tally;
mod texts;
mod rows;
mod format;
mod table;
mod totals;
mod overview;
mod folded;
mod dhat;
mod json;

pub use dhat::dhat;
pub use folded::{Shown, folded, folded_difference, sites, stacks};
pub use format::Bytes;
pub(crate) use format::percent;
pub use json::{json, json_difference};
pub(crate) use overview::frames as stack_lines;
pub use overview::{Options, difference, overview};
pub use rows::By;
pub(crate) use rows::place;
pub(crate) use table::Table;
pub(crate) use tally::{Tally, known};
pub use value::Value;
