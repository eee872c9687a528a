//! The modules of functions of Rust's libraries, from their source files.
//!
//! Debug information of the kind `line-tables-only` has the names of inlined functions without
//! their modules: `push<Widget, alloc::alloc::Global>`.

/// Puts the crate and the module before a name that has none: `alloc::vec::push<Widget>`. Other
/// names are returned as they are.
pub(super) fn qualified(name: String, file: &str) -> String {
    let own = name.split('<').next().unwrap_or(&name);
    if own.is_empty() || own.contains("::") || own.contains(' ') {
        return name;
    }
    match module(file) {
        None => name,
        Some(module) => {
            let name = name.replace(", alloc::alloc::Global>", ">");
            format!("{module}::{}", name.replace("<alloc::alloc::Global>", ""))
        }
    }
}

/// The module of a source file of the standard library or of a crate that Cargo unpacked:
/// `…/library/alloc/src/vec/mod.rs`, `…/hashbrown-0.16.1/src/raw.rs`.
fn module(file: &str) -> Option<String> {
    let (before, path) = file.rsplit_once("/src/")?;
    let (above, directory) = before.rsplit_once('/')?;
    let is_standard = above.ends_with("/library") && ["alloc", "core", "std"].contains(&directory);
    let name = if is_standard { directory } else { package(directory)? };
    let path = path.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let modules = path.split('/').filter(|part| *part != "lib");
    let parts: Vec<&str> = std::iter::once(name).chain(modules).collect();
    Some(parts.join("::").replace('-', "_"))
}

/// The package of a directory with a version: `hashbrown-0.16.1`.
fn package(directory: &str) -> Option<&str> {
    let (name, version) = directory.rsplit_once('-')?;
    let numbers: Vec<&str> = version.split('.').collect();
    let is_version = numbers.len() == 3
        && numbers.iter().all(|number| number.starts_with(|first: char| first.is_ascii_digit()));
    is_version.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_a_module_have_that_of_their_file() {
        let std = "/rustc/abc/library/alloc/src/vec/mod.rs";
        let hashbrown = "/root/.cargo/registry/src/x/hashbrown-0.16.1/src/raw.rs";
        for (name, file, expected) in [
            ("push<x::W, alloc::alloc::Global>", std, "alloc::vec::push<x::W>"),
            ("finish_grow<alloc::alloc::Global>", std, "alloc::vec::finish_grow"),
            (
                "drop_in_place<Box<x::W>>",
                "/a/library/core/src/ptr/mod.rs",
                "core::ptr::drop_in_place<Box<x::W>>",
            ),
            ("insert<u64>", hashbrown, "hashbrown::raw::insert<u64>"),
            ("run", "/x/tokio-util-0.7.1/src/lib.rs", "tokio_util::run"),
            ("alloc::vec::Vec<T>::push", std, "alloc::vec::Vec<T>::push"),
            ("<T as X>::f", std, "<T as X>::f"),
            ("operator new", std, "operator new"),
            ("main", "/home/x/src/main.rs", "main"),
            ("main", "src/main.rs", "main"),
            ("f", "/x/my-crate/src/f.rs", "f"),
            ("f", "/x/a-1.2.3/src/f.c", "f"),
            ("f", "/x/a-1.2/src/f.rs", "f"),
            ("f", "", "f"),
        ] {
            assert_eq!(qualified(name.to_owned(), file), expected, "{name} {file}");
        }
    }
}
