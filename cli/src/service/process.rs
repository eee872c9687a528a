//! Numbers of the kernel about a process.

use std::fs;

/// Clock ticks a second in `/proc/<pid>/stat`, a constant of Linux's interface to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Resident bytes now and at their highest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    /// `VmRSS`.
    pub(crate) now: u64,
    /// `VmHWM`.
    pub(crate) peak: u64,
}

/// Returns the resident memory of a process, which is a number or `self`.
pub(crate) fn resident(process: &str) -> Option<Resident> {
    parse_status(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

/// Returns the seconds of processor time that all threads of a process have used.
pub(crate) fn processor_seconds(process: u32) -> Option<f64> {
    parse_stat(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn parse_status(text: &str) -> Option<Resident> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    };
    Some(Resident { now: field("VmRSS")?, peak: field("VmHWM")? })
}

fn parse_stat(text: &str) -> Option<f64> {
    // The second field, the name, may contain anything. It ends at the last parenthesis.
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_in_kibibytes() {
        let text = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse_status(text), Some(Resident { now: 1 << 20, peak: 2 << 20 }));
        assert_eq!(parse_status("Name:\tx\n"), None);
    }

    #[test]
    fn stat_survives_a_strange_name() {
        let text = "12 (a) b (c) S 1 1 1 0 -1 4194304 9 0 0 0 150 50 0 0 20 0 1";
        assert_eq!(parse_stat(text), Some(2.0));
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn this_process_has_both() {
        let resident = resident("self").unwrap();
        assert!(0 < resident.now && resident.now <= resident.peak);
        assert!(processor_seconds(std::process::id()).is_some());
        assert_eq!(processor_seconds(0), None);
    }
}
