//! The peers: the allocators, and how each gets into a C program and into a Rust program.

/// The peer that every ratio is taken against.
pub(crate) const REFERENCE: &str = "mimalloc";

/// The allocator under test.
pub(crate) const OURS: &str = "lumalloc";

/// lumalloc with the option `hardened`, which checks each call for misuse.
pub(crate) const HARDENED: &str = "lumalloc-hardened";

/// Another version of lumalloc, from the checkout that [`OLD_CHECKOUT`] names.
pub(crate) const OLD: &str = "lumalloc-old";

/// As [`OLD`], with the option `hardened`.
pub(crate) const HARDENED_OLD: &str = "lumalloc-hardened-old";

/// The environment variable with the directory of the checkout that [`OLD`] is built from.
pub(crate) const OLD_CHECKOUT: &str = "LUMALLOC_OLD";

/// How an allocator replaces a C program's `malloc`.
#[derive(Clone, Copy)]
pub(crate) enum Preload {
    /// Nothing is preloaded: the `malloc` of the C library.
    None,
    /// The shared object of lumalloc, built by cargo.
    Ours,
    /// The same, built in the checkout that [`OLD_CHECKOUT`] names.
    Old,
    /// Built from the C source in this directory of the crate libmimalloc-sys.
    MimallocSource(&'static str),
    /// Built from the source in the crate tikv-jemalloc-sys, by its own `configure`.
    JemallocSource,
    /// As [`Preload::MimallocSource`], with all checks of its secure mode.
    MimallocSecureSource(&'static str),
    /// This target of the source in the crate snmalloc-sys.
    SnmallocSource(&'static str),
    /// Built from the C source in the crate rpmalloc-sys.
    RpmallocSource,
    /// A shared object of a Debian package.
    Debian { file: &'static str, package: &'static str },
}

/// Environment variables and their values.
pub(crate) type Environment = &'static [(&'static str, &'static str)];

/// One allocator, or one configuration of it.
pub(crate) struct Peer {
    /// The name in the tables and for `--peers` and `--without`.
    pub(crate) name: &'static str,
    /// For C programs.
    pub(crate) preload: Preload,
    /// For Rust programs: the feature of `benches/peers`, and the package whose version is
    /// reported.
    pub(crate) rust: Option<(&'static str, &'static str)>,
    /// The environment variables of its processes; empty for the default options.
    pub(crate) environment: Environment,
    /// The variables that start its background thread; empty if it has none.
    pub(crate) background: Environment,
    /// Whether it is measured unless `--peers` says otherwise.
    pub(crate) by_default: bool,
}

impl Peer {
    const fn new(name: &'static str, preload: Preload) -> Self {
        Self { name, preload, rust: None, environment: &[], background: &[], by_default: true }
    }

    const fn rust(self, feature: &'static str, package: &'static str) -> Self {
        Self { rust: Some((feature, package)), ..self }
    }

    const fn environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    const fn background(self, background: Environment) -> Self {
        Self { background, ..self }
    }

    /// The peer, measured only if `--peers` names it.
    const fn on_demand(self) -> Self {
        Self { by_default: false, ..self }
    }

    /// Whether this is lumalloc in any configuration, which is never taken for the best peer.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.preload, Preload::Ours | Preload::Old)
    }

    /// Whether this is built in the checkout that [`OLD_CHECKOUT`] names.
    pub(crate) fn is_old(&self) -> bool {
        matches!(self.preload, Preload::Old)
    }

    /// Whether it runs under valgrind, which lacks the 256 GiB of addresses that snmalloc reserves.
    pub(crate) fn can_be_counted(&self) -> bool {
        !matches!(self.preload, Preload::SnmallocSource(_))
    }
}

const MIMALLOC: &str = "libmimalloc-sys";
const SNMALLOC: &str = "snmalloc-sys";
const NO_HUGE_PAGES: Environment = &[("MIMALLOC_ALLOW_THP", "0")];
const DEBIAN_JEMALLOC: Preload =
    Preload::Debian { file: "libjemalloc.so.2", package: "libjemalloc2" };
const DEBIAN_TCMALLOC: Preload =
    Preload::Debian { file: "libtcmalloc_minimal.so.4", package: "libtcmalloc-minimal4" };

/// All peers, lumalloc first.
pub(crate) const PEERS: [Peer; 17] = [
    Peer::new(OURS, Preload::Ours)
        .rust("lumalloc", "lumalloc")
        .background(&[("LUMALLOC_CONF", "background_thread:true")]),
    Peer::new(HARDENED, Preload::Ours)
        .rust("lumalloc", "lumalloc")
        .environment(&[("LUMALLOC_CONF", "hardened:true")])
        .background(&[("LUMALLOC_CONF", "hardened:true,background_thread:true")]),
    Peer::new("lumalloc-profiled", Preload::Ours)
        .rust("lumalloc", "lumalloc")
        .environment(&[("LUMALLOC_CONF", "prof:true")])
        .background(&[("LUMALLOC_CONF", "prof:true,background_thread:true")])
        .on_demand(),
    Peer::new(OLD, Preload::Old)
        .rust("lumalloc", "lumalloc")
        .background(&[("LUMALLOC_CONF", "background_thread:true")])
        .on_demand(),
    Peer::new(HARDENED_OLD, Preload::Old)
        .rust("lumalloc", "lumalloc")
        .environment(&[("LUMALLOC_CONF", "hardened:true")])
        .background(&[("LUMALLOC_CONF", "hardened:true,background_thread:true")])
        .on_demand(),
    Peer::new(REFERENCE, Preload::MimallocSource("v3")).rust("mimalloc", MIMALLOC),
    Peer::new("mimalloc-thp0", Preload::MimallocSource("v3"))
        .rust("mimalloc", MIMALLOC)
        .environment(NO_HUGE_PAGES),
    Peer::new("mimalloc2", Preload::MimallocSource("v2")).rust("mimalloc2", MIMALLOC).on_demand(),
    Peer::new("mimalloc2-thp0", Preload::MimallocSource("v2"))
        .rust("mimalloc2", MIMALLOC)
        .environment(NO_HUGE_PAGES)
        .on_demand(),
    Peer::new("mimalloc-secure", Preload::MimallocSecureSource("v3"))
        .rust("mimalloc-secure", MIMALLOC)
        .on_demand(),
    Peer::new("jemalloc", Preload::JemallocSource)
        .rust("jemalloc", "tikv-jemalloc-sys")
        .background(&[
            ("MALLOC_CONF", "background_thread:true"),
            ("_RJEM_MALLOC_CONF", "background_thread:true"),
        ]),
    Peer::new("jemalloc-debian", DEBIAN_JEMALLOC)
        .background(&[("MALLOC_CONF", "background_thread:true")])
        .on_demand(),
    Peer::new("snmalloc", Preload::SnmallocSource("snmallocshim")).rust("snmalloc", SNMALLOC),
    Peer::new("snmalloc-checks", Preload::SnmallocSource("snmallocshim-checks"))
        .rust("snmalloc-checks", SNMALLOC)
        .on_demand(),
    Peer::new("rpmalloc", Preload::RpmallocSource).rust("rpmalloc", "rpmalloc-sys"),
    Peer::new("tcmalloc", DEBIAN_TCMALLOC),
    Peer::new("glibc", Preload::None).rust("system", ""),
];

/// The peer with a name.
pub(crate) fn by_name(name: &str) -> Result<&'static Peer, String> {
    PEERS.iter().find(|peer| peer.name == name).ok_or_else(|| {
        let names: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
        format!("no peer called {name}; there are {}", names.join(", "))
    })
}
