//! Arenas: their pages, bins and settings, and the choice of one.

pub(crate) mod arena_name;
pub(crate) mod entries;
pub(crate) mod purge_gate;
pub(crate) mod bin;
pub(crate) mod arena_life;
pub(crate) mod arena_pages;
#[allow(unsafe_code)]
pub(crate) mod arena;
pub(crate) mod arena_settings;
#[allow(unsafe_code)]
pub(crate) mod arena_list;
pub(crate) mod arena_hooks;
#[allow(unsafe_code)]
pub(crate) mod home_arena;
pub(crate) mod choose_arena;
pub(crate) mod large;
