//! Idling: the process sleeps after its work and notes its RSS before and after. Nothing here
//! allocates but the buffer of standard output.

use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

static SECONDS: OnceLock<u64> = OnceLock::new();
static TAKEN: OnceLock<(u64, u64)> = OnceLock::new();

/// Idling was asked for, for that many seconds.
pub(crate) fn wanted(seconds: &str) -> Result<(), String> {
    let seconds = seconds.parse().map_err(|_| "the seconds are no number".to_owned())?;
    SECONDS.set(seconds).map_err(|_| "asked twice".to_owned())
}

/// Idles, if that was asked for and has not been done: at the end of a workload, or earlier, where
/// one calls it because its threads and blocks are to be there meanwhile.
pub(crate) fn here() {
    if let Some(&seconds) = SECONDS.get() {
        TAKEN.get_or_init(|| {
            println!("idling");
            let before = resident_kib();
            thread::sleep(Duration::from_secs(seconds));
            (before, resident_kib())
        });
    }
}

/// RSS before and after, if the process idled.
pub(crate) fn taken() -> Option<(u64, u64)> {
    TAKEN.get().copied()
}

fn resident_kib() -> u64 {
    let mut text = [0; 8192];
    let mut file = File::open("/proc/self/status").expect("Linux has it");
    let length = file.read(&mut text).expect("it can be read");
    let text = str::from_utf8(&text[..length]).expect("it is plain text");
    let (_, rest) = text.split_once("VmRSS:").expect("it says how much is resident");
    rest.split_ascii_whitespace().next().and_then(|kib| kib.parse().ok()).expect("as a number")
}
