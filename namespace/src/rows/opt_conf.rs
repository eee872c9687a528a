//! `opt.malloc_conf.*`: option strings by source. A source that was not given has no entry.
use crate::Error;
use crate::row::Spec;
use crate::row_macros::ro;
use lumalloc::options;

/// A row of one source.
macro_rules! source {
    ($name:literal, $source:literal, $help:literal) => {
        ro!(
            concat!("opt.malloc_conf.", $name),
            Str,
            None,
            |_| options::source_text($source).ok_or(Error::NoEntry),
            $help
        )
    };
}

/// The rows of `opt.malloc_conf.*`.
pub static ROWS: &[Spec] = &[
    source!("symlink", "/etc/malloc.conf", "option string in the target of /etc/malloc.conf"),
    source!("env_var", "MALLOC_CONF", "option string in the environment variable MALLOC_CONF"),
    source!("own_env_var", "LUMALLOC_CONF", "option string in the variable LUMALLOC_CONF"),
    source!("global_var", "malloc_conf", "option string in the program's variable malloc_conf"),
    source!(
        "global_var_2_conf_harder",
        "malloc_conf_2_conf_harder",
        "option string in the program's variable malloc_conf_2_conf_harder"
    ),
];
