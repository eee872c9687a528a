//! Placement of new runs: which memory they take, where they end, and how they grow.

pub(crate) mod memory;
pub(crate) mod huge_page_policy;
pub(crate) mod untouched;
pub(crate) mod expand;
#[allow(unsafe_code)]
pub(crate) mod moves;
pub(crate) mod long_block;
pub(crate) mod evidence;
#[allow(unsafe_code)]
pub(crate) mod assembly;
pub(crate) mod dense;
pub(crate) mod unused;
pub(crate) mod fresh;
