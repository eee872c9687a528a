//! The options of `lumalloc map`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, value_parser};

use super::heap::{Address, parse_address};

/// `lumalloc map`.
#[derive(Debug, Args)]
#[command(override_usage = "lumalloc map [OPTIONS] [SOURCE]")]
#[command(after_help = "\
SOURCE is the exporter of a process (HOST:PORT, http://HOST:PORT or unix:PATH), or a file that
--json wrote. Without one it is 127.0.0.1:9464. On a terminal the cells are coloured; NO_COLOR and
--letters leave the letters alone.")]
pub(crate) struct MapArguments {
    /// The exporter, or a file
    #[arg(value_name = "SOURCE", conflicts_with = "pid")]
    pub(crate) source: Option<OsString>,
    /// The process whose environment names its exporter in LUMALLOC_EXPORTER
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// What lies at an address, and who holds it, instead of the picture
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    #[arg(conflicts_with_all = ["json", "diff", "arena", "cell", "width", "letters"])]
    pub(crate) at: Option<Address>,
    /// Write the map as JSON
    #[arg(long, conflicts_with_all = ["diff", "cell", "width", "letters"])]
    pub(crate) json: bool,
    /// Compare with a map that --json wrote before
    #[arg(long, value_name = "OLD.json")]
    pub(crate) diff: Option<PathBuf>,
    /// Runs of this arena alone
    #[arg(long, value_name = "INDEX")]
    pub(crate) arena: Option<u32>,
    /// Pages of a cell [default: as few as fit on a screen]
    #[arg(long, value_name = "PAGES", value_parser = value_parser!(u32).range(1..))]
    pub(crate) cell: Option<u32>,
    /// Cells of a row [default: as the terminal]
    #[arg(long, value_name = "CELLS", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) width: Option<u32>,
    /// Letters without colours
    #[arg(long)]
    pub(crate) letters: bool,
    /// File with the token of the exporter
    #[arg(long, value_name = "PATH")]
    pub(crate) token_file: Option<PathBuf>,
}
