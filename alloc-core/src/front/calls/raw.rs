//! malloc, free and realloc, as the C and Rust interfaces call them.
//!
//! Without memory a function returns null with `errno` set to ENOMEM (or ends the process under
//! `opt.xmalloc`). Success never changes `errno`, and no free does. Source: jemalloc(3), POSIX.

pub use super::flags::{
    Flags, allocate, deallocate, deallocate_sized, reallocate, resize_in_place,
};
pub use super::free::{
    free, free_by, free_sized, free_sized_aligned, free_sized_aligned_by, free_sized_by,
};
pub use super::growth::{free_roomy, realloc_roomy, stays};
pub use super::malloc::{malloc, malloc_aligned, malloc_aligned_by, malloc_by};
pub use super::query::{block_size, good_size, is_ours, usable_size};
pub use super::realloc::{realloc, realloc_aligned};
pub use super::zeroed::{malloc_aligned_zeroed, malloc_zeroed};
pub use crate::front::modes::operators::compare_operators;
pub use crate::ground::operator::Operator;
