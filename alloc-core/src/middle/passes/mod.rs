//! Work that no request asks for: passes over arenas and owners, and the end of arenas.

pub(crate) mod idle_owner;
#[allow(unsafe_code)]
pub(crate) mod arena_end;
pub(crate) mod hole_pass;
#[cfg(feature = "checks")]
pub(crate) mod check_pass;
pub(crate) mod decay_pass;
pub(crate) mod reserve;
