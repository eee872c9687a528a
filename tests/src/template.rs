//! Exact texts with placeholders.
//!
//! `{hex}` stands for one address (`0x7f…`), `{n}` for a decimal number, `{owner}` for nothing or
//! `, owner cache N`, `{from}` for nothing or `; from` and return addresses (a stack without frame
//! pointers has none), the lines that say in which file each of these lies, and the line that the
//! mistake may be older. All other text is compared byte by byte.

/// Whether the whole of `text` has the form of `template`.
pub fn matches(template: &str, text: &str) -> bool {
    let mut rest = text;
    let mut template = template;
    while let Some(open) = template.find('{') {
        let Some(after) = rest.strip_prefix(&template[..open]) else { return false };
        let close = open + template[open..].find('}').expect("a place is closed by }");
        let taken = match &template[open..=close] {
            "{hex}" => hex(after),
            "{n}" => digits(after),
            "{owner}" => Some(owner(after)),
            "{from}" => Some(from(after)),
            place => panic!("unknown place {place}"),
        };
        let Some(taken) = taken else { return false };
        rest = &after[taken..];
        template = &template[close + 1..];
    }
    rest == template
}

/// The length of the address at the beginning of `text`.
fn hex(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("0x")?;
    let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    (count > 0).then_some(count + 2)
}

fn digits(text: &str) -> Option<usize> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    (count > 0).then_some(count)
}

fn owner(text: &str) -> usize {
    const WORDS: &str = ", owner cache ";
    let number = text.strip_prefix(WORDS).and_then(digits);
    number.map_or(0, |length| WORDS.len() + length)
}

fn from(text: &str) -> usize {
    const WORDS: &str = "; from";
    if !text.starts_with(WORDS) {
        return 0;
    }
    let mut taken = WORDS.len();
    while let Some(length) = text[taken..].strip_prefix(' ').and_then(hex) {
        taken += 1 + length;
    }
    if taken == WORDS.len() {
        return 0;
    }
    taken += files(&text[taken..], &text[WORDS.len()..taken]);
    let behind = text[taken..].strip_prefix('\n').filter(|behind| behind.starts_with(MAY_BE_OLDER));
    taken + behind.map_or(0, |_| 1 + MAY_BE_OLDER.len())
}

/// The line behind the report of a block that was looked at some time after its free.
pub const MAY_BE_OLDER: &str = "<lumalloc>: the mistake may be older than these calls, because \
                                small blocks are looked at some time after their free; \
                                hardened:true looks at once";

/// The length of the lines at the beginning of `text` that say in which file one of `addresses`
/// lies.
fn files(text: &str, addresses: &str) -> usize {
    let mut taken = 0;
    while let Some(line) = text[taken..].strip_prefix("\n<lumalloc>: ") {
        let line = line.lines().next().unwrap_or_default();
        let Some((address, place)) = line.split_once(" is /") else { break };
        if !addresses.split(' ').any(|known| known == address) || !place.contains("+0x") {
            break;
        }
        taken += "\n<lumalloc>: ".len() + line.len();
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::{MAY_BE_OLDER, matches};

    #[test]
    fn places_stand_for_what_they_say() {
        assert!(matches("free of {hex} (size {n})", "free of 0x7f00 (size 64)"));
        assert!(matches("it{from}", "it; from 0x1 0x2 0x3"));
        assert!(matches("(arena {n}{owner}){from}", "(arena 0, owner cache 3); from 0x1"));
        assert!(matches("(arena {n}{owner}){from}", "(arena 0)"));
        assert!(matches("it{from}", "it; from 0x1 0x2\n<lumalloc>: 0x2 is /a b+0x7"));
        assert!(matches("it{from}", &format!("it; from 0x1\n{MAY_BE_OLDER}")));
        assert!(matches("plain", "plain"));
    }

    #[test]
    fn everything_else_is_compared() {
        assert!(!matches("free of {hex}", "free of 7f00"));
        assert!(!matches("free of {hex}", "free of 0x"));
        assert!(!matches("size {n}", "size many"));
        assert!(!matches("size {n}", "size 64 and more"));
        assert!(!matches("it{from}", "it; from 0x1  0x2"));
        assert!(!matches("it{from}", "it; from"));
        assert!(!matches("it{from}", "it; from 0x1\n<lumalloc>: 0x2 is /a+0x7"));
        assert!(!matches("it{from}", "it; from 0x1\n<lumalloc>: 0x1 is nowhere"));
        assert!(!matches("it{from}", "it; from 0x1\n"));
        assert!(!matches("it{from}", &format!("it; from 0x1\n{MAY_BE_OLDER}!")));
        assert!(!matches("arena {n}{owner}", "arena 0, owner cache"));
        assert!(!matches("plain", "plain\n"));
    }
}
