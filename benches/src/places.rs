//! Where sources, packages and built files lie.

use crate::commands::finish;
use crate::peers::OLD_CHECKOUT;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directories of the sources and of the built files.
pub(crate) struct Places {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    bench: PathBuf,
}

impl Places {
    /// Finds the directories from the place of this program: `TARGET/release/lumalloc-bench`.
    pub(crate) fn find() -> Result<Self, String> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .ok_or("start it by `cargo run --release -p lumalloc-bench -- ...`")?;
        let root = Path::new(&manifest).parent().ok_or("benches has no parent")?.to_owned();
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let target = program.ancestors().nth(2).ok_or("no target directory")?.to_owned();
        let bench = target.join("bench");
        fs::create_dir_all(&bench).map_err(|error| format!("no directory to build in: {error}"))?;
        Ok(Self { root, target, bench })
    }

    /// The checkout that the old build comes from.
    pub(crate) fn old(&self) -> Result<PathBuf, String> {
        old_checkout(std::env::var_os(OLD_CHECKOUT))
    }

    /// A path in `benches/`.
    pub(crate) fn benches(&self, path: &str) -> PathBuf {
        self.root.join("benches").join(path)
    }

    /// A directory for files that the tools write.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.bench.clone()
    }

    /// The path of a built file in `TARGET/bench`.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        self.bench.join(name)
    }
}

/// The full path of the checkout that `LUMALLOC_OLD` names.
fn old_checkout(named: Option<OsString>) -> Result<PathBuf, String> {
    let named = named.ok_or_else(|| {
        format!("{OLD_CHECKOUT} must name the checkout that the old build comes from")
    })?;
    fs::canonicalize(&named).map_err(|error| format!("{OLD_CHECKOUT}={}: {error}", named.display()))
}

/// The directory into which cargo unpacked a package of `benches/peers`: that of a path in cargo's
/// metadata that ends in `/PACKAGE-VERSION/Cargo.toml`.
pub(crate) fn package_directory(places: &Places, package: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version=1", "--all-features", "--manifest-path"]);
    let metadata = finish(cargo.arg(places.benches("peers/Cargo.toml")))?;
    let here = format!("/{package}-");
    let found = metadata
        .split('"')
        .filter_map(|text| text.strip_suffix("/Cargo.toml"))
        .find(|path| path.rfind(&here).is_some_and(|at| !path[at + 1..].contains('/')));
    found.map(PathBuf::from).ok_or_else(|| format!("cargo metadata names no {package}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_checkout_must_be_named_and_be_there() {
        assert_eq!(
            old_checkout(None),
            Err("LUMALLOC_OLD must name the checkout that the old build comes from".to_owned())
        );
        assert_eq!(
            old_checkout(Some("/nowhere/at-all".into())),
            Err("LUMALLOC_OLD=/nowhere/at-all: No such file or directory (os error 2)".to_owned())
        );
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(
            old_checkout(Some(here.into())),
            fs::canonicalize(here).map_err(|_| String::new())
        );
    }
}
