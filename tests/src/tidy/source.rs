//! A Rust file in three versions of the same shape: the text, its code, and its shipped code.

/// The visibilities that may stand before an item.
pub const VISIBILITIES: [&str; 4] = ["", "pub ", "pub(crate) ", "pub(super) "];

/// One file. The three texts have the same length and the same line breaks.
pub struct Source {
    /// Path from the workspace's root.
    pub path: String,
    /// The unchanged text.
    pub text: String,
    /// The text with comments and the contents of strings blanked out.
    pub code: String,
    /// The code with items under `#[cfg(test)]` or `#[cfg(loom)]` blanked out as well.
    pub shipped: String,
}

impl Source {
    /// Makes the three versions of a file's text.
    pub fn new(path: &str, text: &str) -> Source {
        let code = blank_comments_and_strings(text);
        let shipped = blank_test_items(&code);
        Source { path: path.to_owned(), text: text.to_owned(), code, shipped }
    }

    /// The line (from 1) of a byte offset.
    pub fn line_of(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    /// The line (from 1) at which the test code at the file's end begins; the line after the last
    /// if there is none.
    pub fn first_test_line(&self) -> usize {
        let lines = self.code.lines().zip(self.shipped.lines());
        let mut begin = None;
        for (index, (code, shipped)) in lines.enumerate() {
            let item = code.trim_start();
            let mut names = VISIBILITIES.iter().filter_map(|before| item.strip_prefix(before));
            let is_module = names.any(|name| name.starts_with("mod "));
            if is_module && code.contains('{') && shipped.trim().is_empty() {
                begin = Some(index + 1);
                break;
            }
        }
        begin.unwrap_or(self.text.lines().count() + 1)
    }

    /// A finding: `path:line: text`.
    pub fn finding(&self, line: usize, text: &str) -> String {
        format!("{}:{line}: {text}", self.path)
    }
}

/// The offsets at which `word` stands in `code` with no letter, digit or `_` beside it.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Whether this character may stand in an identifier.
pub fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The identifier at the beginning of `code`, after blanks. It may be empty.
pub fn identifier(code: &str) -> &str {
    let code = code.trim_start();
    &code[..code.find(|character| !is_word(character)).unwrap_or(code.len())]
}

/// The end of the item at `begin`: the offset after its `;` or its closing brace.
pub fn item_end(code: &str, begin: usize) -> usize {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(begin) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' if depth == 0 => return offset + 1,
            b'{' if depth == 0 => {
                let end = closing_brace(code, offset) + 1;
                return end + usize::from(code[end..].starts_with(';'));
            }
            b'}' if depth == 0 => return offset,
            _ => {}
        }
    }
    code.len()
}

/// The offset of the brace that closes the one at `open`; the last byte if there is none.
pub fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && byte == b'}' {
            return offset;
        }
    }
    code.len() - 1
}

/// The names of the inline modules around `at`, outermost first.
pub fn inline_modules(code: &str, at: usize) -> Vec<&str> {
    let before = words(code, "mod").take_while(|&begin| begin < at);
    let around = before.filter(|&begin| item_end(code, begin) > at);
    around.map(|begin| identifier(&code[begin + 3..])).collect()
}

fn blank_test_items(code: &str) -> String {
    const ATTRIBUTES: [&str; 4] =
        ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(loom)]", "#[cfg(all(loom"];
    let mut out = code.as_bytes().to_vec();
    for attribute in ATTRIBUTES {
        for (begin, _) in code.match_indices(attribute) {
            let behind = begin + code[begin..].find(']').map_or(attribute.len(), |at| at + 1);
            blank(&mut out, begin, test_item_end(code, behind));
        }
    }
    String::from_utf8(out).expect("blanks are ASCII and replace whole items")
}

/// The end of the item, field or expression after an attribute that ends at `begin`.
fn test_item_end(code: &str, begin: usize) -> usize {
    const ITEMS: [&str; 14] = [
        "pub", "fn", "mod", "use", "impl", "struct", "enum", "const", "static", "unsafe", "extern",
        "type", "trait", "let",
    ];
    let rest = code[begin..].trim_start();
    let begin = code.len() - rest.len();
    if rest.starts_with('#') {
        return test_item_end(code, begin + rest.find(']').map_or(rest.len(), |at| at + 1));
    }
    let first = identifier(rest);
    if ITEMS.contains(&first) || rest.starts_with('{') || first.ends_with("macro_rules") {
        return item_end(code, begin);
    }
    let end = rest.find([',', ';', '}', '{']).unwrap_or(rest.len());
    match rest.as_bytes().get(end) {
        Some(b'{') => closing_brace(code, begin + end) + 1,
        Some(b'}') | None => begin + end,
        Some(_) => begin + end + 1,
    }
}

fn blank(bytes: &mut [u8], begin: usize, end: usize) {
    for byte in &mut bytes[begin..end] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn blank_comments_and_strings(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = text[at..].find('\n').map_or(bytes.len(), |length| at + length);
                blank(&mut out, at, end);
                end
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = block_comment_end(bytes, at);
                blank(&mut out, at, end);
                end
            }
            b'"' => {
                let end = string_end(bytes, at, raw_hashes(bytes, at));
                blank(&mut out, at + 1, end.saturating_sub(1).max(at + 1));
                end
            }
            b'\'' => {
                let end = char_end(text, at);
                blank(&mut out, at, if end == at + 1 { at } else { end });
                end
            }
            _ => at + 1,
        };
        at = end;
    }
    String::from_utf8(out).expect("blanks are ASCII and replace whole characters")
}

fn block_comment_end(bytes: &[u8], begin: usize) -> usize {
    let mut depth = 0;
    let mut at = begin;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// `Some(n)` if the quote at `quote` opens a raw string with n hashes.
fn raw_hashes(bytes: &[u8], quote: usize) -> Option<usize> {
    let hashes = bytes[..quote].iter().rev().take_while(|&&byte| byte == b'#').count();
    let before = &bytes[..quote - hashes];
    let is_raw = before.last() == Some(&b'r')
        && !before[..before.len() - 1]
            .last()
            .is_some_and(|&byte| is_word(byte as char) && !matches!(byte, b'b' | b'c'));
    is_raw.then_some(hashes)
}

fn string_end(bytes: &[u8], quote: usize, raw: Option<usize>) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() {
        match (bytes[at], raw) {
            (b'\\', None) => at += 1,
            (b'"', None) => return at + 1,
            (b'"', Some(hashes)) => {
                let closing = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
                if closing >= hashes {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The offset after the character literal at `quote`, or after the quote of a lifetime.
fn char_end(text: &str, quote: usize) -> usize {
    let rest = &text[quote + 1..];
    let mut characters = rest.char_indices();
    match characters.next() {
        Some((_, '\\')) => rest[2..].find('\'').map_or(text.len(), |at| quote + 1 + 2 + at + 1),
        Some(_) => match characters.next() {
            Some((at, '\'')) => quote + 1 + at + 1,
            _ => quote + 1,
        },
        None => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new("x.rs", text).code
    }

    #[test]
    fn comments_are_blank() {
        assert_eq!(code("a // b\nc"), "a     \nc");
        assert_eq!(code("a /* /* b */ */ c"), "a               c");
    }

    #[test]
    fn strings_keep_their_quotes_only() {
        assert_eq!(code(r#"f("a // \" {", b)"#), r#"f("         ", b)"#);
        assert_eq!(code("r#\"a\"{\"#;"), "r#\"   \"#;");
        assert_eq!(code("\"ä\";"), "\"  \";");
    }

    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        assert_eq!(code("f('{', '\\'', 'x')"), "f(   ,     ,    )");
        assert_eq!(code("&'a T { b: &'static str }"), "&'a T { b: &'static str }");
    }

    #[test]
    fn test_items_are_not_shipped() {
        let shipped = |text: &str| Source::new("x.rs", text).shipped.trim_end().to_owned();
        assert_eq!(shipped("a;\n#[cfg(test)]\nmod tests { fn b() {} }"), "a;");
        assert_eq!(shipped("#[cfg(test)]\nextern crate std;\nb;").trim(), "b;");
        assert_eq!(shipped("#[cfg(loom)]\nuse loom::{a, b};\nb;").trim(), "b;");
        let fields = shipped("struct A {\n #[cfg(test)]\n a: B,\n c: D }");
        assert_eq!(fields.replace(' ', ""), "structA{\n\n\nc:D}");
        assert_eq!(shipped("#[cfg(not(test))] a;"), "#[cfg(not(test))] a;");
    }

    #[test]
    fn test_code_begins_at_its_module() {
        for before in VISIBILITIES {
            let text = format!("#[cfg(test)]\nuse a;\nb;\n#[cfg(test)]\n{before}mod t {{\n}}\n");
            assert_eq!(Source::new("x.rs", &text).first_test_line(), 5, "{before}");
        }
        assert_eq!(Source::new("x.rs", "a;\nb;\n").first_test_line(), 3);
    }
}
