//! Arenas: their pages, bins and settings, and the choice of one.

#[cfg(not(loom))]
pub(crate) mod arena_name;
#[cfg(not(loom))]
pub(crate) mod entries;
#[cfg(not(loom))]
pub(crate) mod purge_gate;
#[cfg(not(loom))]
pub(crate) mod bin;
#[cfg_attr(loom, allow(unsafe_code))]
pub(crate) mod arena_life;
#[cfg(not(loom))]
pub(crate) mod arena_pages;
#[cfg(not(loom))]
pub(crate) mod arena_purge;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod arena;
#[cfg(not(loom))]
pub(crate) mod arena_settings;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod arena_list;
#[cfg(not(loom))]
pub(crate) mod arena_hooks;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod home_arena;
#[cfg(not(loom))]
pub(crate) mod choose_arena;
#[cfg(not(loom))]
pub(crate) mod large;
