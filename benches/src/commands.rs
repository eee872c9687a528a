//! Commands that build and ask.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs a command to its end and returns its standard output.
pub(crate) fn finish(command: &mut Command) -> Result<String, String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or(OsStr::new("command"));
    let name = name.to_string_lossy().into_owned();
    let done = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{name} failed:\n{}", String::from_utf8_lossy(&done.stderr)));
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// Builds a package in release mode.
pub(crate) fn cargo_build(
    manifest: &Path,
    target: &Path,
    arguments: &[&str],
) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--manifest-path"]).arg(manifest);
    finish(cargo.arg("--target-dir").arg(target).args(arguments)).map(drop)
}
