//! The parts of the shadow map's test.

pub(crate) mod map;
pub(crate) mod op;
pub(crate) mod traffic;
pub(crate) mod world;
