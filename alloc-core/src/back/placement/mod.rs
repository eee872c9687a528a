//! Placement of new runs: which memory they take, where they end, and how they grow.

pub(crate) mod untouched;
pub(crate) mod huge_end;
pub(crate) mod memory;
#[allow(unsafe_code)]
pub(crate) mod moves;
pub(crate) mod block_end;
#[allow(unsafe_code)]
pub(crate) mod assembly;
pub(crate) mod dense;
pub(crate) mod fresh;
