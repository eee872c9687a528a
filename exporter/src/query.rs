//! The query of an address, which is the part behind `?`.

/// Returns the decoded values of a name, in order. A name without `=` has an empty value.
pub(crate) fn values<'a>(query: Option<&'a str>, name: &'a str) -> impl Iterator<Item = String> {
    let pairs = query.unwrap_or_default().split('&').map(move |pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key), value)
    });
    pairs.filter(move |(key, _)| key == name).map(|(_, value)| decode(value))
}

/// Returns the first name that is not known.
pub(crate) fn unknown(query: Option<&str>, known: &[&str]) -> Option<String> {
    let names = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let mut names = names.map(|pair| decode(pair.split('=').next().unwrap_or_default()));
    names.find(|name| !known.contains(&name.as_str()))
}

/// Decodes `%41` to `A`, and `+` to a space. A `%` without two hexadecimal digits stays as it is.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()));
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(if first == b'+' { b' ' } else { first });
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_name() {
        let all = |query, name| values(query, name).collect::<Vec<_>>();
        assert_eq!(all(Some("a=1&b=2&a=%41+b"), "a"), ["1", "A b"]);
        assert_eq!(all(Some("collect%5B%5D=bins&collect[]=x"), "collect[]"), ["bins", "x"]);
        assert_eq!(all(Some("a&b"), "b"), [""]);
        assert!(all(None, "a").is_empty());
    }

    #[test]
    fn what_is_no_code_stays() {
        for (text, expected) in [("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%+1", "% 1")] {
            assert_eq!(decode(text), expected);
        }
        assert_eq!(decode("%ff"), "\u{fffd}");
    }

    #[test]
    fn names_that_nobody_knows() {
        assert_eq!(unknown(Some("a=1&b=2"), &["a", "b"]), None);
        assert_eq!(unknown(Some("a=1&%63=2"), &["a", "b"]).as_deref(), Some("c"));
        assert_eq!(unknown(Some(""), &[]), None);
        assert_eq!(unknown(None, &[]), None);
    }
}
