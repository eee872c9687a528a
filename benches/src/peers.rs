//! The peers: who they are, how each comes into a C program and into a Rust one.

/// What every ratio is taken against.
pub(crate) const REFERENCE: &str = "mimalloc";

/// How an allocator gets in front of a C program's `malloc`.
#[derive(Clone, Copy)]
pub(crate) enum Preload {
    /// Nothing is preloaded: the C library's own.
    None,
    /// Our own shared object, built by cargo.
    Ours,
    /// Built from the C source that the crate libmimalloc-sys ships, in this directory of it.
    MimallocSource(&'static str),
    /// A shared object of a Debian package.
    Debian { file: &'static str, package: &'static str },
}

/// One allocator.
pub(crate) struct Peer {
    /// As in the tables and after `--peers` and `--without`.
    pub(crate) name: &'static str,
    /// In C programs; an allocator may have no shared object here.
    pub(crate) preload: Option<Preload>,
    /// In Rust programs: the feature of `benches/peers`, and the package whose version counts.
    pub(crate) rust: Option<(&'static str, &'static str)>,
    /// Taken unless `--peers` says otherwise.
    pub(crate) by_default: bool,
}

/// All of them, ours first.
pub(crate) const PEERS: [Peer; 7] = [
    Peer {
        name: "lumalloc",
        preload: Some(Preload::Ours),
        rust: Some(("lumalloc", "lumalloc")),
        by_default: true,
    },
    Peer {
        name: REFERENCE,
        preload: Some(Preload::MimallocSource("v3")),
        rust: Some(("mimalloc", "libmimalloc-sys")),
        by_default: true,
    },
    Peer {
        name: "mimalloc2",
        preload: Some(Preload::MimallocSource("v2")),
        rust: Some(("mimalloc2", "libmimalloc-sys")),
        by_default: false,
    },
    Peer {
        name: "jemalloc",
        preload: Some(Preload::Debian { file: "libjemalloc.so.2", package: "libjemalloc2" }),
        rust: Some(("jemalloc", "tikv-jemalloc-sys")),
        by_default: true,
    },
    Peer {
        name: "tcmalloc",
        preload: Some(Preload::Debian {
            file: "libtcmalloc_minimal.so.4",
            package: "libtcmalloc-minimal4",
        }),
        rust: None,
        by_default: true,
    },
    Peer {
        name: "snmalloc",
        preload: None,
        rust: Some(("snmalloc", "snmalloc-sys")),
        by_default: true,
    },
    Peer {
        name: "glibc",
        preload: Some(Preload::None),
        rust: Some(("system", "")),
        by_default: true,
    },
];

/// The peer of that name.
pub(crate) fn by_name(name: &str) -> Result<&'static Peer, String> {
    PEERS.iter().find(|peer| peer.name == name).ok_or_else(|| {
        let names: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
        format!("no peer called {name}; there are {}", names.join(", "))
    })
}
