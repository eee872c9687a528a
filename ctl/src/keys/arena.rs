//! `arena.*`. Made from the rows of the namespace.

use crate::key::{Act, Bytes, Key, Read, ReadWrite, UnsafeAct, UnsafeReadWrite};
use crate::typed::Text;

/// `arena.<i>.decay`: gives back the unused pages whose time has come; index 4096 means all arenas.
pub const DECAY: Key<Act, 1> = Key::new("arena.<i>.decay");

/// `arena.<i>.destroy`: reset, then ends the arena; EFAULT also while threads or caches are bound
/// to it.
pub const DESTROY: Key<UnsafeAct, 1> = Key::new("arena.<i>.destroy");

/// `arena.<i>.dirty_decay_ms` (ms): time until unused dirty pages are purged; a write purges what
/// is unused now.
pub const DIRTY_DECAY_MS: Key<ReadWrite<isize>, 1> = Key::new("arena.<i>.dirty_decay_ms");

/// `arena.<i>.dss`: use of sbrk: disabled, primary or secondary; index 4096 means arenas made
/// later.
pub const DSS: Key<ReadWrite<Text>, 1> = Key::new("arena.<i>.dss");

/// `arena.<i>.extent_hooks`: functions that supply the arena's pages; they run under no lock, and
/// may call mallctl.
pub const EXTENT_HOOKS: Key<UnsafeReadWrite, 1> = Key::new("arena.<i>.extent_hooks");

/// `arena.<i>.initialized`: whether the arena exists; true for index 4096, which means all.
pub const INITIALIZED: Key<Read<bool>, 1> = Key::new("arena.<i>.initialized");

/// `arena.<i>.limit` (bytes): bytes with memory that the arena may hold; beyond it as limit.hard;
/// 0: any.
pub const LIMIT: Key<ReadWrite<usize>, 1> = Key::new("arena.<i>.limit");

/// `arena.<i>.limit_exempt`: limit.hard refuses the arena no pages, as it must not for threads that
/// can raise it.
pub const LIMIT_EXEMPT: Key<ReadWrite<bool>, 1> = Key::new("arena.<i>.limit_exempt");

/// `arena.<i>.muzzy_decay_ms` (ms): time until unused muzzy pages are purged; a write purges what
/// is unused now.
pub const MUZZY_DECAY_MS: Key<ReadWrite<isize>, 1> = Key::new("arena.<i>.muzzy_decay_ms");

/// `arena.<i>.name`: name of the arena, up to 31 bytes; read into the 32 bytes at *(char **)oldp.
pub const NAME: Key<Bytes, 1> = Key::new("arena.<i>.name");

/// `arena.<i>.oversize_threshold` (bytes): blocks at least this long go back to the system when
/// they are freed; 0: none does.
pub const OVERSIZE_THRESHOLD: Key<ReadWrite<usize>, 1> = Key::new("arena.<i>.oversize_threshold");

/// `arena.<i>.profiled`: heap profiles have the arena's allocations; set it to false before the
/// first one.
pub const PROFILED: Key<ReadWrite<bool>, 1> = Key::new("arena.<i>.profiled");

/// `arena.<i>.purge`: gives all unused pages of the arena back to the system; index 4096 means all
/// arenas.
pub const PURGE: Key<Act, 1> = Key::new("arena.<i>.purge");

/// `arena.<i>.reserve` (bytes): unused bytes that no purge takes; a write purges what is unused
/// beyond, empty slabs too.
pub const RESERVE: Key<ReadWrite<usize>, 1> = Key::new("arena.<i>.reserve");

/// `arena.<i>.reset`: discards every block of an arena that was created; EFAULT for automatic ones.
pub const RESET: Key<UnsafeAct, 1> = Key::new("arena.<i>.reset");

/// `arena.<i>.retain_grow_limit` (bytes): most bytes of addresses reserved at a time in advance;
/// ENOENT with retain:false.
pub const RETAIN_GROW_LIMIT: Key<ReadWrite<usize>, 1> = Key::new("arena.<i>.retain_grow_limit");
