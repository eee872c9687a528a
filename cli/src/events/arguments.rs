//! The options of `lumalloc events`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, value_parser};
use lumalloc_report::events::{Filter, Old, PageSize, Range, Regex, Thread};

use super::values::{ages, page_size, pattern, sizes, thread};
use crate::profile::arguments::NamesArguments;

/// What the blocks of a row have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArgument {
    /// The function that allocated, with the line
    Site,
    /// The functions of the whole stack
    Stack,
    /// The type of the blocks
    Type,
}

/// `lumalloc events`.
#[derive(Debug, Args)]
#[command(override_usage = "lumalloc events [OPTIONS] FILE")]
#[command(group(ArgGroup::new("view").args(["analyze", "lifetimes", "pins"])))]
#[command(group(ArgGroup::new("table").args(["lifetimes", "pins"])))]
#[command(after_help = "\
Without --analyze, --lifetimes and --pins it writes a line for each block that is older than the
recording, then one for each event: thread, time, address, size or `del`, type and stack, with tabs
between them. Ranges are VALUE, MIN.., ..MAX or MIN..MAX, with both ends included.")]
pub(crate) struct EventsArguments {
    /// Show what went wrong, then the live blocks and those that were deleted last
    #[arg(long)]
    pub(crate) analyze: bool,
    /// Show how long blocks live, by the functions that allocate them
    #[arg(long)]
    pub(crate) lifetimes: bool,
    /// Show which pages the live blocks keep in use, by the functions that allocated them
    #[arg(long)]
    pub(crate) pins: bool,
    /// With --analyze, --lifetimes or --pins: write JSON
    #[arg(long, requires = "view")]
    pub(crate) json: bool,
    /// With --analyze: show blocks that are not deleted only
    #[arg(long, requires = "analyze", conflicts_with_all = ["lifetimes", "pins", "deleted"])]
    pub(crate) live: bool,
    /// With --analyze: the most deleted blocks [default: 100]
    #[arg(long, value_name = "N", requires = "analyze", conflicts_with_all = ["lifetimes", "pins"])]
    pub(crate) deleted: Option<u32>,
    /// With --lifetimes or --pins: what the blocks of a row have in common [default: site]
    #[arg(long, value_name = "WHAT", requires = "table", conflicts_with = "analyze")]
    pub(crate) by: Option<ByArgument>,
    /// With --lifetimes or --pins: the most rows [default: 20]
    #[arg(long, value_name = "N", requires = "table", conflicts_with = "analyze")]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    pub(crate) top: Option<u32>,
    /// With --pins: the size of a page, as 4k, 64k or 2M [default: 4k]
    #[arg(long, value_name = "SIZE", requires = "pins", value_parser = page_size)]
    #[arg(conflicts_with_all = ["analyze", "lifetimes"])]
    pub(crate) page: Option<PageSize>,
    /// With --pins: the most pages that are listed with their blocks [default: 5]
    #[arg(long, value_name = "N", requires = "pins")]
    #[arg(conflicts_with_all = ["analyze", "lifetimes"])]
    pub(crate) emptiest: Option<u32>,
    /// Which blocks and events.
    #[command(flatten)]
    pub(crate) filter: FilterArguments,
    /// The program that was recorded; by default the file that FILE names
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
    /// Names.
    #[command(flatten)]
    pub(crate) names: NamesArguments,
    /// Write to this file, which has its name only once it is whole
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// The recording
    pub(crate) file: PathBuf,
}

/// Which blocks and events are shown.
#[derive(Debug, Args)]
pub(crate) struct FilterArguments {
    /// Events of this thread: TID or PID-TID
    #[arg(long, value_name = "THREAD", value_parser = thread)]
    thread: Option<Thread>,
    /// Blocks of these sizes, as 16, 16.., ..64 or 1k..4k
    #[arg(long, value_name = "RANGE", value_parser = sizes)]
    size: Option<Range>,
    /// Blocks whose type contains a match of this regular expression
    #[arg(long = "type", value_name = "REGEX", value_parser = pattern)]
    kind: Option<Regex>,
    /// Events whose stack contains a match, as a line has it
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    stack: Option<Regex>,
    /// Blocks of these ages when they were deleted or the recording ended, as 10ms.. or 1us..2s
    #[arg(long, value_name = "RANGE", value_parser = ages)]
    age: Option<Range>,
    /// Only blocks that are older than the recording
    #[arg(long, conflicts_with = "no_old")]
    old: bool,
    /// No blocks that are older than the recording
    #[arg(long)]
    no_old: bool,
}

impl FilterArguments {
    /// The choice.
    pub(crate) fn filter(&self) -> Filter {
        let old = match (self.old, self.no_old) {
            (true, _) => Old::Only,
            (_, true) => Old::Excluded,
            _ => Old::Included,
        };
        Filter {
            thread: self.thread,
            size: self.size.unwrap_or(Range::ALL),
            kind: self.kind.clone(),
            stack: self.stack.clone(),
            age: self.age.unwrap_or(Range::ALL),
            old,
        }
    }
}
