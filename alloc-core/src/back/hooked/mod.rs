//! Pages that come from functions of the program.

#[allow(unsafe_code)]
pub(crate) mod hooks;
#[allow(unsafe_code)]
pub(crate) mod hook_calls;
pub(crate) mod hook_requests;
pub(crate) mod hooked_pages;
