//! The hardened tier (`opt.hardened`): misuse is looked for at each call, and made harder to use.
//!
//! - [`canary`]: the last 8 bytes of each small block are ours, so that an overflow, a second free
//!   and a wrong size end the process at the free;
//! - [`quarantine`]: a freed block of up to 1 KiB is zeroed, and trades places with an earlier one;
//! - [`order`]: a refill's blocks are shuffled, so that neighbours in time are not in space;
//! - [`wipe`]: the zeroes and the broken seal, in few stores.
//!
//! All of it is behind a façade (`front/cache/facade.rs`): the fast paths know nothing of it. Its
//! malloc and free are `front/miss/sealed.rs`.

pub(crate) mod random;
pub(crate) mod canary;
pub(crate) mod wipe;
pub(crate) mod order;
pub(crate) mod quarantine;
