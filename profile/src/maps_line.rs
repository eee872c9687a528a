//! A line of `/proc/self/maps`.

/// What a line tells.
pub(crate) struct Line<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) may_run: bool,
    pub(crate) offset: u64,
    pub(crate) name: &'a [u8],
}

/// Returns a hash of a name.
pub(crate) fn hash(name: &[u8]) -> u64 {
    name.iter().fold(1, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Reads a line: `start-end permissions offset device inode name`.
pub(crate) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let (start, rest) = hexadecimal(line)?;
    let (end, rest) = hexadecimal(rest.strip_prefix(b"-")?)?;
    let rest = rest.strip_prefix(b" ")?;
    let may_run = *rest.get(2)? == b'x';
    let (offset, rest) = hexadecimal(rest.get(5..)?)?;
    // The device and the number of the file are of no use here.
    let mut fields = rest.splitn(4, |byte| *byte == b' ');
    let name = fields.nth(3).unwrap_or_default();
    Some(Line { start, end, may_run, offset, name: name.trim_ascii() })
}

fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, rest) = text.split_at_checked(length).filter(|_| (1..=16).contains(&length))?;
    let value = |byte: &u8| u64::from((*byte as char).to_digit(16).unwrap_or(0));
    Some((digits.iter().fold(0, |number, byte| number << 4 | value(byte)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_blanks_in_names_and_without_names() {
        let line = parse(b"7f00-8f10 r-xp 00001000 fe:00 12345                      /a b c");
        let line = line.expect("a line");
        assert_eq!((line.start, line.end, line.offset), (0x7f00, 0x8f10, 0x1000));
        assert!(line.may_run && line.name == b"/a b c");
        let line = parse(b"1-2 rw-p 00000000 00:00 0 ").expect("a line");
        assert!(!line.may_run && line.name.is_empty());
        for bad in ["", "x", "1-", "1-2", "1-2 r-xp", "1-2 r-xp z", "11111111111111111-2 r-xp 0 "] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
