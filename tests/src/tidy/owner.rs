//! Each structure of the core has one owner: its methods stand in the file that declares it.

use super::source::{Source, identifier, words};

const CORE: &str = "alloc-core/src/";

/// Applies the rule to one file. Files outside the core and test code are not checked.
pub fn check(source: &Source, is_test: bool) -> Vec<String> {
    if is_test || !source.path.starts_with(CORE) {
        return Vec::new();
    }
    let code = source.shipped.as_str();
    let mut findings = Vec::new();
    for at in words(code, "impl") {
        let Some(name) = type_of(code, at) else { continue };
        if !declares(code, name) {
            let text = format!("methods of {name}, which another file declares");
            findings.push(source.finding(source.line_of(at), &text));
        }
    }
    findings
}

/// The type whose methods the `impl` at an offset holds. `None` if it is the `impl` of a trait, or
/// no item.
fn type_of(code: &str, at: usize) -> Option<&str> {
    let before = code[..at].trim_end().chars().next_back();
    if !matches!(before, None | Some('}' | ';' | ']' | '{')) {
        return None;
    }
    let open = at + code[at..].find('{')?;
    let header = without_generics(code[at + 4..open].trim_start());
    if words(header, "for").next().is_some() {
        return None;
    }
    let path = header.split('<').next().unwrap_or_default().trim();
    Some(identifier(path.rsplit("::").next().unwrap_or_default()))
}

/// The header of an `impl` without its generic parameters.
fn without_generics(header: &str) -> &str {
    let Some(list) = header.strip_prefix('<') else { return header };
    let mut depth = 1;
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if !list[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &list[at + 1..];
        }
    }
    header
}

/// Whether the file declares a type with this name.
fn declares(code: &str, name: &str) -> bool {
    let kinds = ["struct", "enum", "union"].into_iter();
    let mut behind = kinds.flat_map(|kind| words(code, kind).map(move |at| at + kind.len()));
    behind.any(|behind| identifier(&code[behind..]) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        check(&Source::new("alloc-core/src/back/a.rs", text), false)
    }

    #[test]
    fn methods_in_another_file_are_found() {
        let expected = "alloc-core/src/back/a.rs:2: methods of B, which another file declares";
        for header in
            ["impl B {", "impl<T> B<T> {", "impl super::b::B {", "impl<F: Fn() -> u8> B<F> {"]
        {
            assert_eq!(findings(&format!("use b::B;\n{header} fn f() {{}} }}")), [expected]);
        }
        assert_eq!(findings("mod m { struct A; }\nimpl B { }"), [expected]);
    }

    #[test]
    fn methods_beside_their_type_and_traits_are_fine() {
        assert_eq!(
            findings("struct A;\nimpl A { fn f(g: impl Fn()) -> impl Copy { 1 } }"),
            [""; 0]
        );
        assert_eq!(findings("enum A<T> { B(T) }\nimpl<T> A<T> {}"), [""; 0]);
        assert_eq!(findings("impl Copy for B {}\nunsafe impl<T> Sync for C<T> {}"), [""; 0]);
        assert_eq!(findings("#[cfg(test)]\nimpl B { fn f() {} }"), [""; 0]);
        let other = Source::new("ctl/src/a.rs", "impl B {}");
        assert_eq!(check(&other, false), [""; 0]);
        let test = Source::new("alloc-core/src/back/a_test.rs", "impl B {}");
        assert_eq!(check(&test, true), [""; 0]);
    }
}
