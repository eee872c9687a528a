//! The shape of a file: lengths, module docs, and atomic orderings whose comments name their
//! partners.

use std::path::Path;

use super::source::{Source, closing_brace, identifier, words};

const LINE_MAX: usize = 100;
/// For C, C++ and shell, because no formatter breaks their lines.
const OTHER_LINE_MAX: usize = 120;
const FUNCTION_MAX: usize = 70;
const FILE_MAX: usize = 400;
/// An ordering's comment is at most this many lines away.
const ORDERING_DISTANCE: usize = 3;
const ORDERINGS: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];

/// Applies every rule of this module to one Rust file.
pub fn check(source: &Source, is_test: bool) -> Vec<String> {
    let mut findings = line_lengths(source, is_test);
    findings.extend(function_lengths(source));
    findings.extend(file_length(source));
    findings.extend(module_doc(source));
    if !is_test {
        findings.extend(ordering_partners(source));
    }
    findings
}

/// Checks the lengths of lines in C, C++ and shell.
pub fn check_other_texts(root: &Path, files: &[String]) -> Vec<String> {
    const ENDINGS: [&str; 8] =
        [".c", ".cc", ".h", ".sh", "tests/run", "tests/soak", "tests/aarch64", "tests/gates"];
    let mut findings = Vec::new();
    for path in files.iter().filter(|path| ENDINGS.iter().any(|ending| path.ends_with(ending))) {
        let text = super::read(root, path);
        let long = long_lines(&text, OTHER_LINE_MAX);
        findings.extend(long.map(|line| format!("{path}:{line}: {OTHER_LINE_RULE}")));
    }
    findings
}

const LINE_RULE: &str = "longer than 100 characters";
const OTHER_LINE_RULE: &str = "longer than 120 characters";

fn long_lines(text: &str, max: usize) -> impl Iterator<Item = usize> {
    let numbered = text.lines().enumerate();
    numbered.filter(move |(_, line)| line.chars().count() > max).map(|(index, _)| index + 1)
}

/// Checks the lengths of lines. Long strings in tests are allowed.
fn line_lengths(source: &Source, is_test: bool) -> Vec<String> {
    let tests = if is_test { 0 } else { source.first_test_line() };
    let lines: Vec<&str> = source.text.lines().collect();
    long_lines(&source.text, LINE_MAX)
        .filter(|&line| line < tests || !lines[line - 1].contains('"'))
        .map(|line| source.finding(line, LINE_RULE))
        .collect()
}

fn function_lengths(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    for at in words(&source.code, "fn") {
        let name = identifier(&source.code[at + 2..]);
        let Some(open) = body(&source.code, at) else { continue };
        let begin = source.line_of(at);
        let length = source.line_of(closing_brace(&source.code, open)) - begin + 1;
        if length > FUNCTION_MAX && !name.is_empty() {
            let text = format!("fn {name} has {length} lines, more than {FUNCTION_MAX}");
            findings.push(source.finding(begin, &text));
        }
    }
    findings
}

/// The opening brace of the body of the function declared at `at`.
fn body(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' if depth == 0 => return None,
            b')' | b']' => depth -= 1,
            b';' | b'}' | b',' if depth == 0 && !in_generics(code, at, offset) => return None,
            b'{' if depth == 0 => return Some(offset),
            _ => {}
        }
    }
    None
}

/// Whether a comma at `offset` separates generic parameters (more `<` than `>` since `at`).
fn in_generics(code: &str, at: usize, offset: usize) -> bool {
    let head = code[at..offset].replace("->", "  ");
    code.as_bytes()[offset] == b','
        && (head.contains("where") || head.matches('<').count() > head.matches('>').count())
}

fn file_length(source: &Source) -> Option<String> {
    let lines = source.first_test_line() - 1;
    let text = format!("{lines} lines before the tests, more than {FILE_MAX}");
    (lines > FILE_MAX).then(|| source.finding(1, &text))
}

fn module_doc(source: &Source) -> Option<String> {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let has_doc = first.starts_with("//!") || first.starts_with("#![doc");
    (!has_doc).then(|| source.finding(1, "does not begin with a module doc //!"))
}

/// Checks that each ordering stronger than `Relaxed` has a comment near it that names its partner.
fn ordering_partners(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let names_partner = |line: usize| {
        let from = line.saturating_sub(ORDERING_DISTANCE + 1);
        let to = (line + ORDERING_DISTANCE).min(lines.len());
        lines[from..to].iter().any(|line| {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment);
            comment.to_lowercase().contains("pair")
        })
    };
    let mut findings = Vec::new();
    for at in words(&source.shipped, "Ordering") {
        let Some(rest) = source.shipped[at..].strip_prefix("Ordering::") else { continue };
        let line = source.line_of(at);
        let name = identifier(rest);
        if is_import(&source.shipped, at) {
            if imports_strong(rest) {
                let text = "write a strong Ordering:: at each use, not in an import";
                findings.push(source.finding(line, text));
            }
        } else if ORDERINGS.contains(&name) && !names_partner(line) {
            let text = format!("Ordering::{name} without a comment that says what it pairs with");
            findings.push(source.finding(line, &text));
        }
    }
    findings
}

/// Whether the text after `Ordering::` in an import brings a stronger name than `Relaxed` into
/// scope.
fn imports_strong(rest: &str) -> bool {
    let tree = rest.split([';', '}']).next().unwrap_or("");
    let tree = if tree.starts_with('{') { tree } else { identifier(tree) };
    rest.starts_with('*') || ORDERINGS.iter().any(|name| words(tree, name).next().is_some())
}

/// Whether `at` lies in a `use` item.
fn is_import(code: &str, at: usize) -> bool {
    let begin = code[..at].rfind([';', '}']).map_or(0, |end| end + 1);
    words(&code[begin..at], "use").next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str, is_test: bool) -> Vec<String> {
        check(&Source::new("x.rs", text), is_test)
    }

    fn assert_finds(text: &str, expected: &str) {
        let found = findings(text, false);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
    }

    fn assert_clean(text: &str) {
        assert_eq!(findings(text, false), [""; 0]);
    }

    #[test]
    fn long_lines_are_found() {
        assert_finds(&format!("//! A\n// {}\n", "a".repeat(98)), "x.rs:2: longer than 100");
        assert_clean(&format!("//! A\n// {}\n", "ä".repeat(97)));
    }

    #[test]
    fn long_strings_of_tests_are_excepted() {
        let string = format!("\"{}\"", "a".repeat(100));
        assert_finds(&format!("//! A\nconst A: &str = {string};\n"), "longer than 100");
        assert_clean(&format!("//! A\n#[cfg(test)]\nmod t {{\nconst A: &str = {string};\n}}\n"));
        assert!(findings(&format!("//! A\nconst A: &str = {string};\n"), true).is_empty());
    }

    #[test]
    fn long_functions_are_found() {
        let body = "    a();\n".repeat(69);
        assert_finds(&format!("//! A\nfn b<A, B>(c: [u8; 4]) {{\n{body}}}\n"), "fn b has 71 lines");
        assert_clean(&format!("//! A\nfn b() {{\n{}}}\n", "    a();\n".repeat(68)));
        assert_finds(&format!("//! A\nimpl A {{\nfn c()\nwhere A: B, {{\n{body}}}\n}}\n"), "fn c");
    }

    #[test]
    fn functions_without_body_are_not_measured() {
        let mods = "mod a { fn b() {} }\n".repeat(80);
        assert_clean(&format!("//! A\ntrait A {{ fn a(); }}\nstruct B {{ f: fn() }}\n{mods}"));
    }

    #[test]
    fn long_files_are_found() {
        let lines = "a;\n".repeat(400);
        assert_finds(&format!("//! A\n{lines}"), "401 lines before the tests");
        assert_clean(&format!("//! A\n#[cfg(test)]\nmod t {{\n{lines}}}\n"));
    }

    #[test]
    fn files_without_doc_are_found() {
        assert_finds("use a;\n", "module doc");
        assert_finds("", "module doc");
        assert_clean("//! A\n");
    }

    #[test]
    fn lonely_orderings_are_found() {
        assert_finds("//! A\nlet a = b.load(Ordering::Acquire);\n", "Ordering::Acquire without");
        assert_finds(
            "//! A\n// Pairs with b.\n\n\n\n\na.load(Ordering::SeqCst);\n",
            "Ordering::SeqCst without",
        );
        for import in
            ["Ordering::{Acquire, Release}", "{AtomicU8, Ordering::Acquire}", "Ordering::*"]
        {
            let text = format!("//! A\nuse core::sync::atomic::{import};\n");
            assert_finds(&text, "at each use");
        }
        assert_clean(
            "//! A\n// Acquire: pairs with the Release in `b`.\na.load(Ordering::Acquire);\n",
        );
        assert_clean("//! A\na.load(Ordering::Relaxed);\nuse core::cmp::Ordering;\n");
        assert_clean("//! A\nuse core::sync::atomic::{AtomicU8, Ordering::Relaxed};\n");
    }
}
