//! `arena.*`. Made from the rows of the namespace.

use crate::std_api::key::{Act, Key};

/// `arena.<i>.purge`: gives all unused pages of the arena back to the system; index 4096 means all
/// arenas.
pub const PURGE: Key<Act, 1> = Key::new("arena.<i>.purge");
