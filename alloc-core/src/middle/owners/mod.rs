//! What a thread cache owns.

pub(crate) mod run_cache;
#[allow(unsafe_code)]
pub(crate) mod ledger;
#[allow(unsafe_code)]
pub(crate) mod overflow;
#[allow(unsafe_code)]
pub(crate) mod owner;
