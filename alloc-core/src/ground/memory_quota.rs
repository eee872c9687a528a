//! The memory limit of the process's container: the smallest `memory.high` or `memory.max` of its
//! cgroups.

use super::cpu_quota::{parents, read};
use super::files;

/// Returns the limit in bytes, or 0 if there is no limit, or `None` if the process cannot read
/// which cgroups it has. Reads a few small files, so callers keep the result.
pub(crate) fn bytes() -> Option<u64> {
    let mut least = None;
    files::read_lines(c"/proc/self/cgroup", |line| {
        least = [least, of_line(line)].into_iter().flatten().min();
    })?;
    Some(least.unwrap_or(0))
}

fn of_line(line: &[u8]) -> Option<u64> {
    match line {
        [b'0', b':', b':', path @ ..] => {
            let files = ["/memory.high", "/memory.max"];
            let of = |group: &[u8]| {
                files.iter().filter_map(|file| read(group, "/sys/fs/cgroup", file, number)).min()
            };
            parents(path).filter_map(of).min()
        }
        _ => {
            let mut parts = line.splitn(3, |c| *c == b':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            if !controllers.split(|c| *c == b',').any(|name| name == b"memory") {
                return None;
            }
            let file = "/memory.limit_in_bytes";
            let of = |group: &[u8]| read(group, "/sys/fs/cgroup/memory", file, number);
            // A group without a limit shows a number close to the largest one there is.
            parents(path).filter_map(of).min().filter(|bytes| *bytes < 1 << 60)
        }
    }
}

/// Parses the number at the beginning of a file. Returns `None` for `max`, which means no limit.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.split(|c| !c.is_ascii_digit()).next().filter(|digits| !digits.is_empty())?;
    digits.iter().try_fold(0u64, |n, c| n.checked_mul(10)?.checked_add(u64::from(c - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_no_limit() {
        assert_eq!(number(b"1073741824\n"), Some(1 << 30));
        assert_eq!(number(b"max\n"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"99999999999999999999999\n"), None);
    }
}
