//! The options of malloc over regions: `VMALLOC_OPTIONS`, and the older variables. Source:
//! vmalloc(3), Malloc-compatible functions.

use crate::mode;

/// What the options ask for. Texts are parts of the variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MallocOptions<'a> {
    /// The method that was named, as a bit of [`mode`].
    method: Option<u32>,
    /// Whether the program is aborted when an error is found.
    pub abort: bool,
    /// Whether memory comes from the data segment first.
    pub break_first: bool,
    /// Whether memory comes from mappings first.
    pub mmap_first: bool,
    /// Whether a region with best fit is checked too.
    pub check: bool,
    /// Whether no block is freed.
    pub keep: bool,
    /// Whether lines of the trace have time and thread.
    pub timed: bool,
    period: Option<usize>,
    start: Option<usize>,
    /// Addresses that are watched, as far as there are any, from the first.
    pub watched: [usize; WATCHED],
    /// The file for the summary of the method that counts.
    pub profile: Option<&'a [u8]>,
    /// The file for the trace.
    pub trace: Option<&'a [u8]>,
    /// The file for warnings.
    pub warn: Option<&'a [u8]>,
}

/// The most addresses that are watched.
pub const WATCHED: usize = 32;

/// At most so many bytes of `VMALLOC_OPTIONS` count.
const MOST: usize = 1023;

/// What is wrong with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem<'a> {
    /// There is no option of this name.
    Option(&'a [u8]),
    /// There is no method of this name, or malloc cannot use it.
    Method(&'a [u8]),
    /// The option takes a number, and this is none.
    Number(&'a [u8], &'a [u8]),
    /// The option takes a value, and has none.
    Value(&'a [u8]),
}

/// What an option is called, and the least part of it that names it.
const NAMES: [(&str, usize, Name); 14] = [
    ("abort", 1, Name::Abort),
    ("break", 1, Name::Break),
    ("check", 1, Name::Check),
    ("free", 1, Name::Free),
    ("keep", 1, Name::Keep),
    ("method", 2, Name::Method),
    ("mmap", 2, Name::Mmap),
    ("period", 2, Name::Period),
    ("profile", 2, Name::Profile),
    ("start", 1, Name::Start),
    ("trace", 1, Name::Trace),
    ("timed", 2, Name::Timed),
    ("warn", 3, Name::Warn),
    ("watch", 3, Name::Watch),
];

#[derive(Clone, Copy)]
enum Name {
    Abort,
    Break,
    Check,
    Free,
    Keep,
    Method,
    Mmap,
    Period,
    Profile,
    Start,
    Timed,
    Trace,
    Warn,
    Watch,
}

impl<'a> MallocOptions<'a> {
    /// Reads `VMALLOC_OPTIONS`. What is wrong in it has no effect, and is passed to `complain`.
    pub fn read(&mut self, text: &'a [u8], complain: &mut dyn FnMut(Problem<'a>)) {
        let text = text.get(..MOST).unwrap_or(text);
        for item in text.split(|byte| b", \t\r\n".contains(byte)).filter(|item| !item.is_empty()) {
            let mut parts = item.splitn(2, |byte| *byte == b'=');
            let name = parts.next().unwrap_or_default();
            let value = parts.next().filter(|value| !value.is_empty());
            if name.starts_with(b"no") {
                continue;
            }
            if let Err(problem) = self.item(name, value) {
                complain(problem);
            }
        }
    }

    fn item(&mut self, name: &'a [u8], value: Option<&'a [u8]>) -> Result<(), Problem<'a>> {
        let is_named = |(full, least, _): &&(&str, usize, Name)| {
            name.len() >= *least && full.as_bytes().starts_with(name)
        };
        let found = NAMES.iter().find(is_named).ok_or(Problem::Option(name))?;
        let text = || value.ok_or(Problem::Value(name));
        let amount = || text().and_then(|text| number(text).ok_or(Problem::Number(name, text)));
        match found.2 {
            Name::Abort => self.abort = true,
            Name::Break => self.break_first = true,
            Name::Check => self.check = true,
            // Blocks are always freed at once.
            Name::Free => {}
            Name::Keep => self.keep = true,
            Name::Mmap => self.mmap_first = true,
            Name::Timed => self.timed = true,
            Name::Method => {
                let named = text().and_then(|text| method(text).ok_or(Problem::Method(text)))?;
                self.method = self.method.or(Some(named));
            }
            Name::Period => self.period = Some(amount()?),
            Name::Start => self.start = Some(amount()?),
            Name::Watch => self.watch(amount()?),
            Name::Profile => self.profile = Some(text()?),
            Name::Trace => self.trace = Some(text()?),
            Name::Warn => self.warn = Some(text()?),
        }
        Ok(())
    }

    /// Reads `VMETHOD`: the full name of a method.
    pub fn read_method(&mut self, text: &'a [u8], complain: &mut dyn FnMut(Problem<'a>)) {
        let short = text.strip_prefix(b"Vm").or_else(|| text.strip_prefix(b"vm"));
        let named = match short {
            Some(b"pool") => Some(mode::POOL),
            Some(short) => method(short),
            None => None,
        };
        match named {
            Some(named) => self.method = self.method.or(Some(named)),
            None => complain(Problem::Method(text)),
        }
    }

    /// Reads `VMDEBUG`: `a`, addresses to watch, and a period, with anything between them. It does
    /// not count beside another method.
    pub fn read_debug(&mut self, text: &'a [u8]) {
        if self.method.is_some_and(|method| method != mode::DEBUG) {
            return;
        }
        self.method = Some(mode::DEBUG);
        let mut rest = text;
        while let Some((first, after)) = rest.split_first() {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let (word, behind) = rest.split_at_checked(digits).unwrap_or((rest, &[]));
            if !first.is_ascii_digit() {
                self.abort |= *first == b'a';
                rest = after;
                continue;
            }
            match number(word) {
                Some(address) if is_hexadecimal(word) => self.watch(address),
                Some(period) => self.period = Some(period),
                None => {}
            }
            rest = behind;
        }
    }

    /// Reads `VMPROFILE`: a file. It does not count beside another method.
    pub fn read_profile(&mut self, text: &'a [u8]) {
        if self.method.is_none_or(|method| method == mode::PROFILE) {
            self.method = Some(mode::PROFILE);
            self.profile = self.profile.or(Some(text));
        }
    }

    /// Reads `VMTRACE`: a file.
    pub fn read_trace(&mut self, text: &'a [u8]) {
        self.trace = self.trace.or(Some(text));
    }

    /// Returns the method that malloc is to use. For best fit it is the heap, unless that is to be
    /// checked.
    #[must_use]
    #[inline]
    pub fn method(&self) -> u32 {
        let for_debugging =
            self.period.is_some() || self.start.is_some() || self.warn.is_some() || self.watches();
        match self.method {
            Some(method) => method,
            None if for_debugging => mode::DEBUG,
            None if self.profile.is_some() => mode::PROFILE,
            None => mode::BEST,
        }
    }

    #[inline]
    fn watches(&self) -> bool {
        self.watched.iter().any(|address| *address != 0)
    }

    fn watch(&mut self, address: usize) {
        if let Some(place) = self.watched.iter_mut().find(|place| **place == 0) {
            *place = address;
        }
    }

    /// Returns whether malloc is to use a region of its own, not its heap.
    #[must_use]
    pub fn opens_region(&self) -> bool {
        self.method() != mode::BEST || self.check
    }

    /// Returns after how many calls the region is checked for the first time, and how many calls
    /// lie between two checks. `None`: it is not checked.
    #[must_use]
    pub fn checks(&self) -> Option<(usize, usize)> {
        let is_checked = self.method() == mode::DEBUG || self.check;
        let period = self.period.unwrap_or(1);
        (is_checked && period > 0).then_some((self.start.unwrap_or(0), period))
    }
}

/// Returns the method of a name, with `Vm` before it or not.
fn method(text: &[u8]) -> Option<u32> {
    let short = text.strip_prefix(b"Vm").or_else(|| text.strip_prefix(b"vm")).unwrap_or(text);
    match short {
        b"best" => Some(mode::BEST),
        b"debug" => Some(mode::DEBUG),
        b"profile" => Some(mode::PROFILE),
        b"last" => Some(mode::LAST),
        _ => None,
    }
}

fn is_hexadecimal(text: &[u8]) -> bool {
    text.starts_with(b"0x") || text.starts_with(b"0X")
}

/// Returns a number, in hexadecimal digits if it begins with `0x`.
fn number(text: &[u8]) -> Option<usize> {
    let (digits, base) = if is_hexadecimal(text) { (text.get(2..)?, 16) } else { (text, 10) };
    usize::from_str_radix(core::str::from_utf8(digits).ok()?, base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn read(text: &str) -> (MallocOptions<'_>, Vec<Problem<'_>>) {
        let (mut options, mut problems) = (MallocOptions::default(), Vec::new());
        options.read(text.as_bytes(), &mut |problem| problems.push(problem));
        (options, problems)
    }

    #[track_caller]
    fn good(text: &str) -> MallocOptions<'_> {
        let (options, problems) = read(text);
        assert_eq!(problems, []);
        options
    }

    #[test]
    fn options_are_named_by_their_first_letters() {
        let all = good("abort,break check\tfree\nkeep\rmmap,timed");
        let short = good("a b c f k mm ti");
        assert_eq!(all, short);
        assert!(all.abort && all.break_first && all.check && all.keep && all.mmap_first);
        assert!(all.timed);
        let files = good("profile=p,t=&3,warn=/dev/fd/2");
        assert_eq!(files.profile, Some(&b"p"[..]));
        assert_eq!((files.trace, files.warn), (Some(&b"&3"[..]), Some(&b"/dev/fd/2"[..])));
    }

    #[test]
    fn a_name_that_begins_with_no_is_skipped() {
        assert_eq!(good("noabort,nomethod=best,nonsense"), MallocOptions::default());
    }

    #[test]
    fn the_first_method_counts() {
        for (text, method) in [
            ("", mode::BEST),
            ("method=best", mode::BEST),
            ("method=Vmdebug,method=last", mode::DEBUG),
            ("me=vmlast", mode::LAST),
            ("period=3", mode::DEBUG),
            ("start=0", mode::DEBUG),
            ("warn=w,profile=p", mode::DEBUG),
            ("watch=0x10", mode::DEBUG),
            ("profile=p", mode::PROFILE),
            ("profile=p,method=last", mode::LAST),
            ("abort", mode::BEST),
        ] {
            assert_eq!(good(text).method(), method, "{text}");
        }
        assert!(!good("trace=t,abort,keep").opens_region());
        assert!(good("check").opens_region() && good("method=last").opens_region());
    }

    #[test]
    fn checks_begin_after_a_number_of_calls_and_follow_in_periods() {
        for (text, checks) in [
            ("", None),
            ("method=debug", Some((0, 1))),
            ("period=7", Some((0, 7))),
            ("start=100,period=0x10", Some((100, 16))),
            ("period=0", None),
            ("check", Some((0, 1))),
            ("method=last", None),
        ] {
            assert_eq!(good(text).checks(), checks, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_and_has_no_effect() {
        let (options, problems) = read("foo,method=pool,period=x,trace,watch=,method=last");
        let expected = [
            Problem::Option(b"foo"),
            Problem::Method(b"pool"),
            Problem::Number(b"period", b"x"),
            Problem::Value(b"trace"),
            Problem::Value(b"watch"),
        ];
        assert_eq!(problems, expected);
        assert_eq!(options, good("method=last"));
        assert_eq!(read("m=last,p=1,w=2").1.len(), 3, "what could be two options is none");
    }

    #[test]
    fn what_is_too_long_is_cut_off() {
        let long = [" ".repeat(MOST), "abort".into()].concat();
        assert_eq!(good(&long), MallocOptions::default());
    }

    #[test]
    fn older_variables_name_a_method() {
        for (text, method) in [
            ("Vmbest", mode::BEST),
            ("vmdebug", mode::DEBUG),
            ("Vmprofile", mode::PROFILE),
            ("vmlast", mode::LAST),
            ("Vmpool", mode::POOL),
        ] {
            let mut options = MallocOptions::default();
            options.read_method(text.as_bytes(), &mut |problem| panic!("{problem:?}"));
            assert_eq!(options.method(), method, "{text}");
        }
        for text in ["best", "VMbest", "Vmbest1", ""] {
            let mut problems = Vec::new();
            let mut options = MallocOptions::default();
            options.read_method(text.as_bytes(), &mut |problem| problems.push(problem));
            assert_eq!(problems, [Problem::Method(text.as_bytes())]);
        }
    }

    #[test]
    fn vmdebug_has_letters_addresses_and_a_period() {
        let mut options = MallocOptions::default();
        options.read_debug(b"xa,0x10:0X1f 25 0x0");
        assert_eq!((options.method(), options.abort), (mode::DEBUG, true));
        assert_eq!(options.watched.get(..3), Some(&[0x10, 0x1f, 0][..]));
        assert_eq!(options.checks(), Some((0, 25)));
        let mut other = good("method=last");
        other.read_debug(b"a");
        assert_eq!(other, good("method=last"));
    }

    #[test]
    fn vmprofile_and_vmtrace_name_files() {
        let mut options = MallocOptions::default();
        options.read_profile(b"p.%p");
        options.read_trace(b"t");
        assert_eq!(options.method(), mode::PROFILE);
        assert_eq!((options.profile, options.trace), (Some(&b"p.%p"[..]), Some(&b"t"[..])));
        let mut other = good("method=debug,trace=x");
        other.read_profile(b"p");
        other.read_trace(b"t");
        assert_eq!(other, good("method=debug,trace=x"));
    }
}
