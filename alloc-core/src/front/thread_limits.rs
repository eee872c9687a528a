//! What a thread's caches may hold: on or off, up to which size, how many of a class.
//!
//! A bin without an array takes nothing and gives nothing, so a limit needs no test on the fast
//! paths: what is not to be cached has no array, and the slow paths give it none.

use super::refill;
use super::registry::RealCache;
use super::thread::Thread;
use crate::ground::size_class::{MAX_CACHED, SizeClass};

/// The most blocks that a bin may be told to hold: its longest array has a slot more.
pub(crate) const MOST: usize = 2047;

/// Turns the thread's caches on or off; off, they are emptied first.
pub(crate) fn enable(thread: &'static Thread, on: bool) {
    thread.enabled.set(on);
    thread.caches().for_each(|cache| set_largest(cache, thread.largest()));
}

/// Sets the largest size that the thread caches, rounded up to a class. Larger blocks go home.
pub(crate) fn set_max(thread: &'static Thread, size: usize) {
    let size = size.min(MAX_CACHED);
    thread.max.set(SizeClass::of(size).size());
    thread.caches().for_each(|cache| set_largest(cache, thread.largest()));
}

/// What a new cache of a thread holds: as its other caches do.
pub(crate) fn inherit(cache: &'static RealCache, like: &'static RealCache) {
    cache.largest.set(like.largest.get());
    for class in SizeClass::all() {
        cache.cold(class).most.set(like.cold(class).most.get());
    }
}

fn set_largest(cache: &'static RealCache, largest: usize) {
    cache.largest.set(largest);
    clear(cache, |class| class.size() > largest);
}

/// Sends home what the bins of some classes hold, and their arrays with it.
fn clear(cache: &'static RealCache, which: impl Fn(SizeClass) -> bool) {
    let mut state = cache.owner.state.lock();
    state.activity += 1;
    refill::flush_beside(cache, &mut state);
    for class in SizeClass::all().filter(|class| which(*class)) {
        refill::flush(cache, &mut state, class, cache.bin(class).level());
        refill::drop_array(cache, class);
    }
}

/// How many blocks of the class of a size the thread may cache. `None`: no such class is cached.
pub(crate) fn ncached_max(thread: &'static Thread, size: usize) -> Option<usize> {
    if size > MAX_CACHED || !thread.enabled.get() {
        return None;
    }
    let (class, cache) = (SizeClass::of(size), thread.caches().next()?);
    Some(if cache.holds(class) { refill::capacity_max(cache, class) } else { 0 })
}

/// One part of a text of limits: sizes from, sizes to, blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Limit {
    low: usize,
    high: usize,
    most: usize,
}

/// Reads `low-high:most` up to the next `|`. `None`: it is no such thing. Source: jemalloc 5.3.1,
/// `multi_setting_parse_next`.
fn parse(text: &[u8]) -> Option<(Limit, &[u8])> {
    let (low, text) = number(text)?;
    let (high, text) = number(text.strip_prefix(b"-")?)?;
    let (most, text) = number(text.strip_prefix(b":")?)?;
    let rest = match text.split_first() {
        None => text,
        Some((b'|', rest)) if !rest.is_empty() => rest,
        Some(_) => return None,
    };
    Some((Limit { low, high, most }, rest))
}

fn number(text: &[u8]) -> Option<(usize, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits).filter(|(digits, _)| !digits.is_empty())?;
    let number = digits.iter().try_fold(0usize, |number, digit| {
        number.checked_mul(10)?.checked_add(usize::from(digit - b'0'))
    })?;
    Some((number, rest))
}

/// Sets how many blocks of some classes each of the thread's caches may hold: `low-high:n`, several
/// parts between `|`. `false`: the text is no such thing, and nothing changed.
pub(crate) fn set_ncached_max(thread: &'static Thread, text: &[u8]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        match parse(rest) {
            Some((_, next)) => rest = next,
            None => return false,
        }
    }
    for cache in thread.caches() {
        let mut rest = text;
        while let Some((limit, next)) = parse(rest) {
            set_most(cache, limit);
            rest = next;
        }
    }
    true
}

fn set_most(cache: &'static RealCache, limit: Limit) {
    let high = limit.high.min(MAX_CACHED);
    if limit.low > high {
        return;
    }
    let (first, last) = (SizeClass::of(limit.low).size(), SizeClass::of(high).size());
    let within = |class: SizeClass| (first..=last).contains(&class.size());
    clear(cache, within);
    for class in SizeClass::all().filter(|class| within(*class)) {
        cache.cold(class).most.set(limit.most.min(MOST) as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Option<Vec<Limit>> {
        let (mut rest, mut limits) = (text.as_bytes(), Vec::new());
        while !rest.is_empty() {
            let (limit, next) = parse(rest)?;
            limits.push(limit);
            rest = next;
        }
        Some(limits)
    }

    #[test]
    fn limits_are_read_as_they_are_written() {
        assert_eq!(all(""), Some(vec![]));
        let one = Limit { low: 8, high: 128, most: 7 };
        assert_eq!(all("8-128:7"), Some(vec![one]));
        let two = Limit { low: 0, high: 99_999, most: 0 };
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
        }
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
        fn any_text_is_read_or_refused(text in "[0-9|:-]{0,20}") {
            if let Some(limits) = all(&text) {
                let parts = if text.is_empty() { 0 } else { text.split('|').count() };
                prop_assert_eq!(limits.len(), parts);
            }
        }
    }
}
