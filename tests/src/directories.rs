//! The directories of the workspace.

use std::path::{Path, PathBuf};

/// The root of the workspace. Cargo tells each test its package. What it told the compiler may be
/// another checkout, which has built this library into the same target directory.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).parent().expect("the package lies in the workspace").to_path_buf()
}

/// Cargo's target directory: `CARGO_TARGET_DIR` if it is set, otherwise `target`.
pub fn target_dir() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(named)
}
