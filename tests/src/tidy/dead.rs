//! Finds dead files: sources that no crate root reaches, and test inputs that no test names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::source::{Source, VISIBILITIES, identifier, inline_modules, item_end, words};

/// The files that the crate roots reach, and do not reach.
#[derive(Default)]
pub struct Reach {
    /// Findings about sources that no root reaches.
    pub unreached: Vec<String>,
    /// Files reached only through modules under `#[cfg(test)]` or `#[cfg(loom)]`.
    pub test_only: BTreeSet<String>,
}

/// Follows `mod name;` from every crate root.
pub fn reach(root: &Path, files: &[String], sources: &[Source]) -> Reach {
    let packages = files.iter().filter_map(|path| path.strip_suffix("Cargo.toml"));
    let packages: Vec<&str> = packages.filter(|dir| !dir.is_empty()).collect();
    let named = |path: &str| {
        let package =
            packages.iter().filter(|dir| path.starts_with(**dir)).max_by_key(|dir| dir.len());
        package.is_some_and(|dir| {
            let manifest = super::read(root, &format!("{dir}Cargo.toml"));
            is_root(&path[dir.len()..], &manifest)
        })
    };
    let roots = sources.iter().map(|source| source.path.as_str()).filter(|path| named(path));
    follow(roots.map(str::to_owned).collect(), sources)
}

/// Whether this path, relative to its package, is a crate root by Cargo's rules or by the manifest.
fn is_root(path: &str, manifest: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let by_place = matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    );
    by_place || manifest.contains(&format!("path = \"{path}\""))
}

fn follow(roots: Vec<String>, sources: &[Source]) -> Reach {
    let source_of = |path: &str| sources.iter().find(|source| source.path == path);
    let mut shipped = BTreeSet::new();
    let mut tests = BTreeSet::new();
    let mut open: Vec<(String, bool)> = roots.iter().map(|path| (path.clone(), false)).collect();
    while let Some((path, is_test)) = open.pop() {
        let seen = if is_test { &mut tests } else { &mut shipped };
        if !seen.insert(path.clone()) {
            continue;
        }
        let Some(source) = source_of(&path) else { continue };
        for module in modules(source, roots.contains(&path)) {
            let found = module.candidates.iter().find(|path| source_of(path).is_some());
            open.extend(found.map(|path| (path.clone(), is_test || module.is_test)));
        }
    }
    let unreached = sources
        .iter()
        .filter(|source| !shipped.contains(&source.path) && !tests.contains(&source.path));
    Reach {
        unreached: unreached.map(|source| source.finding(1, "no module names this file")).collect(),
        test_only: tests.difference(&shipped).cloned().collect(),
    }
}

/// A `mod name;` and the files that it may mean.
struct Module {
    candidates: Vec<String>,
    is_test: bool,
}

fn modules(source: &Source, is_root: bool) -> Vec<Module> {
    let path = Path::new(&source.path);
    let dir = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default();
    let owns_dir = is_root || stem == "mod";
    let base = if owns_dir { dir.to_path_buf() } else { dir.join(stem) };
    let mut found = Vec::new();
    for at in words(&source.code, "mod") {
        let name = identifier(&source.code[at + 3..]);
        let end = item_end(&source.code, at);
        if name.is_empty() || !source.code[at..end].ends_with(';') {
            continue;
        }
        let base = inline_modules(&source.code, at).iter().fold(base.clone(), |dir, m| dir.join(m));
        let is_test = source.shipped[at..end].trim().is_empty();
        let mut paths = vec![base.join(format!("{name}.rs")), base.join(name).join("mod.rs")];
        paths.extend(path_attribute(&source.text, at).map(|file| dir.join(file)));
        let candidates = paths.iter().map(|path| plain(path)).collect();
        found.push(Module { candidates, is_test });
    }
    found
}

/// The file in a `#[path = "file"]` just before the module at `at`.
fn path_attribute(text: &str, at: usize) -> Option<&str> {
    VISIBILITIES.iter().find_map(|visibility| {
        let before = text[..at].strip_suffix(visibility)?.trim_end();
        let attribute = before.rsplit_once("#[path = \"")?.1;
        attribute.strip_suffix("\"]").filter(|file| !file.contains('"'))
    })
}

/// A path without `..`.
fn plain(path: &Path) -> String {
    let mut out = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out.to_string_lossy().into_owned()
}

/// Finds C programs, client scripts and included documents that no other file names.
pub fn unattended(root: &Path, files: &[String]) -> Vec<String> {
    let is_input = |path: &&String| {
        path.starts_with("tests/c/")
            || path.starts_with("tests/clients/")
            || path.starts_with("alloc-core/src/docs/")
    };
    let can_name = |path: &&String| {
        [".rs", ".sh", ".c", ".cc", ".h"].iter().any(|ending| path.ends_with(ending))
            || path.as_str() == "tests/run"
    };
    let texts: Vec<(&String, String)> =
        files.iter().filter(can_name).map(|path| (path, super::read(root, path))).collect();
    let inputs = files.iter().filter(is_input);
    let dead = inputs.filter(|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        !texts.iter().any(|(from, text)| from != path && text.contains(name))
    });
    dead.map(|path| format!("{path}:1: nothing names this file")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow_from(root: &str, files: &[(&str, &str)]) -> Reach {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(path, text)).collect();
        follow(vec![root.to_owned()], &sources)
    }

    #[test]
    fn dead_files_are_found() {
        let files = [("a/src/lib.rs", "mod b;\n// mod c;"), ("a/src/b.rs", ""), ("a/src/c.rs", "")];
        let reach = follow_from("a/src/lib.rs", &files);
        assert_eq!(reach.unreached, ["a/src/c.rs:1: no module names this file"]);
    }

    #[test]
    fn modules_are_followed_through_directories() {
        let files = [
            (
                "a/src/lib.rs",
                "pub mod b;\nmod i { pub mod j; }\n#[path = \"odd.rs\"]\npub(super) mod e;",
            ),
            ("a/src/b/mod.rs", "mod c;"),
            ("a/src/b/c.rs", "mod d;"),
            ("a/src/b/c/d.rs", ""),
            ("a/src/i/j.rs", ""),
            ("a/src/odd.rs", ""),
        ];
        assert_eq!(follow_from("a/src/lib.rs", &files).unreached, [""; 0]);
    }

    #[test]
    fn test_only_files_are_told() {
        let files = [
            ("a/src/lib.rs", "#[cfg(test)]\nmod b;\nmod c;"),
            ("a/src/b.rs", "mod d;"),
            ("a/src/b/d.rs", ""),
            ("a/src/c.rs", ""),
        ];
        let reach = follow_from("a/src/lib.rs", &files);
        assert!(reach.test_only.iter().eq(["a/src/b.rs", "a/src/b/d.rs"]));
    }

    #[test]
    fn roots_are_cargos() {
        assert!(
            is_root("src/lib.rs", "") && is_root("tests/a.rs", "") && is_root("src/bin/b.rs", "")
        );
        assert!(!is_root("src/a.rs", "") && !is_root("tests/common/mod.rs", ""));
        assert!(is_root("odd/a.rs", "[[bench]]\npath = \"odd/a.rs\""));
    }
}
