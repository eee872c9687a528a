//! The hardened tier (`opt.hardened`): misuse is looked for at each call, and is harder to exploit.
//!
//! - [`canary`]: the last 8 bytes of each small block belong to the allocator, so that an overflow,
//!   a second free and a wrong size end the process at the free;
//! - [`slack`]: the bytes between the requested ones and the canary are part of it;
//! - [`large_canary`]: bytes behind the requested ones of a large block are a canary too;
//! - [`quarantine`]: a freed block of up to 1 KiB is swapped with an earlier freed block;
//! - [`order`]: the blocks of a refill are shuffled, so that blocks allocated one after the other
//!   are not neighbours in memory;
//! - [`sweep`]: a look at all blocks when a process of one thread exits;
//! - [`wipe`]: zeroes a freed block of any length and breaks its seal in few stores.
//!
//! The tier works behind a façade (`front/cache/facade.rs`), without a test on the fast paths. Its
//! malloc and free are in `front/miss/sealed.rs`.

pub(crate) mod random;
pub(crate) mod slack;
pub(crate) mod canary;
pub(crate) mod large_canary;
pub(crate) mod wipe;
pub(crate) mod sweep;
pub(crate) mod order;
pub(crate) mod quarantine;
