//! Option strings with typed values.
use core::fmt;
use lumalloc::options::{DlopenDeepbind, Dss, Junk, MetadataThp, PercpuArena, ProfFormat};
use lumalloc::options::{Problem, Thp, ZeroRealloc, check};

/// An option that would be ignored or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError {
    /// The option.
    pub name: String,
    /// The value.
    pub value: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for OptionError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OptionError { name, value, problem } = self;
        match problem {
            Problem::Unknown => write!(to, "no option is named {name:?}"),
            Problem::NotABool => write!(to, "{name}: {value:?} is neither true nor false"),
            Problem::NotANumber => write!(to, "{name}: {value:?} is no whole number"),
            Problem::NotAFraction => {
                write!(to, "{name}: {value:?} is no decimal fraction below 65536")
            }
            Problem::NotOneOf(words) => {
                write!(to, "{name}: {value:?} is not one of {}", words.join(", "))
            }
            Problem::OutOfRange { min, max } => {
                write!(to, "{name}: {value} is not between {min} and {max}")
            }
            Problem::UnknownLetter(letters) => {
                write!(to, "{name}: {value:?} has letters that are not among {letters}")
            }
            Problem::NotLimits => {
                write!(to, "{name}: {value:?} is no list of limits, as 8-64:10|1024-2048:0 is one")
            }
            Problem::Comma => write!(to, "{name}: {value:?} has a comma, which ends a value"),
            Problem::NoEffect => write!(to, "{name}: has no effect in this allocator"),
        }
    }
}

impl std::error::Error for OptionError {}

/// Builds an option string, for `LUMALLOC_CONF` of a child process or the program's `malloc_conf`.
///
/// ```
/// use lumalloc_ctl::Options;
/// let string = Options::new().narenas(4).dirty_decay_ms(-1).stats_print(true).build().unwrap();
/// assert_eq!(string, "narenas:4,dirty_decay_ms:-1,stats_print:true");
///
/// let error = Options::new().tcache_max(1 << 20).build().unwrap_err();
/// assert_eq!(error.to_string(), "tcache_max: 1048576 is not between 0 and 32768");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pairs: Vec<(String, String)>,
}

impl Options {
    /// Starts without options.
    #[must_use]
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets any option by its name. A later value replaces an earlier one. Only the limits of
    /// `tcache_ncached_max` add up.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl ToString) -> Options {
        let mut value = value.to_string();
        if let Some(at) = self.pairs.iter().position(|(other, _)| other == name) {
            let (_, before) = self.pairs.remove(at);
            if name == "tcache_ncached_max" {
                value = before + "|" + &value;
            }
        }
        self.pairs.push((name.into(), value));
        self
    }

    /// Reads an option string.
    ///
    /// # Errors
    /// The first option that would be ignored or changed.
    ///
    /// ```
    /// use lumalloc_ctl::Options;
    /// let options = Options::parse("narenas:2,narenas:3,junk:true").unwrap();
    /// assert_eq!(options.build().unwrap(), "narenas:3,junk:true");
    /// let error = Options::parse("xmalloc").unwrap_err();
    /// assert_eq!(error.to_string(), "xmalloc: \"\" is neither true nor false");
    /// ```
    pub fn parse(text: &str) -> Result<Options, OptionError> {
        let pairs = text.split(',').filter(|pair| !pair.is_empty());
        let split = |pair: &'_ str| pair.split_once(':').map_or((pair.into(), "".into()), own);
        let set = |options: Options, (name, value): (String, String)| options.set(&name, value);
        let options = pairs.map(split).fold(Options::new(), set);
        options.checked()
    }

    /// Makes the option string.
    ///
    /// # Errors
    /// The first option that would be ignored or changed: its name, its value and the problem.
    pub fn build(&self) -> Result<String, OptionError> {
        let options = self.clone().checked()?;
        let pair = |(name, value): (String, String)| name + ":" + &value;
        Ok(options.pairs.into_iter().map(pair).collect::<Vec<_>>().join(","))
    }

    fn checked(self) -> Result<Options, OptionError> {
        for (name, value) in &self.pairs {
            if let Err(problem) = check(name, value) {
                let (name, value) = (name.clone(), value.clone());
                return Err(OptionError { name, value, problem });
            }
        }
        Ok(self)
    }
}

fn own((name, value): (&str, &str)) -> (String, String) {
    (name.into(), value.into())
}

/// Makes one method for each option of a plain type.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident: $kind:ty;)*) => {
        impl Options {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(self, value: $kind) -> Options {
                self.set(stringify!($name), value)
            })*

            /// The options that these methods set.
            #[cfg(test)]
            const PLAIN: &'static [&'static str] = &[$(stringify!($name)),*];
        }
    };
}

plain! {
    /// Warnings are fatal.
    abort: bool;
    /// A bad option is fatal.
    abort_conf: bool;
    /// Option sources and options are printed at start.
    confirm_conf: bool;
    /// Out of memory is fatal.
    xmalloc: bool;
    /// Statistics are printed at exit.
    stats_print: bool;
    /// Letters for the printing at exit, as `malloc_stats_print` takes them.
    stats_print_opts: &str;
    /// Bytes allocated between two printings of the statistics; -1: none.
    stats_interval: i64;
    /// Letters for the printings of `stats_interval`.
    stats_interval_opts: &str;
    /// Threads cache blocks.
    tcache: bool;
    /// Largest size in bytes that threads cache.
    tcache_max: usize;
    /// How many blocks of some classes caches hold: `low-high:most`, parts between `|`.
    tcache_ncached_max: &str;
    /// Bytes allocated between two steps of a cache's collection.
    tcache_gc_incr_bytes: usize;
    /// Milliseconds until unused dirty pages are purged; -1: never.
    dirty_decay_ms: i64;
    /// Milliseconds until unused muzzy pages are purged; -1: never.
    muzzy_decay_ms: i64;
    /// A thread of the library purges.
    background_thread: bool;
    /// A temporary thread of the library purges when the use of memory has fallen far.
    background_thread_auto: bool;
    /// Largest number of background threads.
    max_background_threads: usize;
    /// Largest number of automatic arenas.
    narenas: u32;
    /// Arenas per CPU.
    narenas_ratio: f32;
    /// log2 of how many times larger than a request a reused run may be.
    lg_extent_max_active_fit: u32;
    /// From this size on `calloc` gives dirty pages back instead of zeroing them.
    calloc_madvise_threshold: usize;
    /// Bytes from which on unused memory is given back at once; -1: as the container says; 0: none.
    limit_soft: i64;
    /// Bytes beyond which allocations fail; 0: none.
    limit_hard: usize;
    /// Addresses whose memory was given back are kept.
    retain: bool;
    /// What `thread.allocatedp` points at moves with every operation.
    allocatedp_live: bool;
    /// Allocated memory reads zero.
    zero: bool;
    /// Each call is checked for misuse.
    hardened: bool;
    /// C++'s `delete` with a size uses the size.
    sized_delete: bool;
    /// Requests between two guarded samples, on average; 0: none.
    guarded_sample: usize;
    /// The heap profiler may take samples.
    prof: bool;
    /// Sampling starts active.
    prof_active: bool;
    /// New threads are sampled.
    prof_thread_active_init: bool;
    /// log2 of the bytes between two samples, on average.
    lg_prof_sample: u32;
    /// The most return addresses of a sample.
    prof_bt_max: u32;
    /// The first state of the random numbers that choose samples; 0: any.
    prof_seed: u64;
    /// Profiles tell what was allocated since the start too.
    prof_accum: bool;
    /// A profile is written when the program exits.
    prof_final: bool;
    /// A profile is written each time that more memory is held than ever before.
    prof_gdump: bool;
    /// log2 of the bytes allocated between two profiles; -1: none.
    lg_prof_interval: i32;
    /// How many of the last samples are kept; -1: all.
    prof_recent_alloc_max: isize;
    /// A log of the samples that are freed is kept, and written when the program exits.
    prof_log: bool;
    /// Stacks are those that libgcc's unwinder finds.
    prof_libgcc: bool;
    /// Names of profiles have the namespace of the process.
    prof_pid_namespace: bool;
    /// heap_v2 has numbers that readers turn into right estimates of stacks with several sizes.
    prof_unbias: bool;
    /// Each allocation is counted, and written to `mprof.data` when the program exits.
    mprof: bool;
    /// Each allocation and each free is written to a file, from the start to the exit.
    monitor: bool;
    /// `prof.stats.*` tells the samples by size class.
    prof_stats: bool;
    /// Samples have the names that the system has for their threads.
    prof_sys_thread_name: bool;
    /// What is still allocated when the program exits is reported.
    prof_leak: bool;
    /// The program fails if anything is.
    prof_leak_error: bool;
    /// What names of profiles begin with.
    prof_prefix: &str;
}

impl Options {
    /// How threads find their arena.
    #[must_use]
    pub fn percpu_arena(self, value: PercpuArena) -> Options {
        let word = match value {
            PercpuArena::Disabled => "disabled",
            PercpuArena::Percpu => "percpu",
            PercpuArena::Phycpu => "phycpu",
        };
        self.set("percpu_arena", word)
    }

    /// When addresses come from the data segment.
    #[must_use]
    pub fn dss(self, value: Dss) -> Options {
        let word = match value {
            Dss::Disabled => "disabled",
            Dss::Primary => "primary",
            Dss::Secondary => "secondary",
        };
        self.set("dss", word)
    }

    /// Where huge pages are asked for.
    #[must_use]
    pub fn thp(self, value: Thp) -> Options {
        let word = match value {
            Thp::Default => "default",
            Thp::Always => "always",
            Thp::Never => "never",
        };
        self.set("thp", word)
    }

    /// Where huge pages are asked for under the allocator's records.
    #[must_use]
    pub fn metadata_thp(self, value: MetadataThp) -> Options {
        let word = match value {
            MetadataThp::Disabled => "disabled",
            MetadataThp::Auto => "auto",
            MetadataThp::Always => "always",
        };
        self.set("metadata_thp", word)
    }

    /// What `realloc(p, 0)` does.
    #[must_use]
    pub fn zero_realloc(self, value: ZeroRealloc) -> Options {
        let word = match value {
            ZeroRealloc::Alloc => "alloc",
            ZeroRealloc::Free => "free",
            ZeroRealloc::Abort => "abort",
        };
        self.set("zero_realloc", word)
    }

    /// How profiles without a name of their own are written.
    #[must_use]
    pub fn prof_format(self, value: ProfFormat) -> Options {
        let word = match value {
            ProfFormat::HeapV2 => "heap_v2",
            ProfFormat::Pprof => "pprof",
        };
        self.set("prof_format", word)
    }

    /// Whether a log of samples says that its times have a high resolution, which they have anyway.
    #[must_use]
    pub fn prof_time_resolution(self, high: bool) -> Options {
        self.set("prof_time_resolution", if high { "high" } else { "default" })
    }

    /// What `dlopen` does with `RTLD_DEEPBIND`.
    #[must_use]
    pub fn dlopen_deepbind(self, value: DlopenDeepbind) -> Options {
        let word = match value {
            DlopenDeepbind::Drop => "drop",
            DlopenDeepbind::Warn => "warn",
            DlopenDeepbind::Keep => "keep",
        };
        self.set("dlopen_deepbind", word)
    }

    /// What is filled with junk.
    #[must_use]
    pub fn junk(self, value: Junk) -> Options {
        let word = match (value.alloc, value.free) {
            (true, true) => "true",
            (true, false) => "alloc",
            (false, true) => "free",
            (false, false) => "false",
        };
        self.set("junk", word)
    }

    /// The options whose methods take an enum or a struct.
    #[cfg(test)]
    const WORDS: &'static [&'static str] = &[
        "percpu_arena",
        "dss",
        "thp",
        "metadata_thp",
        "zero_realloc",
        "dlopen_deepbind",
        "junk",
        "prof_format",
        "prof_time_resolution",
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_option_with_an_effect_has_a_method() {
        // `lg_tcache_max` is another way to set `tcache_max`.
        for name in lumalloc::options::names().filter(|&name| name != "lg_tcache_max") {
            let known = Options::PLAIN.contains(&name) || Options::WORDS.contains(&name);
            assert!(known, "no method for {name}");
        }
    }

    #[test]
    fn limits_of_caches_add_up_as_in_the_allocator() {
        let text = "tcache_ncached_max:8-8:10,narenas:2,tcache_ncached_max:16-16:20";
        let options = Options::parse(text).unwrap().tcache_ncached_max("32-32:3");
        assert_eq!(
            options.build().unwrap(),
            "narenas:2,tcache_ncached_max:8-8:10|16-16:20|32-32:3"
        );
    }

    #[test]
    fn the_methods_say_what_the_options_take() {
        let options = Options::new()
            .percpu_arena(PercpuArena::Percpu)
            .dss(Dss::Primary)
            .thp(Thp::Never)
            .metadata_thp(MetadataThp::Auto)
            .zero_realloc(ZeroRealloc::Abort)
            .dlopen_deepbind(DlopenDeepbind::Warn)
            .prof_format(ProfFormat::Pprof)
            .prof_time_resolution(true)
            .junk(Junk { alloc: true, free: false })
            .stats_print_opts("Jmd")
            .narenas_ratio(2.5)
            .dirty_decay_ms(-1);
        assert_eq!(
            options.build().unwrap(),
            "percpu_arena:percpu,dss:primary,thp:never,metadata_thp:auto,zero_realloc:abort,\
             dlopen_deepbind:warn,prof_format:pprof,prof_time_resolution:high,junk:alloc,\
             stats_print_opts:Jmd,narenas_ratio:2.5,dirty_decay_ms:-1"
        );
    }

    #[test]
    fn each_problem_has_its_message() {
        for (name, value, message) in [
            ("nonsense", "1", "no option is named \"nonsense\""),
            ("abort", "yes", "abort: \"yes\" is neither true nor false"),
            ("narenas", "many", "narenas: \"many\" is no whole number"),
            ("narenas", "0", "narenas: 0 is not between 1 and 4094"),
            ("narenas_ratio", "-1", "narenas_ratio: \"-1\" is no decimal fraction below 65536"),
            ("thp", "on", "thp: \"on\" is not one of default, always, never"),
            (
                "stats_print_opts",
                "Z",
                "stats_print_opts: \"Z\" has letters that are not among Jgmdablxehws",
            ),
            (
                "tcache_ncached_max",
                "8:1",
                "tcache_ncached_max: \"8:1\" is no list of limits, as 8-64:10|1024-2048:0 is one",
            ),
            ("prof_prefix", "a,b", "prof_prefix: \"a,b\" has a comma, which ends a value"),
            ("hpa", "true", "hpa: has no effect in this allocator"),
        ] {
            let error = Options::new().set(name, value).build().unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
