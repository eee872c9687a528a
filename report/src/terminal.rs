//! Texts of profiles, whose names anybody may have chosen, for terminals.

use std::fmt::Write;

use serde_json::Value as Json;

/// Returns whether a character controls a terminal, or the direction in which it writes, which
/// makes a text look like another one.
#[must_use]
pub fn controls(character: char) -> bool {
    character.is_control() || turns(character)
}

/// Returns whether a character changes the direction of writing.
fn turns(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Returns a text without characters that control a terminal.
pub(crate) fn printable(text: String) -> String {
    if !text.contains(controls) {
        return text;
    }
    text.replace(controls, "\u{fffd}")
}

/// Returns a value as JSON in one line, without characters that control a terminal.
pub(crate) fn json_text(json: &Json) -> String {
    escaped(json.to_string())
}

/// Returns a JSON text in which what controls a terminal is escaped: JSON itself asks for that only
/// below U+0020. The lines stay.
#[must_use]
pub fn escaped(json: String) -> String {
    let controls = |character| character != '\n' && controls(character);
    if !json.contains(controls) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if controls(character) {
            // Writing to a string cannot fail. Each of these has four digits.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_text_controls_a_terminal() {
        let all =
            "\u{1b}[31m\u{7f}\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}";
        let text = printable(format!("{all}ä\u{200d}\u{2065}"));
        assert_eq!(text, "\u{fffd}[31m".to_owned() + &"\u{fffd}".repeat(10) + "ä\u{200d}\u{2065}");
        assert_eq!(printable("plain".to_owned()), "plain");
    }

    #[test]
    fn json_escapes_what_controls_a_terminal() {
        let json = json!({ "a\u{9b}": ["\u{1b}[1mä\u{202e}\u{7f}", 1] });
        let text = json_text(&json);
        assert_eq!(text, r#"{"a\u009b":["\u001b[1mä\u202e\u007f",1]}"#);
        assert_eq!(serde_json::from_str::<Json>(&text).expect("JSON"), json);
        assert_eq!(json_text(&json!(["plain"])), r#"["plain"]"#);
    }
}
