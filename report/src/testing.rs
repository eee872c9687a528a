//! What tests share: golden files, and numbers that are the same in every run.

use std::path::Path;

/// Compares a text with a file of `report/golden`. With `UPDATE_GOLDEN` set it writes the
/// file instead.
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the file is written");
    }
    let golden = std::fs::read_to_string(&path).expect("the file exists");
    assert!(golden == text, "{name} differs; the text is now:\n{text}");
}

/// Returns numbers between 0 and 1, which are the same for a seed in every run: xorshift64.
pub(crate) fn shares(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as f64 / u64::MAX as f64
    }
}
