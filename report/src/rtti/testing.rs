//! Programs with classes, compiled by g++, and what they write.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::profile::Mapping;

/// What a program wrote.
pub(crate) struct Said {
    /// First words of objects with the names of their classes; `-` for words without one.
    pub(crate) words: Vec<(String, u64)>,
    /// The mappings of its code.
    pub(crate) mappings: Vec<Mapping>,
}

/// A directory that is removed with what it contains.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    /// Makes one for a test.
    pub(crate) fn new(name: &str) -> Directory {
        let name = format!("lumalloc-{name}-{}", std::process::id());
        let directory = Directory(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&directory.0).expect("a directory");
        directory
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles and runs `report/tests/classes`. The library is a part of the program if it is linked
/// statically. `strip` removes the symbols.
pub(crate) fn run(name: &str, flags: &[&str], strip: bool) -> (Said, Directory) {
    let directory = Directory::new(name);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/classes");
    let [program, library] = ["program", "liblibrary.so"].map(|file| directory.0.join(file));
    let is_static = flags.iter().any(|flag| flag.starts_with("-static"));
    let object = sources.join("library.cc");
    let mut linked = vec![object.as_path()];
    if !is_static {
        let shared = ["-O2", "-shared", "-fPIC", "-o"].map(Path::new);
        tool("g++", &[&shared[..], &[&library, &object]].concat());
        linked = vec![&library, Path::new("-Wl,-rpath,$ORIGIN")];
    }
    let flags: Vec<&Path> = flags.iter().map(Path::new).collect();
    let source = sources.join("program.cc");
    let rest = [Path::new("-o"), &program, &source];
    tool("g++", &[&flags[..], &rest, &linked].concat());
    if strip {
        tool("strip", &[&program]);
    }
    if strip && !is_static {
        tool("strip", &[&library]);
    }
    (said(&tool(&program.display().to_string(), &[])), directory)
}

/// Runs a program, which must succeed, and returns its output.
pub(crate) fn tool(name: &str, args: &[&Path]) -> String {
    let output = Command::new(name).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("{name} does not start: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {args:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

fn said(text: &str) -> Said {
    let mut said = Said { words: Vec::new(), mappings: Vec::new() };
    for line in text.lines() {
        match mapping(line) {
            Some(mapping) => said.mappings.extend(mapping),
            None => {
                let (name, word) = line.rsplit_once(' ').expect("a word");
                said.words.push((name.to_owned(), number(word)));
            }
        }
    }
    said
}

/// A line of /proc/self/maps: a mapping if it is of code.
pub(crate) fn mapping(line: &str) -> Option<Option<Mapping>> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [range, access, offset, ..] = fields[..] else { return None };
    let (start, limit) = range.split_once('-').filter(|_| access.len() == 4)?;
    let file = fields.get(5).copied().unwrap_or("").to_owned();
    let (start, limit, offset) = (number(start), number(limit), number(offset));
    let mapping = Mapping { start, limit, offset, file, build_id: String::new() };
    Some(access.contains('x').then_some(mapping))
}

/// A number in hexadecimal digits.
pub(crate) fn number(digits: &str) -> u64 {
    u64::from_str_radix(digits, 16).expect("a number")
}
