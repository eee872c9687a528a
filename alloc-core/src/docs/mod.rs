//! The long documents. Links in them must resolve, or the build of the documentation fails.

#[doc = include_str!("memory_orders.md")]
pub(crate) mod memory_orders {}
#[doc = include_str!("lock_order.md")]
pub(crate) mod lock_order {}
#[doc = include_str!("glossary.md")]
pub(crate) mod glossary {}
#[doc = include_str!("decisions.md")]
pub(crate) mod decisions {}
