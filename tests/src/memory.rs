//! How much memory a process occupies, in KiB.
//!
//! `ru_maxrss` of `wait4` is useless for small programs, because at `exec` the kernel includes the
//! resident peak of the parent's image in it. `VmHWM` belongs to the running image, but can only be
//! read while it runs, so the programs in `tests/c` print their own (`proc_common.h`).

use std::fs;

use crate::not_tried;

/// The exact resident memory of a live process: `Rss` of `smaps_rollup`.
pub fn rss_kib(pid: u32) -> u64 {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    kib_field(&text, "Rss").unwrap_or_else(|| panic!("{path} has no Rss"))
}

/// The peak of a live process's resident memory: `VmHWM` of `status`.
pub fn peak_rss_kib(pid: u32) -> u64 {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    kib_field(&text, "VmHWM").unwrap_or_else(|| panic!("{path} has no VmHWM"))
}

/// Reads the field `name:   123 kB` of a text in the form of `/proc/PID/status`.
pub fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Whether the system gives huge pages to those who ask for them. If not, lumalloc
/// does not ask, and this says what is not tried.
pub fn gives_huge_pages_for(what: &str) -> bool {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let gives = setting.is_ok_and(|setting| !setting.contains("[never]"));
    if !gives {
        not_tried(what, "this system gives no huge pages on request");
    }
    gives
}

/// Reads the field `name=123` of a line that a test program printed.
pub fn number(text: &str, name: &str) -> u64 {
    let value = text.split_whitespace().find_map(|word| {
        let (key, value) = word.split_once('=')?;
        (key == name).then_some(value)
    });
    let value = value.unwrap_or_else(|| panic!("no {name}= in {text:?}"));
    value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        let text = "Name:\tx\nRssAnon:\t  12 kB\nRss:\t  77 kB\n";
        assert_eq!(kib_field(text, "Rss"), Some(77));
        assert_eq!(kib_field(text, "VmHWM"), None);
        assert_eq!(number("begin a=1 rss_kib=42 end", "rss_kib"), 42);
    }

    #[test]
    fn this_process_occupies_something() {
        let pid = std::process::id();
        assert!(rss_kib(pid) > 100);
        assert!(peak_rss_kib(pid) > 100);
    }
}
