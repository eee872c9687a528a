//! The parts of the shadow map's test.
//!
//! Each test program uses some of them.
#![allow(dead_code)]

pub(crate) mod map;
pub(crate) mod op;
pub(crate) mod traffic;
pub(crate) mod world;
