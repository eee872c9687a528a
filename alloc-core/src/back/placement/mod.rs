//! Where a new run goes: which memory, what its end takes, and how it grows.

pub(crate) mod untouched;
pub(crate) mod huge_end;
pub(crate) mod memory;
#[allow(unsafe_code)]
pub(crate) mod moves;
pub(crate) mod block_end;
#[allow(unsafe_code)]
pub(crate) mod extension;
#[allow(unsafe_code)]
pub(crate) mod assembly;
pub(crate) mod dense;
pub(crate) mod fresh;
