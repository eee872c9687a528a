//! The lines of a trace, in the four forms that the versions of vmalloc(3) wrote, and with the time
//! that lumalloc adds on wish.
//!
//! ```text
//!   0:7fbb2ba96190:100:0:7fbb2ba97060:b:file=p.c,line=7:      2011, and lumalloc
//!   0:7fbb2ba96190:100:0:7fbb2ba97060:b:time=1.000000002,tid=3:   lumalloc, with time and thread
//!   0x0:0x5000:100:0:0x7000:best:p.c,7:                       1999
//!   0x0:0x5000:29:0:0x7000:b:tid=12,pid=34:                   2013
//!   0:5000:100:7000:best                                      as the manual pages describe it
//! ```

use super::arguments::MethodArgument;

/// What a call did. Addresses are those of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Alloc { new: u64 },
    Resize { old: u64, new: u64 },
    Free { old: u64 },
    Compact,
}

/// A line of a trace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) event: Event,
    pub(super) size: usize,
    /// 0: none was asked for.
    pub(super) align: usize,
    pub(super) region: u64,
    /// `None`: the line is one of a block that is in use (vmtrbusy).
    pub(super) method: Option<MethodArgument>,
    /// Where the program called from.
    pub(super) place: Option<String>,
    /// When, and in which thread.
    pub(super) moment: Option<Moment>,
}

/// When a call was made, in nanoseconds since 1970, and by which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) time: u64,
    pub(super) thread: u32,
}

/// Returns what a line says, or `None` if it is no line of a trace.
pub(super) fn parse(line: &str) -> Option<Record> {
    let fields: Vec<&str> = line.split(':').collect();
    let [old, new, size, rest @ ..] = fields.as_slice() else { return None };
    let (old, new, size) = (address(old)?, address(new)?, size.parse().ok()?);
    let (align, region, method, rest) = match rest {
        // A method is never the address of a region.
        [align, region, name, rest @ ..] if method(name).is_some() => {
            (align.parse().ok()?, address(region)?, method(name)?, rest)
        }
        [region, name, rest @ ..] => (0, address(region)?, method(name)?, rest),
        _ => return None,
    };
    let event = match (old, new) {
        (0, 0) => Event::Compact,
        (0, new) => Event::Alloc { new },
        (old, 0) => Event::Free { old },
        (old, new) => Event::Resize { old, new },
    };
    let (rest, moment) = match rest {
        [before @ .., last, ""] => match moment(last) {
            Some(moment) => (before, Some(moment)),
            None => (rest, None),
        },
        _ => (rest, None),
    };
    Some(Record { event, size, align, region, method, place: place(&rest.join(":")), moment })
}

/// The field `time=SECONDS.NANOSECONDS,tid=THREAD`.
fn moment(text: &str) -> Option<Moment> {
    let (time, thread) = text.strip_prefix("time=")?.split_once(",tid=")?;
    let (seconds, nanoseconds) = time.split_once('.').filter(|(_, digits)| digits.len() == 9)?;
    let seconds = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    let time = seconds.checked_add(nanoseconds.parse().ok()?)?;
    Some(Moment { time, thread: thread.parse().ok()? })
}

/// Hexadecimal digits, with 0x before them or without.
fn address(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    // The function also takes a sign.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// The method of a name; `Some(None)` for that of blocks in use.
#[expect(clippy::option_option, reason = "no name, the name of no method, or a method")]
fn method(name: &str) -> Option<Option<MethodArgument>> {
    Some(Some(match name {
        "b" | "best" => MethodArgument::Best,
        "l" | "last" => MethodArgument::Last,
        "p" | "pool" => MethodArgument::Pool,
        "s" | "profile" => MethodArgument::Profile,
        "d" | "debug" => MethodArgument::Debug,
        "u" | "busy" => return Some(None),
        _ => return None,
    }))
}

/// Where a program called from, as `FILE:LINE (FUNCTION)`.
fn place(text: &str) -> Option<String> {
    let text = text.trim_end_matches(':');
    let (text, function) = match text.rsplit_once("func=") {
        Some((before, function)) => (before.trim_end_matches(','), Some(function)),
        None => (text, None),
    };
    let position = match text.strip_prefix("file=") {
        Some(position) => position.rsplit_once(",line="),
        // The form of 1999. Threads and processes stand in the same place.
        None => text.rsplit_once(',').filter(|_| !text.contains('=')),
    };
    let position = position.filter(|(_, line)| line.parse::<u32>().is_ok());
    match (position, function) {
        (Some((file, line)), Some(function)) => Some(format!("{file}:{line} ({function})")),
        (Some((file, line)), None) => Some(format!("{file}:{line}")),
        (None, function) => function.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_of(line: &str) -> Option<(Event, usize, usize, u64, Option<MethodArgument>)> {
        let record = parse(line)?;
        Some((record.event, record.size, record.align, record.region, record.method))
    }

    fn place_of(line: &str) -> Option<String> {
        parse(line).unwrap().place
    }

    #[test]
    fn all_four_forms_are_read() {
        let best = Some(MethodArgument::Best);
        let alloc = Event::Alloc { new: 0x5000 };
        let expected = Some((alloc, 100, 0, 0x7000, best));
        assert_eq!(event_of("0:5000:100:0:7000:b:"), expected);
        assert_eq!(event_of("0x0:0x5000:100:0:0x7000:best:a.c,12:"), expected);
        assert_eq!(event_of("0x0:0x5000:100:0:0x7000:b:tid=2046296065,pid=31224:"), expected);
        assert_eq!(event_of("0:5000:100:7000:best"), expected);
        assert_eq!(event_of("0:5000:100:7000:best:"), expected);
    }

    #[test]
    fn each_event_is_told_from_the_others() {
        let pool = Some(MethodArgument::Pool);
        let resize = Event::Resize { old: 0x10, new: 0x20 };
        assert_eq!(event_of("10:20:300:0:7:p:"), Some((resize, 300, 0, 7, pool)));
        assert_eq!(event_of("10:0:112:0:7:p:"), Some((Event::Free { old: 0x10 }, 112, 0, 7, pool)));
        assert_eq!(event_of("0:0:0:0:7:p:"), Some((Event::Compact, 0, 0, 7, pool)));
        let aligned = Event::Alloc { new: 0x40 };
        assert_eq!(event_of("0:40:10:64:7:p:"), Some((aligned, 10, 64, 7, pool)));
        assert_eq!(event_of("0:40:10:0:7:u:"), Some((aligned, 10, 0, 7, None)));
        let methods = ["l", "last", "s", "profile", "d", "debug"];
        let read = methods.map(|name| parse(&format!("0:1:1:0:7:{name}:")).unwrap().method);
        let [last, profile, debug] =
            [MethodArgument::Last, MethodArgument::Profile, MethodArgument::Debug].map(Some);
        assert_eq!(read, [last, last, profile, profile, debug, debug]);
    }

    #[test]
    fn places_are_read() {
        let said = |rest: &str| place_of(&format!("0:40:10:0:7:b:{rest}"));
        assert_eq!(said("file=p2.c,line=18:").as_deref(), Some("p2.c:18"));
        assert_eq!(said("file=a.c,line=7,func=myfunc:").as_deref(), Some("a.c:7 (myfunc)"));
        assert_eq!(said("file=a:b,c.c,line=7:").as_deref(), Some("a:b,c.c:7"));
        assert_eq!(said("func=myfunc:").as_deref(), Some("myfunc"));
        assert_eq!(said("a.c,12:").as_deref(), Some("a.c:12"));
        assert_eq!(said("tid=1,pid=2:"), None);
        assert_eq!(said(""), None);
    }

    #[test]
    fn the_time_and_the_thread_are_read() {
        let moment = |rest: &str| parse(&format!("0:40:10:0:7:b:{rest}")).unwrap().moment;
        let expected = Some(Moment { time: 12_000_000_345, thread: 6 });
        assert_eq!(moment("time=12.000000345,tid=6:"), expected);
        assert_eq!(moment("file=a.c,line=1:time=12.000000345,tid=6:"), expected);
        let place = place_of("0:40:10:0:7:b:file=a.c,line=1,func=f:time=12.000000345,tid=6:");
        assert_eq!(place.as_deref(), Some("a.c:1 (f)"));
        for other in ["", "time=12.345,tid=6:", "time=12.000000345:", "tid=6,pid=7:"] {
            assert_eq!(moment(other), None, "{other}");
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in ["", "0:1", "0:1:2:3", "x:1:2:0:7:b:", "0:1:2:0:7:q:", "0:+1:2:0:7:b:"] {
            assert_eq!(parse(line), None, "{line}");
        }
        assert_eq!(parse("0:1:-2:0:7:b:"), None);
    }
}
