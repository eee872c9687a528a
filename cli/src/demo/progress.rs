//! How far the demonstration is: one line redrawn on a terminal, else a plain line now and then.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::format::Unit;
use super::sample::Sample;

const BAR: usize = 16;
/// How often a plain line is written.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// The progress line. It is on standard error, so that the table can go to a file.
pub(crate) struct Progress {
    live: bool,
    runs: u32,
    run: u32,
    side: &'static str,
    began: Instant,
    expected: Duration,
    written: Instant,
    address: Option<SocketAddr>,
}

/// The state at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Now {
    /// The name of the phase.
    pub(crate) phase: &'static str,
    /// Requests per second.
    pub(crate) rate: Option<f64>,
    /// The service's resident bytes.
    pub(crate) rss: Option<u64>,
}

impl Progress {
    /// Makes the progress line of this many runs.
    pub(crate) fn new(runs: u32) -> Self {
        let (now, expected) = (Instant::now(), Duration::from_secs(1));
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let live = io::stderr().is_terminal() && !dumb;
        Self { live, runs, run: 0, side: "", began: now, expected, written: now, address: None }
    }

    /// Writes what comes and how long it takes.
    pub(crate) fn introduce(&mut self, time: Duration) {
        self.write(&introduction(time));
    }

    /// Writes where the allocator can be watched, once unless the address changes.
    pub(crate) fn show_address(&mut self, address: SocketAddr) {
        if self.address.replace(address) != Some(address) {
            self.clear();
            self.write(&format!("while lumalloc is measured: http://{address}/ and /metrics\n"));
        }
    }

    /// Begins the next run.
    pub(crate) fn begin(&mut self, side: &'static str, expected: Duration) {
        self.run += 1;
        (self.side, self.began, self.expected) = (side, Instant::now(), expected);
        self.written = self.began;
        self.show(Now { phase: "starting", ..Now::default() });
    }

    /// Shows the state, if it is time to.
    pub(crate) fn show(&mut self, now: Now) {
        if self.live {
            let line = self.line(now);
            // The line does not wrap, so that a narrow terminal cuts it and can redraw it.
            self.write(&format!("\r\x1b[?7l{line}\x1b[K\x1b[?7h"));
        } else if self.written.elapsed() >= PLAIN_EVERY {
            self.written = Instant::now();
            let line = format!("{}\n", self.line(now));
            self.write(&line);
        }
    }

    /// Ends a run. Its result stays on the screen.
    pub(crate) fn finish(&mut self, sample: &Sample) {
        self.clear();
        self.write(&self.result(sample));
    }

    fn result(&self, sample: &Sample) -> String {
        format!(
            "[{}/{}] {:<9} {:>8} requests/s   p99 {:>8}   peak RSS {:>10}\n",
            self.run,
            self.runs,
            self.side,
            Unit::Count.show(sample.rate()),
            Unit::Microseconds.show(sample.load.p99 as f64),
            sample.peak().map_or("–".into(), |bytes| Unit::Bytes.show(bytes as f64)),
        )
    }

    fn line(&self, now: Now) -> String {
        let part = self.began.elapsed().as_secs_f64() / self.expected.as_secs_f64();
        let done = (f64::from(self.run - 1) + part.min(1.0)) / f64::from(self.runs);
        let mut line = format!("[{}/{}] {:<9} ", self.run, self.runs, self.side);
        line += &format!("{} {:<10}", bar(done), now.phase);
        if let Some(rate) = now.rate {
            line += &format!("{:>8} requests/s", Unit::Count.show(rate));
        }
        if let Some(bytes) = now.rss {
            line += &format!("  RSS {}", Unit::Bytes.show(bytes as f64));
        }
        line
    }

    fn clear(&self) {
        if self.live {
            self.write("\r\x1b[K");
        }
    }

    /// Writes a text. Progress that cannot be shown is no reason to stop.
    fn write(&self, text: &str) {
        let mut out = io::stderr().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

impl Drop for Progress {
    /// Leaves a clean line for the table or the error.
    fn drop(&mut self) {
        self.clear();
    }
}

fn introduction(time: Duration) -> String {
    format!(
        "lumalloc {}: an HTTP key-value service under load, on lumalloc and on the\n\
         system's allocator by turns; about {} s\n",
        env!("CARGO_PKG_VERSION"),
        time.as_secs()
    )
}

fn bar(done: f64) -> String {
    let full = ((done * BAR as f64).round() as usize).min(BAR);
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::sample::examples::sample;
    use crate::service::stats::MemoryStats;

    #[test]
    fn bars_have_one_width() {
        assert_eq!(bar(0.0), "░".repeat(BAR));
        assert_eq!(bar(0.5), format!("{}{}", "█".repeat(BAR / 2), "░".repeat(BAR / 2)));
        assert_eq!(bar(7.0), "█".repeat(BAR));
    }

    #[test]
    fn the_line_fits_a_terminal() {
        let mut progress = Progress::new(4);
        progress.live = false;
        progress.begin("lumalloc", Duration::from_secs(60));
        let now = Now { phase: "measuring", rate: Some(234_567.0), rss: Some(9_345 << 20) };
        let line = progress.line(now);
        assert!(line.starts_with("[1/4] lumalloc  ░"), "{line}");
        assert!(line.ends_with("measuring  234,567 requests/s  RSS 9345.0 MiB"), "{line}");
        assert!(line.chars().count() < 80, "{line}");
        assert_eq!(progress.line(Now::default()).matches("RSS").count(), 0);
    }

    #[test]
    fn the_beginning_and_the_results_are_said() {
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "lumalloc {version}: an HTTP key-value service under load, on lumalloc and on the
system's allocator by turns; about 21 s
"
        );
        assert_eq!(introduction(Duration::from_millis(21_900)), expected);
        let mut progress = Progress::new(4);
        progress.live = false;
        progress.begin("lumalloc", Duration::from_secs(60));
        let mut sample = sample(468_000, 50, MemoryStats::default());
        let expected = "[1/4] lumalloc   234,000 requests/s   p99  3.21 ms   peak RSS   60.0 MiB\n";
        assert_eq!(progress.result(&sample), expected);
        sample.stats.process.rss_peak = None;
        sample.idle = None;
        let expected = "[1/4] lumalloc   234,000 requests/s   p99  3.21 ms   peak RSS          –\n";
        assert_eq!(progress.result(&sample), expected);
    }
}
