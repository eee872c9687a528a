//! The options of `lumalloc region`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `lumalloc region`.
#[derive(Debug, Args)]
#[command(override_usage = "lumalloc region <stat|walk|check|compact> [OPTIONS] FILE")]
#[command(after_help = "\
FILE holds a region that vmmopen(3) made. Other processes may use it meanwhile. If none does, or
one ended in a call, what is free is found anew first.")]
pub(crate) struct RegionArguments {
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// What is done with the region.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show how much is in use and free, and who is in it
    #[command(override_usage = "lumalloc region stat [OPTIONS] FILE")]
    Stat(Of),
    /// List the blocks in use
    #[command(override_usage = "lumalloc region walk [OPTIONS] FILE")]
    Walk(Of),
    /// Check the words between the blocks; the exit status is 1 if some were overwritten
    #[command(override_usage = "lumalloc region check FILE")]
    Check(FileArgument),
    /// Give free pages at the end back to the file system
    #[command(override_usage = "lumalloc region compact FILE")]
    Compact(FileArgument),
}

/// A file.
#[derive(Debug, Args)]
pub(crate) struct FileArgument {
    /// The file of the region
    pub(crate) file: PathBuf,
}

/// A file, and how to write about it.
#[derive(Debug, Args)]
pub(crate) struct Of {
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The file of the region
    pub(crate) file: PathBuf,
}
