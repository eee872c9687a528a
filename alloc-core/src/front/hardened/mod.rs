//! The hardened tier (`opt.hardened`): misuse is looked for at each call, and made harder to use.
//!
//! - [`canary`]: the last 8 bytes of each small block are ours, so that an overflow, a second free
//!   and a wrong size end the process at the free;
//! - [`quarantine`]: a freed block of up to 1 KiB is zeroed, and trades places with an earlier one;
//! - [`order`]: a refill's blocks are shuffled, so that neighbours in time are not in space;
//! - [`wipe`] and [`calls`]: the same at a price that people pay.
//!
//! All of it is behind a [`Facade`](super::facade::Facade): the fast paths know nothing of it.

pub(crate) mod random;
pub(crate) mod canary;
pub(crate) mod wipe;
pub(crate) mod order;
pub(crate) mod quarantine;
pub(crate) mod calls;
