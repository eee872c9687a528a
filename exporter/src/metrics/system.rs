//! Numbers of the system about this thread and this process.
use std::fs;
use std::time::Duration;

/// Returns the CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: every thread has this clock, and it is written to a valid place.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the bytes of this process in physical memory. Source: proc(5), `/proc/self/statm`.
pub(crate) fn resident() -> Option<f64> {
    ["/proc/self/statm", "/proc/thread-self/statm"].into_iter().find_map(resident_by)
}

/// Reads the bytes in physical memory. `None`: the file is that of a thread that has ended, or
/// cannot be read.
fn resident_by(path: &str) -> Option<f64> {
    let text = fs::read_to_string(path).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok().filter(|pages| *pages > 0)?;
    // SAFETY: `sysconf` only returns a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    (page > 0).then_some(pages as f64 * page as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_and_a_process_are_measured() {
        let begin = thread_cpu();
        let block = vec![1u8; 20 << 20];
        assert!(block.iter().map(|byte| u64::from(*byte)).sum::<u64>() == 20 << 20);
        assert!(thread_cpu() > begin);
        assert!(resident().unwrap() > (20 << 20) as f64);
    }
}
