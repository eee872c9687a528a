//! The number of CPUs that this process may use: those of its affinity mask, but at most the CPU
//! quota of its cgroup.

use super::files;
use super::os;
use super::text::Line;
use core::ffi::CStr;

/// Returns the number of CPUs, rounded up and at least 1. Reads a few small files, so callers keep
/// the result.
pub(crate) fn cpus() -> u32 {
    let cpus = os::cpu_count();
    match quota() {
        Some(quota) => cpus.min(quota).max(1),
        None => cpus,
    }
}

/// Returns how many CPUs the system may have. The numbers of CPUs are below that. Reads a small
/// file, because `sysconf` may allocate for this number.
pub(crate) fn possible() -> u32 {
    let mut buffer = [0u8; 128];
    let text = files::read(c"/sys/devices/system/cpu/possible", &mut buffer);
    text.and_then(parse_possible).unwrap_or_else(os::online_cpus)
}

/// One more than the last number of a list of ranges.
fn parse_possible(text: &[u8]) -> Option<u32> {
    let last = text.rsplit(|c| matches!(c, b'-' | b',')).next()?;
    u32::try_from(number(last)?).ok()?.checked_add(1)
}

fn quota() -> Option<u32> {
    let mut least = None;
    files::read_lines(c"/proc/self/cgroup", |line| {
        let found = match line {
            [b'0', b':', b':', path @ ..] => unified(path),
            _ => legacy(line),
        };
        least = [least, found].into_iter().flatten().min();
    })?;
    least
}

/// cgroup v2: the smallest `cpu.max` from the process's group up to the root.
fn unified(path: &[u8]) -> Option<u32> {
    parents(path).filter_map(|path| read(path, "/sys/fs/cgroup", "/cpu.max", parse_v2)).min()
}

/// cgroup v1: the smallest quotient of `cpu.cfs_quota_us` and `cpu.cfs_period_us` up to the root.
fn legacy(line: &[u8]) -> Option<u32> {
    let mut parts = line.splitn(3, |c| *c == b':').skip(1);
    let controllers = parts.next()?;
    let path = parts.next()?;
    if !controllers.split(|c| *c == b',').any(|name| name == b"cpu") {
        return None;
    }
    let number = |path: &[u8], file| read(path, "/sys/fs/cgroup/cpu", file, self::number);
    let quota = |path: &[u8]| {
        ceil_div(number(path, "/cpu.cfs_quota_us")?, number(path, "/cpu.cfs_period_us")?)
    };
    parents(path).filter_map(quota).min()
}

/// Iterates over a group and its parents, up to the root. Inside a container the root is the
/// container's own group.
pub(super) fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::successors(Some(path), |path| {
        let cut = path.iter().rposition(|c| *c == b'/')?;
        path.get(..cut)
    })
    .chain(core::iter::once(&[][..]))
}

/// Reads and parses a file of a cgroup.
pub(super) fn read<T>(
    group: &[u8],
    root: &str,
    file: &str,
    parse: fn(&[u8]) -> Option<T>,
) -> Option<T> {
    // Room for a line of `/proc/self/cgroup` as well.
    let mut path = Line::<640>::new();
    path.text(root).bytes(group).text(file).bytes(&[0]);
    let path = CStr::from_bytes_with_nul(path.as_bytes()).ok()?;
    let mut buffer = [0u8; 128];
    parse(files::read(path, &mut buffer)?)
}

fn parse_v2(text: &[u8]) -> Option<u32> {
    let mut words = text.split(|c| c.is_ascii_whitespace());
    let quota = number(words.next()?)?;
    ceil_div(quota, number(words.next()?)?)
}

fn number(text: &[u8]) -> Option<u64> {
    let mut n: Option<u64> = None;
    for &c in text.trim_ascii() {
        if !c.is_ascii_digit() {
            return None;
        }
        let digits = n.unwrap_or(0).checked_mul(10)?;
        n = Some(digits.checked_add(u64::from(c - b'0'))?);
    }
    n
}

fn ceil_div(quota: u64, period: u64) -> Option<u32> {
    let whole = quota.checked_div(period)?;
    let rest = u64::from(whole * period != quota);
    u32::try_from(whole + rest).ok().map(|cpus| cpus.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_possible_cpu_is_the_last_of_the_last_range() {
        assert_eq!(parse_possible(b"0-127\n"), Some(128));
        assert_eq!(parse_possible(b"0\n"), Some(1));
        assert_eq!(parse_possible(b"0-1,4,8-9\n"), Some(10));
        assert_eq!(parse_possible(b"\n"), None, "no number");
        assert!(possible() >= os::online_cpus());
    }

    #[test]
    fn groups_up_to_the_root() {
        let all: Vec<&[u8]> = parents(b"/a/b").collect();
        assert_eq!(all, [&b"/a/b"[..], b"/a", b"", b""]);
    }

    #[test]
    fn quotas_round_up() {
        assert_eq!(parse_v2(b"150000 100000\n"), Some(2));
        assert_eq!(parse_v2(b"50000 100000\n"), Some(1));
        assert_eq!(parse_v2(b"400000 100000\n"), Some(4));
        assert_eq!(parse_v2(b"max 100000\n"), None);
        assert_eq!(parse_v2(b""), None);
        assert_eq!(parse_v2(b"100000 0"), None);
    }

    #[test]
    fn there_is_at_least_one() {
        assert!(cpus() >= 1);
    }
}
