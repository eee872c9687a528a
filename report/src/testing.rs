//! Texts that tests compare with files.

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
