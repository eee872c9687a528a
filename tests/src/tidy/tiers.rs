//! The tiers of the core: a lower one never imports a higher one, and no tier uses `std`.

use super::source::{Source, identifier, inline_modules, words};

/// The directories of `alloc-core/src`, from low to high. `lib.rs` stands above all of them. `docs`
/// holds no code, only long documents that link to everything.
pub const TIERS: [&str; 8] =
    ["ground", "back", "profile", "middle", "front", "observe", "control", "docs"];

const CORE: &str = "alloc-core/src/";
/// The one file that may use `std`, because only `std` offers a thread-local word without assembly.
const STD_ALLOWED: &str = "alloc-core/src/front/bins/tls.rs";

/// Applies both rules to one file. Files outside the core and test code have no tier.
pub fn check(source: &Source, is_test: bool) -> Vec<String> {
    let Some(path) = source.path.strip_prefix(CORE) else { return Vec::new() };
    if is_test {
        return Vec::new();
    }
    let mut findings = if source.path == STD_ALLOWED { Vec::new() } else { no_std(source) };
    findings.extend(upward_imports(source, path));
    findings
}

/// Finds uses of `std` and `alloc`: the core must not be able to allocate through itself.
fn no_std(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    for at in words(&source.shipped, "std") {
        let before = source.shipped[..at].trim_end();
        let is_path = source.shipped[at + 3..].starts_with("::") && !before.ends_with("::");
        if is_path || before.ends_with("extern crate") {
            findings.push(source.finding(source.line_of(at), "std in the core"));
        }
    }
    for at in words(&source.shipped, "alloc") {
        if source.shipped[..at].trim_end().ends_with("extern crate") {
            findings.push(source.finding(source.line_of(at), "the alloc crate in the core"));
        }
    }
    findings
}

/// Finds imports of higher tiers. `path` is the path below `alloc-core/src`.
fn upward_imports(source: &Source, path: &str) -> Vec<String> {
    let Some((tier, _)) = path.split_once('/') else { return Vec::new() };
    let Some(own) = TIERS.iter().position(|&name| name == tier) else {
        return vec![source.finding(1, &format!("{tier}/ is none of the tiers {TIERS:?}"))];
    };
    let mut findings = Vec::new();
    for (at, name) in imports(source, path) {
        let line = source.line_of(at);
        match TIERS.iter().position(|&tier| tier == name) {
            Some(other) if other <= own => {}
            Some(_) => findings.push(source.finding(line, &format!("{tier} imports {name}"))),
            None => {
                let text = format!("{tier} imports {name} from lib.rs; name its tier");
                findings.push(source.finding(line, &text));
            }
        }
    }
    findings
}

/// Every name directly below the crate's root that the file mentions, with its offset.
fn imports<'a>(source: &'a Source, path: &str) -> Vec<(usize, &'a str)> {
    let code = source.shipped.as_str();
    let mut found = Vec::new();
    for at in words(code, "crate") {
        if let Some(rest) = code[at + 5..].strip_prefix("::") {
            found.extend(first_names(rest).into_iter().map(|name| (at, name)));
        }
    }
    let depth = module_depth(path);
    for at in words(code, "super") {
        if code[..at].ends_with("::") {
            continue;
        }
        let mut rest = &code[at..];
        let mut steps = 0;
        while let Some(behind) = rest.strip_prefix("super::") {
            steps += 1;
            rest = behind;
        }
        if steps >= depth + inline_modules(code, at).len() {
            found.extend(first_names(rest).into_iter().map(|name| (at, name)));
        }
    }
    found
}

/// How many `super` lead from the file to the crate's root: 3 for `ground/sync/lock.rs`.
fn module_depth(path: &str) -> usize {
    let parts = path.trim_end_matches(".rs").split('/');
    parts.filter(|&part| part != "mod").count()
}

/// The first segments of a path or of a use tree: `a::b` gives a, `{a::b, c}` gives a and c. A
/// macro of the crate (`a!`) is not an import.
fn first_names(rest: &str) -> Vec<&str> {
    let Some(tree) = rest.strip_prefix('{') else {
        let name = identifier(rest);
        let is_macro = rest[name.len()..].starts_with('!');
        return if is_macro || name.is_empty() { Vec::new() } else { vec![name] };
    };
    let mut names = vec![identifier(tree)];
    let mut depth = 0;
    for (at, byte) in tree.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => break,
            b'}' => depth -= 1,
            b',' if depth == 0 => names.push(identifier(&tree[at + 1..])),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty() && *name != "self");
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text), false)
    }

    fn assert_finds(path: &str, text: &str, expected: &str) {
        let found = findings(path, text);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
    }

    fn assert_clean(path: &str, text: &str) {
        assert_eq!(findings(path, text), [""; 0]);
    }

    #[test]
    fn upward_imports_are_found() {
        let back = "alloc-core/src/back/extent.rs";
        assert_finds(back, "use crate::middle::bin::Bin;", "back imports middle");
        assert_finds(
            back,
            "use crate::{ground::list, front::{refill, raw}};",
            "back imports front",
        );
        assert_finds(back, "fn a() { crate::control::purge() }", "back imports control");
        assert_finds("alloc-core/src/ground/list.rs", "use crate::back;", "ground imports back");
        assert_finds("alloc-core/src/observe/collect.rs", "use crate::control;", "observe imports");
    }

    #[test]
    fn detours_are_found() {
        let deep = "alloc-core/src/back/provider/mmap.rs";
        assert_finds(deep, "use super::super::super::front::raw;", "back imports front");
        assert_finds(deep, "use crate::Flags;", "from lib.rs");
        assert_finds(
            "alloc-core/src/back/mod.rs",
            "use super::middle::arena;",
            "back imports middle",
        );
        let inline = "mod word { use super::super::super::super::control; }";
        assert_finds("alloc-core/src/front/bins/tls.rs", inline, "front imports control");
        assert_finds("alloc-core/src/vault/mod.rs", "", "none of the tiers");
    }

    #[test]
    fn downward_and_sideways_imports_are_fine() {
        let front = "alloc-core/src/front/supply/refill.rs";
        assert_clean(front, "use crate::{ground::{a, b}, middle::c};\nuse super::cache_bin;");
        assert_clean(front, "use crate::front::malloc;\ncrate::debug!();\npub(crate) fn a() {}");
        assert_clean("alloc-core/src/lib.rs", "use crate::control::purge;");
        assert_clean("namespace/src/lib.rs", "use crate::anything;\nuse std::fs;");
        assert_clean("alloc-core/src/ground/a/b.rs", "use super::super::list;");
        assert_clean(front, "mod word { use super::super::tls; }");
    }

    #[test]
    fn the_standard_library_is_found() {
        let path = "alloc-core/src/ground/list.rs";
        assert_finds(path, "use std::vec::Vec;", "std in the core");
        assert_finds(path, "extern crate std;", "std in the core");
        assert_finds(path, "extern crate alloc;", "alloc crate");
        assert_clean(path, "#[cfg(test)]\nextern crate std;\n#[cfg(test)]\nmod t { use std::fs; }");
        assert_clean(path, "//! like std::vec\nuse core::alloc::Layout;");
        assert!(check(&Source::new(path, "use std::vec::Vec;"), true).is_empty());
    }
}
