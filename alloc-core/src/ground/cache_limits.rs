//! Limits on how many blocks of a class a cache may hold, and their text form: `low-high:most`,
//! with sizes in bytes, and `|` between several parts. Source: jemalloc 5.3.1,
//! `multi_setting_parse_next`.

use super::size_class::{CLASSES, MAX_CACHED, SizeClass};

/// The largest limit that a bin can get. The longest array of a bin has one slot more.
pub(crate) const MOST: u16 = 2047;

/// No limit is set for a bin, so its class determines how many blocks it may hold.
pub(crate) const BY_CLASS: u16 = u16::MAX;

/// The limits on how many blocks of each class a cache may hold, where limits are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheLimits([u16; CLASSES]);

/// One part of a text: the smallest size, the largest size, and the number of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    low: usize,
    high: usize,
    most: usize,
}

impl CacheLimits {
    /// No limits are set.
    pub const NONE: CacheLimits = CacheLimits([BY_CLASS; CLASSES]);

    /// Adds the limits of a text. A later part wins over an earlier one. Returns `false` if the
    /// text is malformed, and then nothing changed.
    pub(crate) fn read(&mut self, text: &[u8]) -> bool {
        let (mut limits, mut rest) = (*self, text);
        while !rest.is_empty() {
            let Some((part, next)) = parse(rest) else { return false };
            limits.set(part);
            rest = next;
        }
        *self = limits;
        true
    }

    fn set(&mut self, part: Part) {
        let high = part.high.min(MAX_CACHED);
        if part.low > high {
            return;
        }
        let classes = SizeClass::of(part.low).index()..=SizeClass::of(high).index();
        let most = u16::try_from(part.most).map_or(MOST, |most| most.min(MOST));
        self.0.get_mut(classes).unwrap_or_default().fill(most);
    }

    /// Returns the most blocks of a class, or [`BY_CLASS`].
    pub(crate) fn of(&self, class: SizeClass) -> u16 {
        self.0.get(class.index()).copied().unwrap_or(BY_CLASS)
    }

    /// Returns the limits as parts of a text: the block size in bytes of the smallest and of the
    /// largest class of each part, and its number of blocks.
    ///
    /// ```
    /// let limits = &lumalloc::options::current().tcache_ncached_max;
    /// assert_eq!(limits.parts().count(), 0, "nobody said anything");
    /// ```
    pub fn parts(&self) -> impl Iterator<Item = (usize, usize, u16)> + '_ {
        let mut classes = SizeClass::all().peekable();
        core::iter::from_fn(move || {
            let first = classes.find(|class| self.of(*class) != BY_CLASS)?;
            let most = self.of(first);
            let mut last = first;
            while let Some(class) = classes.next_if(|class| self.of(*class) == most) {
                last = class;
            }
            Some((first.size(), last.size(), most))
        })
    }
}

/// Parses a part up to the next `|`. Returns `None` if it is malformed.
fn parse(text: &[u8]) -> Option<(Part, &[u8])> {
    let (low, text) = number(text)?;
    let (high, text) = number(text.strip_prefix(b"-")?)?;
    let (most, text) = number(text.strip_prefix(b":")?)?;
    let rest = match text.split_first() {
        None => text,
        Some((b'|', rest)) if !rest.is_empty() => rest,
        Some(_) => return None,
    };
    Some((Part { low, high, most }, rest))
}

fn number(text: &[u8]) -> Option<(usize, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits).filter(|(digits, _)| !digits.is_empty())?;
    let number = digits.iter().try_fold(0usize, |number, digit| {
        number.checked_mul(10)?.checked_add(usize::from(digit - b'0'))
    })?;
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Option<Vec<Part>> {
        let (mut rest, mut parts) = (text.as_bytes(), Vec::new());
        while !rest.is_empty() {
            let (part, next) = parse(rest)?;
            parts.push(part);
            rest = next;
        }
        Some(parts)
    }

    #[test]
    fn limits_are_read_as_they_are_written() {
        assert_eq!(all(""), Some(vec![]));
        let one = Part { low: 8, high: 128, most: 7 };
        assert_eq!(all("8-128:7"), Some(vec![one]));
        let two = Part { low: 0, high: 99_999, most: 0 };
        assert_eq!(all("8-128:7|0-99999:0"), Some(vec![one, two]));
        for bad in [
            "8",
            "8-",
            "8-128",
            "8-128:",
            "8-128:7|",
            "|8-128:7",
            "8-128:7,",
            "x-1:1",
            "-1-8:1",
            "8-16:99999999999999999999",
            " 8-16:1",
            "8-16:1 ",
        ] {
            assert_eq!(all(bad), None, "{bad}");
            let mut limits = CacheLimits::NONE;
            assert!(!limits.read(format!("8-8:1|{bad}").as_bytes()));
            assert_eq!(limits, CacheLimits::NONE, "nothing changed");
        }
    }

    #[test]
    fn parts_add_up_and_the_last_wins() {
        let mut limits = CacheLimits::NONE;
        assert!(limits.read(b"10-100:5|60-70:9999999"));
        let parts = |limits: CacheLimits| limits.parts().collect::<Vec<_>>();
        assert_eq!(parts(limits), [(16, 48, 5), (64, 80, MOST), (96, 112, 5)]);
        assert!(limits.read(b"0-50:5|64-112:5|40000-50000:1|9-8:1|1-99999:5|32768-99999:0"));
        assert_eq!(parts(limits), [(8, 28672, 5), (32768, 32768, 0)]);
    }

    proptest! {
        #[test]
        fn any_limits_survive_writing_and_reading(
            limits in proptest::collection::vec(any::<(usize, usize, usize)>(), 1..9)
        ) {
            let text: Vec<_> = limits.iter().map(|(a, b, n)| format!("{a}-{b}:{n}")).collect();
            let read = all(&text.join("|")).expect("well written");
            let read: Vec<_> = read.iter().map(|l| (l.low, l.high, l.most)).collect();
            prop_assert_eq!(read, limits);
        }

        #[test]
        fn the_parts_say_the_same(
            limits in proptest::collection::vec((0..40_000usize, 0..40_000usize, 0..3000u16), 1..9)
        ) {
            let text: Vec<_> = limits.iter().map(|(a, b, n)| format!("{a}-{b}:{n}")).collect();
            let (mut given, mut again) = (CacheLimits::NONE, CacheLimits::NONE);
            prop_assert!(given.read(text.join("|").as_bytes()));
            let text: Vec<_> = given.parts().map(|(a, b, n)| format!("{a}-{b}:{n}")).collect();
            prop_assert!(again.read(text.join("|").as_bytes()));
            prop_assert_eq!(given, again);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9|:-]{0,20}") {
            if let Some(parts) = all(&text) {
                let expected = if text.is_empty() { 0 } else { text.split('|').count() };
                prop_assert_eq!(parts.len(), expected);
            }
        }
    }
}
