//! What is done for nobody in particular: passes over arenas and owners, and ends.

pub(crate) mod idle_owner;
pub(crate) mod reserve;
#[allow(unsafe_code)]
pub(crate) mod arena_end;
pub(crate) mod hole_pass;
pub(crate) mod decay_pass;
