//! `config.*`. Made from the rows of the namespace.

use crate::key::{Key, Read};
use crate::typed::Text;

/// `config.cache_oblivious`: large blocks begin at a random cache line of their page.
pub const CACHE_OBLIVIOUS: Key<Read<bool>> = Key::new("config.cache_oblivious");

/// `config.debug`: built with assertions.
pub const DEBUG: Key<Read<bool>> = Key::new("config.debug");

/// `config.effective`: all options in force, as one option string.
pub const EFFECTIVE: Key<Read<Text>> = Key::new("config.effective");

/// `config.fill`: opt.junk and opt.zero have an effect.
pub const FILL: Key<Read<bool>> = Key::new("config.fill");

/// `config.ignored`: what was ignored in option strings, each with its reason and source; empty:
/// nothing.
pub const IGNORED: Key<Read<Text>> = Key::new("config.ignored");

/// `config.lazy_lock`: locks wait for a second thread before they lock.
pub const LAZY_LOCK: Key<Read<bool>> = Key::new("config.lazy_lock");

/// `config.malloc_conf`: option string compiled in: none ever is.
pub const MALLOC_CONF: Key<Read<Text>> = Key::new("config.malloc_conf");

/// `config.opt_safety_checks`: misuse checks are compiled in: see opt.hardened.
pub const OPT_SAFETY_CHECKS: Key<Read<bool>> = Key::new("config.opt_safety_checks");

/// `config.prof`: the heap profiler is compiled in.
pub const PROF: Key<Read<bool>> = Key::new("config.prof");

/// `config.prof_frameptr`: backtraces of profiles come from frame pointers.
pub const PROF_FRAMEPTR: Key<Read<bool>> = Key::new("config.prof_frameptr");

/// `config.prof_libgcc`: backtraces of profiles come from libgcc: opt.prof_libgcc.
pub const PROF_LIBGCC: Key<Read<bool>> = Key::new("config.prof_libgcc");

/// `config.prof_libunwind`: backtraces of profiles come from libunwind.
pub const PROF_LIBUNWIND: Key<Read<bool>> = Key::new("config.prof_libunwind");

/// `config.source`: where option strings were found, with commas, the last wins; empty: nowhere.
pub const SOURCE: Key<Read<Text>> = Key::new("config.source");

/// `config.stats`: statistics are compiled in.
pub const STATS: Key<Read<bool>> = Key::new("config.stats");

/// `config.thp`: huge pages can be asked for: see opt.thp.
pub const THP: Key<Read<bool>> = Key::new("config.thp");

/// `config.utrace`: calls can be traced with utrace(2).
pub const UTRACE: Key<Read<bool>> = Key::new("config.utrace");

/// `config.xmalloc`: opt.xmalloc has an effect.
pub const XMALLOC: Key<Read<bool>> = Key::new("config.xmalloc");
