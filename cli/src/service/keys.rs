//! The keys that are allowed.

/// The longest key, in bytes.
pub(crate) const MAX_KEY: usize = 256;

/// Returns why a key is not allowed, or `None` if it is allowed.
pub(crate) fn refusal(key: &str) -> Option<&'static str> {
    if key.is_empty() {
        Some("the key is empty")
    } else if key.len() > MAX_KEY {
        Some("the key is longer than 256 bytes")
    } else if !is_plain(key) {
        Some("a key consists of letters, digits and - . _ ~ : @ /")
    } else {
        None
    }
}

/// Whether a text has only characters that stand for themselves in a path and in a query.
pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:@/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_plain_and_short() {
        assert_eq!(refusal("user/42:name@host~1"), None);
        assert_eq!(refusal(&"k".repeat(MAX_KEY)), None);
        assert_eq!(refusal(""), Some("the key is empty"));
        let long = "k".repeat(MAX_KEY + 1);
        assert_eq!(refusal(&long), Some("the key is longer than 256 bytes"));
        let reason = "a key consists of letters, digits and - . _ ~ : @ /";
        for bad in ["a b", "%41", "ä", "a?b", "a\n"] {
            assert_eq!(refusal(bad), Some(reason), "{bad:?}");
        }
    }
}
