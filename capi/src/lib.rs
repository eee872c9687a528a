//! lumalloc for C and C++: `liblumalloc.so` and `liblumalloc.a`.
//!
//! This is the only crate of the workspace that exports C names. `include/lumalloc.h` documents
//! each of them for callers, and `tests/golden/exported-symbols.txt` lists them.
//!
//! | module | names |
//! |---|---|
//! | [`standard`] | `malloc`, `calloc`, `realloc`, `free`, the aligned functions, the sized frees |
//! | [`glibc`] | `malloc_trim`, `mallinfo`, `mallopt`, `malloc_stats`, `malloc_info` |
//! | [`allocx`] | `mallocx` and the other `*allocx` functions |
//! | [`mallctl`] | `mallctl`, `mallctlnametomib`, `mallctlbymib`, `malloc_stats_print` |
//! | [`mprof`] | `set_mprof_autosave`, `mprof_stop`, `mprof_restart` |
//! | [`cxx`] | `operator new` and `operator delete`, all forms |
//! | `atfork` | `__register_atfork`, in the shared object only |
//! | `deepbind` | `dlopen` and `dlmopen`, in the shared object only |
//! | `limits` | `setrlimit` and `prlimit`, in the shared object only |
//! | [`monitor`] | `lumalloc_monitor_start`, `lumalloc_monitor_stop` |
//! | [`region`] | `vmopen`, `vmalloc` and the other names of `vmalloc.h` |
//! | [`walk`] | `lumalloc_walk`, `lumalloc_map`, `lumalloc_map_at` |
//! | [`variables`] | `malloc_conf`, `malloc_conf_2_conf_harder`, `malloc_message` |
//!
//! The functions translate between the conventions of C and of the core: zero sizes, overflow,
//! alignment rules, `errno`. Nothing here allocates, panics or takes a lock.
//!
//! The crate links the C library itself. The crate `libc` leaves that to `std` when its feature
//! `std` is on, and cargo turns the feature on for all packages of a build when one asks for it.
//! But there is no `std` here.
#![no_std]

#[allow(unsafe_code, reason = "C interface: raw pointers from the caller")]
pub mod allocx;
#[allow(unsafe_code, reason = "C interface: handlers of the caller, passed on to the C library")]
#[cfg(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod atfork;
#[allow(unsafe_code, reason = "C++ interface: raw pointers, assembly that lets exceptions through")]
pub mod cxx;
#[allow(unsafe_code, reason = "C interface: assembly that passes calls on to the loader")]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod deepbind;
#[allow(unsafe_code, reason = "errno is a C variable")]
mod errno;
#[allow(unsafe_code, reason = "C interface: raw pointers from the caller")]
pub mod glibc;
#[allow(unsafe_code, reason = "C library: abort")]
mod die;
#[allow(unsafe_code, reason = "functions that the loader calls are listed in sections")]
mod lifecycle;
#[allow(unsafe_code, reason = "C interface: a system call for the caller")]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod limits;
#[allow(unsafe_code, reason = "C interface: a name from the caller")]
pub mod monitor;
#[allow(unsafe_code, reason = "C interface: a name from the caller")]
pub mod mprof;
#[allow(unsafe_code, reason = "C interface: raw pointers from the caller")]
pub mod mallctl;
#[allow(unsafe_code, reason = "a call of the loader's function")]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod next_function;
#[allow(unsafe_code, reason = "a symbol that only assembly can define")]
mod panic;
#[allow(unsafe_code, reason = "C interface: handles and disciplines of the caller")]
pub mod region;
#[allow(unsafe_code, reason = "system calls about descriptors")]
mod spare_stderr;
#[allow(unsafe_code, reason = "C interface: raw pointers from the caller")]
pub mod standard;
#[allow(unsafe_code, reason = "exported variables, calls through one of them")]
pub mod variables;
#[allow(unsafe_code, reason = "C interface: callbacks of the caller")]
pub mod walk;

// Since glibc 2.34 the last two are empty archives. A library that no symbol comes from is not
// recorded.
#[allow(unsafe_code, reason = "libraries to link with are named on a foreign block")]
#[link(name = "c")]
#[link(name = "pthread")]
#[link(name = "dl")]
unsafe extern "C" {}
