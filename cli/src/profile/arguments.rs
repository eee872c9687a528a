//! The options of `lumalloc mprof`, `lumalloc heap` and `lumalloc flamegraph`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum, value_parser};
use lumalloc_report::symbols::Search;

use crate::failure::reason;

/// Where the names of functions come from.
#[derive(Debug, Args)]
pub(crate) struct NamesArguments {
    /// A directory with debug information of other files, as /usr/lib/debug; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) debug_directory: Vec<PathBuf>,
}

impl NamesArguments {
    /// Where files are looked for; `program` is used in place of the program's own. In a directory
    /// that is none, nothing would be found without a word.
    pub(crate) fn search(&self, program: Option<&Path>) -> Result<Search, String> {
        for directory in &self.debug_directory {
            let found = fs::read_dir(directory).map_err(|error| reason(&error));
            found.map_err(|why| format!("--debug-directory {}: {why}", directory.display()))?;
        }
        let mut search = Search { program: program.map(Path::to_owned), ..Search::default() };
        search.debug_directories.splice(0..0, self.debug_directory.iter().cloned());
        Ok(search)
    }
}

/// `lumalloc mprof`.
#[derive(Debug, Args)]
#[command(override_usage = "lumalloc mprof [OPTIONS] [PROGRAM [DATA]]", args_override_self = true)]
#[command(after_help = "\
The options have one dash in mprof(1), which works too. A process that is started with
LUMALLOC_CONF=mprof:true writes mprof.data when it ends.")]
pub(crate) struct MprofArguments {
    /// Show each size in which memory was allocated, and each leak
    #[arg(long, overrides_with_all = ["normal", "terse"])]
    pub(crate) verbose: bool,
    /// Show what contributes a reasonable fraction: leaks of at least 0.5% (the default)
    #[arg(long, overrides_with_all = ["verbose", "terse"])]
    pub(crate) normal: bool,
    /// Show what contributes a significant fraction: leaks of at least 1%
    #[arg(long, overrides_with_all = ["verbose", "normal"])]
    pub(crate) terse: bool,
    /// Show the table of leaks without places in functions (the default)
    #[arg(long, overrides_with_all = ["noleaktable", "offsets"])]
    pub(crate) leaktable: bool,
    /// Do not show the table of leaks
    #[arg(long, overrides_with_all = ["leaktable", "offsets"])]
    pub(crate) noleaktable: bool,
    /// Show the table of leaks with places in functions
    #[arg(long, overrides_with_all = ["leaktable", "noleaktable"])]
    pub(crate) offsets: bool,
    /// Names.
    #[command(flatten)]
    pub(crate) names: NamesArguments,
    /// The program that was profiled; by default the file that DATA names
    pub(crate) program: Option<PathBuf>,
    /// The profile; by default mprof.data
    pub(crate) data: Option<PathBuf>,
}

/// What rows are sorted by, and what formats with one number have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ValueArgument {
    /// Bytes that are not freed
    LiveBytes,
    /// Blocks that are not freed
    LiveBlocks,
    /// Bytes allocated since the start
    AllocatedBytes,
    /// Allocations since the start
    Allocations,
}

/// The views of `lumalloc heap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArgument {
    /// The functions of the whole stack
    Stack,
    /// The function that allocated, with the line
    Site,
    /// Each function, alone and with what it calls
    Function,
    /// The type of the blocks
    Type,
    /// The requested size
    Size,
    /// The thread that allocated
    Thread,
    /// The arena
    Arena,
}

/// `lumalloc heap`.
#[derive(Debug, Args)]
#[command(override_usage = "lumalloc heap [OPTIONS] FILE")]
#[command(group(ArgGroup::new("format").args(["collapsed", "dhat", "json"])))]
pub(crate) struct HeapArguments {
    /// The views, separated by commas; by default all
    #[arg(long, value_name = "VIEW", value_delimiter = ',', conflicts_with = "format")]
    pub(crate) by: Vec<ByArgument>,
    /// What rows are sorted by
    #[arg(long, value_name = "VALUE", default_value = "live-bytes", conflicts_with = "json")]
    pub(crate) value: ValueArgument,
    /// The most rows of each view
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "format")]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    pub(crate) top: u32,
    /// Write numbers of bytes with all digits
    #[arg(long, conflicts_with = "format")]
    pub(crate) bytes: bool,
    /// Show what changed since this older profile, by the names of functions
    #[arg(long, value_name = "OLD", conflicts_with = "dhat")]
    pub(crate) diff: Option<PathBuf>,
    /// Write folded stacks, for flamegraph.pl; with --diff two numbers, as difffolded.pl
    #[arg(long)]
    pub(crate) collapsed: bool,
    /// Write JSON for valgrind's dh_view.html
    #[arg(long)]
    pub(crate) dhat: bool,
    /// Write everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The program that was profiled; by default the file that FILE names
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
    /// Names.
    #[command(flatten)]
    pub(crate) names: NamesArguments,
    /// Write to this file, which has its name only once it is whole
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// The profile: pprof or heap_v2; or a recording of the heap monitor
    pub(crate) file: PathBuf,
}

/// `lumalloc flamegraph`.
#[derive(Debug, Args)]
#[command(override_usage = "lumalloc flamegraph [OPTIONS] FILE")]
pub(crate) struct FlameGraphArguments {
    /// What widths stand for
    #[arg(long, value_name = "VALUE", default_value = "live-bytes")]
    pub(crate) value: ValueArgument,
    /// The program that was profiled; by default the file that FILE names
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
    /// Names.
    #[command(flatten)]
    pub(crate) names: NamesArguments,
    /// Write to this file, which has its name only once it is whole
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// The profile: pprof or heap_v2
    pub(crate) file: PathBuf,
}

/// The options of mprof(1), which have one dash there.
const MPROF_OPTIONS: [&str; 8] = [
    "-verbose",
    "-normal",
    "-terse",
    "-leaktable",
    "-noleaktable",
    "-offsets",
    "-debug-directory",
    "-help",
];

/// Gives the options of `lumalloc mprof` two dashes.
pub(crate) fn with_two_dashes(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_some_and(|command| command == "mprof") {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        for word in &mut words[2..end] {
            let bytes = word.as_bytes();
            let name = bytes.split(|byte| *byte == b'=').next();
            if MPROF_OPTIONS.iter().any(|option| name == Some(option.as_bytes())) {
                *word = OsString::from_vec([b"-", bytes].concat());
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use clap::Parser;
    use clap::error::ErrorKind;

    fn parse(words: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("lumalloc").chain(words.iter().copied()))
    }

    #[test]
    fn mprof_has_the_options_of_the_page() {
        let mprof = |words: &[&str]| {
            let words = ["lumalloc", "mprof"].iter().chain(words).map(OsString::from);
            match Arguments::try_parse_from(with_two_dashes(words)).unwrap().command {
                Some(Command::Mprof(mprof)) => mprof,
                other => panic!("not mprof: {other:?}"),
            }
        };
        let last = mprof(&["-verbose", "-terse", "-offsets", "-noleaktable", "a.out", "x.data"]);
        assert_eq!((last.verbose, last.normal, last.terse), (false, false, true));
        assert_eq!((last.leaktable, last.noleaktable, last.offsets), (false, true, false));
        assert_eq!((last.program, last.data), (Some("a.out".into()), Some("x.data".into())));
        assert!(mprof(&["--verbose", "-verbose"]).verbose);
        let names = mprof(&["-debug-directory", "/a", "-debug-directory=/b", "x"]).names;
        assert_eq!(names.debug_directory, [Path::new("/a"), Path::new("/b")]);
        let help = with_two_dashes(["lumalloc", "mprof", "-help"].into_iter().map(OsString::from));
        assert_eq!(help[2], "--help");
        assert_eq!(mprof(&["--", "-verbose"]).program, Some("-verbose".into()));
        assert_eq!(parse(&["mprof", "-bogus"]).unwrap_err().kind(), ErrorKind::UnknownArgument);
        assert_eq!(
            parse(&["mprof", "a", "b", "c"]).unwrap_err().kind(),
            ErrorKind::UnknownArgument
        );
    }

    #[test]
    fn heap_refuses_what_does_not_fit_together() {
        let kind = |words: &[&str]| parse(&[&["heap", "x"], words].concat()).unwrap_err().kind();
        for words in [
            &["--json", "--dhat"][..],
            &["--dhat", "--diff", "y"],
            &["--collapsed", "--by", "size"],
            &["--json", "--value", "allocations"],
            &["--dhat", "--top", "3"],
            &["--json", "--bytes"],
        ] {
            assert_eq!(kind(words), ErrorKind::ArgumentConflict, "{words:?}");
        }
        assert_eq!(kind(&["--by", "color"]), ErrorKind::InvalidValue);
        assert_eq!(kind(&["--top", "0"]), ErrorKind::ValueValidation);
        assert_eq!(parse(&["heap"]).unwrap_err().kind(), ErrorKind::MissingRequiredArgument);
        let both = parse(&["heap", "x", "--by", "size,type", "--value", "live-blocks"]).unwrap();
        let Some(Command::Heap(heap)) = both.command else { panic!("not heap") };
        assert_eq!((heap.by, heap.top), (vec![ByArgument::Size, ByArgument::Type], 10));
    }
}
