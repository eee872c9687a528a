//! The order within a folder of the core: a module imports only modules that its folder declares
//! above it. The `mod` lines of `mod.rs` define the order.

use std::collections::BTreeMap;

use super::source::{Source, identifier, inline_modules, words};

const CORE: &str = "alloc-core/src/";

/// The modules that each folder declares, in order. The key is the folder's path below
/// `alloc-core/src`.
pub type Declared = BTreeMap<String, Vec<String>>;

/// Reads the `mod` lines of each `mod.rs` and of `lib.rs`.
pub fn declared(sources: &[Source]) -> Declared {
    let mut found = Declared::new();
    for source in sources {
        let Some(path) = source.path.strip_prefix(CORE) else { continue };
        let Some(folder) = path.strip_suffix("lib.rs").or_else(|| path.strip_suffix("mod.rs"))
        else {
            continue;
        };
        let modules = words(&source.shipped, "mod")
            .filter(|at| inline_modules(&source.shipped, *at).is_empty())
            .map(|at| identifier(&source.shipped[at + 3..]).to_owned());
        found.insert(folder.trim_end_matches('/').to_owned(), modules.collect());
    }
    found
}

/// Applies the rule to one file. Files outside the core and test code have no order.
pub fn check(source: &Source, is_test: bool, declared: &Declared) -> Vec<String> {
    let Some(path) = source.path.strip_prefix(CORE) else { return Vec::new() };
    if is_test {
        return Vec::new();
    }
    let own = module_path(path);
    let mut findings = Vec::new();
    for (at, target) in imports(source, &own) {
        if let Some((list, importer, imported)) = against_order(&own, &target, declared) {
            let text = format!("{importer} imports {imported}, which {list} declares below");
            findings.push(source.finding(source.line_of(at), &text));
        }
    }
    findings
}

/// The place where two module paths part, if the imported module is declared below the importer:
/// the file with the list, the importer and the imported module.
fn against_order<'a>(
    own: &'a [String],
    target: &'a [String],
    declared: &Declared,
) -> Option<(String, &'a str, &'a str)> {
    let common = own.iter().zip(target).take_while(|(own, target)| own == target).count();
    let (importer, imported) = (own.get(common)?, target.get(common)?);
    let folder = own[..common].join("/");
    let modules = declared.get(&folder)?;
    let place = |name: &str| modules.iter().position(|module| module == name);
    let is_below = place(imported)? > place(importer)?;
    let list = if common == 0 { "lib.rs".to_owned() } else { format!("{folder}/mod.rs") };
    is_below.then_some((list, importer, imported))
}

/// The path of modules of a file: `back/provider/mmap.rs` is back, provider, mmap.
pub fn module_path(path: &str) -> Vec<String> {
    let parts = path.trim_end_matches(".rs").split('/');
    parts.filter(|part| !matches!(*part, "mod" | "lib")).map(str::to_owned).collect()
}

/// Every path that begins with `crate` or `super`, as seen from the root of the crate, and its
/// offset.
pub fn imports(source: &Source, own: &[String]) -> Vec<(usize, Vec<String>)> {
    let code = source.shipped.as_str();
    let mut found = Vec::new();
    for at in words(code, "crate") {
        if let Some(rest) = code[at + 5..].strip_prefix("::") {
            expand(&[], rest, &mut |path| found.push((at, path)));
        }
    }
    for at in words(code, "super").filter(|at| !code[..*at].ends_with("::")) {
        let mut base = own.to_vec();
        base.extend(inline_modules(code, at).into_iter().map(str::to_owned));
        let mut rest = &code[at..];
        while let Some(behind) = rest.strip_prefix("super::") {
            base.pop();
            rest = behind;
        }
        expand(&base, rest, &mut |path| found.push((at, path)));
    }
    found
}

/// Calls `visit` with each path of a use tree: `a::{b, c::d}` gives a::b and a::c::d.
fn expand(base: &[String], tree: &str, visit: &mut impl FnMut(Vec<String>)) {
    let tree = tree.trim_start();
    if let Some(inner) = tree.strip_prefix('{') {
        for part in parts(inner) {
            expand(base, part, visit);
        }
        return;
    }
    let name = identifier(tree);
    let mut path = base.to_vec();
    if !name.is_empty() && name != "self" {
        path.push(name.to_owned());
    }
    match tree[name.len()..].strip_prefix("::") {
        Some(rest) => expand(&path, rest, visit),
        None => visit(path),
    }
}

/// The parts of a use tree after its opening brace.
fn parts(inner: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b',' | b'}' if depth == 0 => {
                found.push(&inner[begin..at]);
                begin = at + 1;
                if byte == b'}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found.retain(|part| !part.trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = "pub(crate) mod a;\nmod b;\n#[cfg(test)]\nmod t;\npub mod c;\nmod deep;";

    fn findings(path: &str, text: &str) -> Vec<String> {
        let sources = [
            Source::new("alloc-core/src/lib.rs", "mod back;\nmod middle;"),
            Source::new("alloc-core/src/back/mod.rs", FOLDER),
            Source::new("alloc-core/src/back/deep/mod.rs", "mod x;\nmod y;"),
            Source::new("alloc-core/src/front/mod.rs", "mod a;\nmod b;"),
        ];
        check(&Source::new(path, text), false, &declared(&sources))
    }

    fn assert_finds(path: &str, text: &str, expected: &str) {
        let found = findings(path, text);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
    }

    #[test]
    fn the_modules_of_a_folder_are_read_in_order() {
        let source = Source::new("alloc-core/src/back/mod.rs", FOLDER);
        let declared = declared(&[source, Source::new("x/src/mod.rs", "mod z;")]);
        assert_eq!(declared.keys().collect::<Vec<_>>(), ["back"]);
        assert_eq!(declared["back"], ["a", "b", "c", "deep"]);
    }

    #[test]
    fn imports_from_below_are_found() {
        let a = "alloc-core/src/back/a.rs";
        assert_finds(
            a,
            "use super::b::B;",
            "a.rs:1: a imports b, which back/mod.rs declares below",
        );
        assert_finds(a, "use crate::back::{c::C, a::A};", "a imports c");
        assert_finds(a, "fn f() { crate::back::deep::y::g() }", "a imports deep");
        assert_finds(a, "mod i { use super::super::c; }", "a imports c");
        let x = "alloc-core/src/back/deep/x.rs";
        assert_finds(x, "use super::y;", "x imports y, which back/deep/mod.rs declares below");
        assert_finds("alloc-core/src/back/c.rs", "use super::{a, deep::x};", "c imports deep");
        assert_finds(a, "use crate::middle::b;", "back imports middle");
    }

    #[test]
    fn other_imports_are_fine() {
        let fine = |path: &str, text: &str| assert_eq!(findings(path, text), [""; 0]);
        let c = "alloc-core/src/back/c.rs";
        fine(c, "use super::{a::A, b};\nuse crate::back::a;\nuse super::c::X;\nuse core::mem;");
        fine(c, "#[cfg(test)]\nmod tests { use super::super::deep; }\nuse super::unknown;");
        fine("alloc-core/src/back/deep/y.rs", "use super::super::a;\nuse super::x;");
        fine("alloc-core/src/back/mod.rs", "use self::deep;\npub use a::A;");
        fine("alloc-core/src/front/b.rs", "use super::a;\nuse crate::back::deep;");
        fine("ctl/src/back/a.rs", "use super::b;");
    }
}
