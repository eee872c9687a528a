//! The options of `lumalloc replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};

/// What blocks are allocated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum MethodArgument {
    /// The smallest free block that suffices
    Best,
    /// One block behind the other; only the latest can be freed
    Last,
    /// Blocks of one size
    Pool,
    /// Best fit with guards and checks
    Debug,
    /// Best fit with counts
    Profile,
    /// malloc of this process, which LD_PRELOAD may replace
    Malloc,
}

/// Where the memory of regions comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DisciplineArgument {
    /// Pages of the operating system
    System,
    /// Blocks of lumalloc's heap
    Heap,
}

/// `lumalloc replay`.
#[derive(Debug, Args)]
#[command(override_usage = "lumalloc replay [OPTIONS] TRACE")]
#[command(after_help = "\
TRACE is what vmtrace(3) wrote, of any version of that library. Each region is replayed with the
method that its lines name, or with --method. The time is that of the calls alone, closing
included.")]
pub(crate) struct ReplayArguments {
    /// The method of all regions [default: the one that each line names]
    #[arg(long, short, value_name = "METHOD")]
    pub(crate) method: Option<MethodArgument>,
    /// Where the memory of regions comes from
    #[arg(long, short, value_name = "DISCIPLINE", default_value = "system")]
    pub(crate) discipline: DisciplineArgument,
    /// Timed rounds; the report has the median
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// The most places that live blocks are listed by
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: u32,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The trace
    pub(crate) trace: PathBuf,
}
