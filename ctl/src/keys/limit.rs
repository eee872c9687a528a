//! `limit.*`. Made from the rows of the namespace.

use crate::key::{Bytes, Key, Read, ReadWrite, Write};

/// `limit.callback`: asked at a hard bound, under no lock: true if it freed anything; arena 4096
/// means all.
pub const CALLBACK: Key<Bytes> = Key::new("limit.callback");

/// `limit.hard` (bytes): beyond it: purge, limit.callback, then NULL and ENOMEM; 0: none; EBUSY
/// below limit.held.
pub const HARD: Key<ReadWrite<usize>> = Key::new("limit.hard");

/// `limit.hard_forced` (bytes): writes limit.hard, also below limit.held: what needs new pages
/// fails until enough is freed.
pub const HARD_FORCED: Key<Write<usize>> = Key::new("limit.hard_forced");

/// `limit.hard_reached` (count): times that limit.hard or an arena's own refused pages, whether
/// room was made or not.
pub const HARD_REACHED: Key<Read<u64>> = Key::new("limit.hard_reached");

/// `limit.held` (bytes): bytes held now, as limit.hard counts them: with stats.holes, which
/// limit.soft leaves out.
pub const HELD: Key<Read<usize>> = Key::new("limit.held");

/// `limit.soft` (bytes): reaching it purges unused pages; 0: none; 95 % of the container's memory
/// unless written.
pub const SOFT: Key<ReadWrite<usize>> = Key::new("limit.soft");

/// `limit.soft_reached` (count): times that limit.soft was reached.
pub const SOFT_REACHED: Key<Read<u64>> = Key::new("limit.soft_reached");
