//! The allocator of this binary: exactly one feature names it, and `NAME` is that
//! feature.

#[cfg(feature = "jemalloc")]
mod chosen {
    pub(crate) const NAME: &str = "jemalloc";
    #[global_allocator]
    static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
}

#[cfg(feature = "lumalloc")]
mod chosen {
    pub(crate) const NAME: &str = "lumalloc";
    #[global_allocator]
    static GLOBAL: lumalloc::Lumalloc = lumalloc::Lumalloc;
}

#[cfg(feature = "mimalloc")]
mod chosen {
    pub(crate) const NAME: &str = "mimalloc";
    #[global_allocator]
    static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;
}

#[cfg(feature = "mimalloc-secure")]
mod chosen {
    pub(crate) const NAME: &str = "mimalloc-secure";
    #[global_allocator]
    static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;
}

#[cfg(feature = "mimalloc2")]
mod chosen {
    pub(crate) const NAME: &str = "mimalloc2";
    #[global_allocator]
    static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;
}

#[cfg(feature = "rpmalloc")]
mod chosen {
    pub(crate) const NAME: &str = "rpmalloc";
    #[global_allocator]
    static GLOBAL: rpmalloc::RpMalloc = rpmalloc::RpMalloc;
}

#[cfg(feature = "snmalloc")]
mod chosen {
    pub(crate) const NAME: &str = "snmalloc";
    #[global_allocator]
    static GLOBAL: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;
}

#[cfg(feature = "snmalloc-checks")]
mod chosen {
    pub(crate) const NAME: &str = "snmalloc-checks";
    #[global_allocator]
    static GLOBAL: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;
}

#[cfg(feature = "system")]
mod chosen {
    pub(crate) const NAME: &str = "system";
    #[global_allocator]
    static GLOBAL: std::alloc::System = std::alloc::System;
}

pub(crate) use chosen::NAME;
