//! Files of `/proc` about this process, in the order in which they are tried.
//!
//! Those of `/proc/self` are of the first thread. They are empty, or cannot be read, once it has
//! ended, as by `pthread_exit` in `main`, while other threads go on. Those of the calling thread
//! come second, because some sandboxes allow the first ones only.

use core::ffi::CStr;

type Paths = [&'static CStr; 2];

/// What is mapped.
pub const MAPS: Paths = [c"/proc/self/maps", c"/proc/thread-self/maps"];
/// The program, a link.
pub const PROGRAM: Paths = [c"/proc/self/exe", c"/proc/thread-self/exe"];
/// How many pages there are, of several kinds.
pub(crate) const PAGES: Paths = [c"/proc/self/statm", c"/proc/thread-self/statm"];
/// The memory.
pub const MEMORY: Paths = [c"/proc/self/mem", c"/proc/thread-self/mem"];
/// The namespace of numbers of processes, a link.
pub const NAMESPACE: Paths = [c"/proc/self/ns/pid", c"/proc/thread-self/ns/pid"];
/// The namespace of clocks, a link, if the system has such namespaces.
pub const CLOCKS: Paths = [c"/proc/self/ns/time", c"/proc/thread-self/ns/time"];
