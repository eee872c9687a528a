//! Options that are neither a number nor a word, as an option string has them.
use crate::error::Error;
use crate::once_text::{OnceText, Room};
use core::ffi::CStr;
use lumalloc::observe::BINS;
use lumalloc::options::{self, CacheLimits};

static RATIO: OnceText<16> = OnceText::new();
static LIMITS: OnceText<{ LONGEST_LIMITS + 1 }> = OnceText::new();

/// The longest text of `tcache_ncached_max`: each class has a part of its own.
pub(crate) const LONGEST_LIMITS: usize = "32768-32768:2047|".len() * BINS;

/// The text of the option `narenas_ratio`.
///
/// # Errors
/// [`Error::Again`] when more than four threads ask for the text for the first time at once.
pub(crate) fn narenas_ratio() -> Result<&'static CStr, Error> {
    RATIO.get(|room| write_fraction(room, options::current().narenas_ratio))
}

/// The text of the option `tcache_ncached_max`.
///
/// # Errors
/// As [`narenas_ratio`].
pub(crate) fn tcache_ncached_max() -> Result<&'static CStr, Error> {
    LIMITS.get(|room| write_limits(room, &options::current().tcache_ncached_max))
}

/// Writes a 16.16 fraction with the fewest decimals, at most five, that are read as the same
/// fraction.
fn write_fraction(room: &mut Room<'_>, fraction: u32) {
    room.push_number(u64::from(fraction >> 16));
    let mut rest = (u64::from(fraction & 0xffff) * 100_000).div_ceil(1 << 16);
    let mut place = 10_000;
    if rest > 0 {
        room.push(b".");
    }
    while rest > 0 {
        room.push_number(rest / place);
        rest %= place;
        place /= 10;
    }
}

fn write_limits(room: &mut Room<'_>, limits: &CacheLimits) {
    for (number, (low, high, most)) in limits.parts().enumerate() {
        if number > 0 {
            room.push(b"|");
        }
        room.push_number(low as u64);
        room.push(b"-");
        room.push_number(high as u64);
        room.push(b":");
        room.push_number(u64::from(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(fraction: u32) -> &'static CStr {
        let text = std::boxed::Box::leak(std::boxed::Box::new(OnceText::<16>::new()));
        text.get(|room| write_fraction(room, fraction)).unwrap()
    }

    #[test]
    fn fractions_are_short_and_exact() {
        let tenth = (1 << 16) / 10;
        assert_eq!(
            [fraction(4 << 16), fraction(1 << 14), fraction(tenth)],
            [c"4", c"0.25", c"0.1"]
        );
        assert_eq!([fraction(1), fraction(u32::MAX)], [c"0.00002", c"65535.99999"]);
    }

    #[test]
    fn every_fraction_is_read_as_it_was() {
        for given in (0..1 << 16).step_by(7) {
            let text = fraction(given).to_str().unwrap();
            let digits = text.strip_prefix("0").unwrap().strip_prefix('.').unwrap_or("0");
            let scale = 10u64.pow(digits.len() as u32);
            let read = (digits.parse::<u64>().unwrap() << 16) / scale;
            assert_eq!(read, u64::from(given), "{text}");
        }
    }
}
