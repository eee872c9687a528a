//! What a thread cache owns.

pub(crate) mod run_cache;
#[allow(unsafe_code)]
pub(crate) mod ledger;
#[allow(unsafe_code)]
pub(crate) mod depot;
pub(crate) mod neighbour;
#[allow(unsafe_code)]
pub(crate) mod owner;
