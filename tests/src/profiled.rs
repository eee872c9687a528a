//! Programs that ran with each allocation counted, and what the command `lumalloc` says of their
//! profiles.

use std::path::{Path, PathBuf};

use crate::build::{cc, lumalloc, scratch};
use crate::run::{Run, ending, find_program};

/// A program and its profile, in a directory.
pub struct Profiled {
    /// Where the program runs.
    pub directory: PathBuf,
    /// A copy of the program.
    pub program: PathBuf,
}

impl Profiled {
    /// Runs a copy of a program, which counts each allocation, in a directory of its own.
    pub fn new(program: &Path, name: &str) -> Profiled {
        Profiled::with(program, name, "mprof:true")
    }

    /// The same, with these options, which must make the file `mprof.data`.
    pub fn with(program: &Path, name: &str, options: &str) -> Profiled {
        let directory = scratch(name);
        let copy = copied(program, &directory);
        let run = Run::preloaded(&copy).dir(&directory).conf(options);
        assert_eq!(run.stdout(), "");
        Profiled { directory, program: copy }
    }

    /// The program `tests/c/reading_profiles.c`, with a build-id.
    pub fn c(name: &str) -> Profiled {
        Profiled::new(&cc("reading_profiles.c", &["-Wl,--build-id"]), name)
    }

    /// Runs `lumalloc` there: [`command`].
    pub fn run(&self, args: &[&str]) -> (String, String, String) {
        command(&self.directory, args)
    }

    /// The output of a command that has nothing to complain of.
    pub fn shown(&self, args: &[&str]) -> String {
        let (status, text, errors) = self.run(args);
        assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""), "{args:?}");
        text
    }

    /// Removes the symbols and the debug information of the program, and returns the file of the
    /// latter.
    pub fn strip(&self) -> PathBuf {
        let debug = self.directory.join("program.debug");
        tool("objcopy", &[&"--only-keep-debug", &self.program, &debug]);
        tool("objcopy", &[&"--strip-all", &self.program, &self.program]);
        debug
    }

    /// The build-id of the program.
    pub fn build_id(&self) -> String {
        let text = tool("readelf", &[&"-n", &self.program]);
        let id = text.split("Build ID: ").nth(1).expect("a build-id");
        id.split_whitespace().next().expect("its digits").to_owned()
    }
}

/// A copy of a program, which no other test replaces.
pub fn copied(program: &Path, directory: &Path) -> PathBuf {
    let copy = directory.join("program");
    // Not by this process: a child that another thread starts meanwhile would hold the file open,
    // and such a file cannot be executed.
    tool("cp", &[&program, &copy]);
    copy
}

/// Runs `lumalloc` in a directory. Returns how it ended, its output and its messages.
pub fn command(directory: &Path, args: &[&str]) -> (String, String, String) {
    let output = Run::plain(lumalloc()).args(args).dir(directory).output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ending(output.status), text(&output.stdout), text(&output.stderr))
}

/// Runs another program, which must succeed, and returns its output.
pub fn tool(name: &str, args: &[&dyn AsRef<Path>]) -> String {
    Run::plain(find_program(name)).args(args.iter().map(|arg| arg.as_ref())).stdout()
}

/// Returns the live bytes and blocks of a row of `lumalloc heap --bytes`: that with this name, in
/// the table with this title.
pub fn row(text: &str, title: &str, name: &str) -> (u64, u64) {
    let table = text.split(&format!("\n{title} by ")).nth(1).unwrap_or_else(|| panic!("{text}"));
    let table = table.split("\n\n").next().expect("its end");
    let end = format!("  {name}");
    let row = table.lines().find(|line| line.ends_with(&end));
    let row = row.unwrap_or_else(|| panic!("no row {name}:\n{table}"));
    let fields: Vec<&str> = row.split_whitespace().collect();
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{row}"));
    let blocks = if title == "Functions" { 3 } else { 2 };
    (number(fields[0]), number(fields[blocks]))
}
