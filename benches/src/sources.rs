//! The shared objects: lumalloc's built by cargo, Debian's as they are installed, the others
//! compiled from the sources in their crates, once per version and with the release flags of their
//! own builds.

use crate::commands::{cargo_build, finish};
use crate::peers::Preload;
use crate::places::{Places, package_directory};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories in which Debian and its relatives install shared objects.
const LIBRARY_DIRECTORIES: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
    "/usr/lib64",
    "/usr/lib",
];

/// The flags of mimalloc's CMakeLists for a shared library in a release.
const MIMALLOC_FLAGS: [&str; 15] = [
    "-O3",
    "-shared",
    "-fPIC",
    "-std=gnu11",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-builtin-malloc",
    "-DNDEBUG",
    "-DMI_MALLOC_OVERRIDE",
    "-DMI_BUILD_RELEASE",
    "-DMI_SHARED_LIB",
    "-DMI_SHARED_LIB_EXPORT",
    "-DMI_CMAKE_BUILD_TYPE=release",
    "-pthread",
    "-w",
];

/// The flags of rpmalloc's own release build (`build/ninja/gcc.py`), for preloading.
const RPMALLOC_FLAGS: [&str; 11] = [
    "-O3",
    "-funroll-loops",
    "-shared",
    "-fPIC",
    "-std=gnu11",
    "-D_GNU_SOURCE=1",
    "-DBUILD_RELEASE=1",
    "-DENABLE_PRELOAD=1",
    "-DENABLE_OVERRIDE=1",
    "-pthread",
    "-w",
];

/// A shared object, if one is preloaded, and its version.
type Built = (Option<PathBuf>, String);

/// The shared object of a peer and its version. There is no shared object for the C library itself.
pub(crate) fn shared_object_of(places: &Places, preload: Preload) -> Result<Built, String> {
    match preload {
        Preload::None => Ok((None, debian_version("libc6"))),
        Preload::Ours => {
            let manifest = places.root.join("Cargo.toml");
            cargo_build(&manifest, &places.target, &["-p", "lumalloc-capi"])?;
            let path = places.target.join("release/liblumalloc.so");
            Ok((Some(path), commit_of(&places.root)))
        }
        Preload::Old => {
            let (old, target) = (places.old()?, places.built("old"));
            cargo_build(&old.join("Cargo.toml"), &target, &["-p", "lumalloc-capi"])?;
            Ok((Some(target.join("release/liblumalloc.so")), commit_of(&old)))
        }
        Preload::MimallocSource(directory) => mimalloc(places, directory, "", &[]),
        Preload::MimallocSecureSource(directory) => {
            mimalloc(places, directory, "-secure", &["-DMI_SECURE=4"])
        }
        Preload::JemallocSource => jemalloc(places),
        Preload::SnmallocSource(target) => snmalloc(places, target),
        Preload::RpmallocSource => rpmalloc(places),
        Preload::Debian { file, package } => {
            let paths = LIBRARY_DIRECTORIES.map(|directory| Path::new(directory).join(file));
            let found = paths.into_iter().find(|path| path.exists());
            let path = found.ok_or_else(|| format!("no {file}: apt-get install {package}"))?;
            Ok((Some(path), debian_version(package)))
        }
    }
}

/// The commit of a checkout, and whether its files differ from it.
pub(crate) fn commit_of(checkout: &Path) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(checkout).args(["describe", "--always", "--exclude=*", "--dirty=, changed"]);
    finish(&mut git).unwrap_or_else(|_| "of unknown commit".to_owned())
}

/// Stands for the compiler and the flags of a build in the name of its file, so that a file of
/// others is not taken for it.
fn key_of(flags: &[&[&str]]) -> String {
    let compiler = finish(Command::new("gcc").arg("--version")).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (compiler, flags).hash(&mut hasher);
    format!("{:08x}", hasher.finish() as u32)
}

/// Builds a file if it is not there. It gets its name when it is whole, so that a build that was
/// interrupted is done again.
fn once(path: &Path, build: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    let unfinished = path.with_extension("unfinished");
    build(&unfinished)?;
    fs::rename(&unfinished, path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The version of an installed package.
pub(crate) fn debian_version(package: &str) -> String {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${Version}", package]);
    finish(&mut query).map_or_else(|_| "of unknown version".to_owned(), |v| format!("Debian {v}"))
}

/// The shared object from the source in the crate libmimalloc-sys, compiled once per version with
/// these flags besides. `kind` tells them apart in the name of the file.
fn mimalloc(places: &Places, directory: &str, kind: &str, flags: &[&str]) -> Result<Built, String> {
    let source =
        package_directory(places, "libmimalloc-sys")?.join("c_src/mimalloc").join(directory);
    let version = mimalloc_version(&source)?;
    let key = key_of(&[&MIMALLOC_FLAGS, flags]);
    let path = places.built(&format!("libmimalloc{kind}-{version}-{key}.so"));
    once(&path, |unfinished| {
        let mut compiler = Command::new("gcc");
        compiler.args(MIMALLOC_FLAGS).args(flags);
        for include in ["include", "src"] {
            compiler.arg("-I").arg(source.join(include));
        }
        finish(compiler.arg(source.join("src/static.c")).arg("-o").arg(unfinished)).map(drop)
    })?;
    Ok((Some(path), version))
}

/// Reads the version: `#define MI_MALLOC_VERSION 30302` is 3.3.2.
fn mimalloc_version(source: &Path) -> Result<String, String> {
    let header = fs::read_to_string(source.join("include/mimalloc.h"))
        .map_err(|error| format!("mimalloc.h: {error}"))?;
    let packed: Option<u32> = header
        .lines()
        .find_map(|line| line.strip_prefix("#define MI_MALLOC_VERSION"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    let packed = packed.ok_or("mimalloc.h says no version")?;
    Ok(format!("{}.{}.{}", packed / 10_000, packed / 100 % 100, packed % 100))
}

/// Built by its own `configure`, which the crate keeps beside the source. As in the crate, it is
/// built without the operators of C++, which would bring libstdc++ into every process.
fn jemalloc(places: &Places) -> Result<Built, String> {
    let package = package_directory(places, "tikv-jemalloc-sys")?;
    let name = package.to_string_lossy().into_owned();
    let version = name.split_once('+').map(|(_, version)| version.to_owned());
    let version = version.ok_or("tikv-jemalloc-sys names no version of jemalloc")?;
    let script = "cp -r \"$1/jemalloc\" \"$2\" && cp \"$1\"/configure/* \"$2\" && cd \"$2\" && \
         ./configure --with-version=\"$3\" --enable-doc=no --disable-static --disable-cxx && \
         make -j2 build_lib_shared && cp lib/libjemalloc.so.2 \"$4\"";
    let key = key_of(&[&[script]]);
    let path = places.built(&format!("libjemalloc-{version}-{key}.so"));
    once(&path, |unfinished| {
        let copy = places.built("jemalloc");
        let _ = fs::remove_dir_all(&copy);
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).args([&package, &copy]).arg(&version).arg(unfinished);
        finish(&mut shell).map(drop)
    })?;
    Ok((Some(path), version))
}

/// Built as one of the shims that its own build files provide for `LD_PRELOAD`.
fn snmalloc(places: &Places, target: &str) -> Result<Built, String> {
    let package = package_directory(places, "snmalloc-sys")?;
    let version = version_in(&package, "snmalloc-sys");
    let settings = ["-DCMAKE_BUILD_TYPE=Release", "-DSNMALLOC_BUILD_TESTING=OFF"];
    let key = key_of(&[&settings]);
    let path = places.built(&format!("lib{target}-{version}-{key}.so"));
    once(&path, |unfinished| {
        let build = places.built("snmalloc");
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(package.join("upstream")).arg("-B").arg(&build);
        finish(configure.args(settings))?;
        let mut make = Command::new("cmake");
        finish(make.arg("--build").arg(&build).args(["--target", target]))?;
        let file = format!("lib{target}.so");
        let copied = fs::copy(build.join(&file), unfinished);
        copied.map(drop).map_err(|error| format!("{file}: {error}"))
    })?;
    Ok((Some(path), version))
}

/// Built from the newest source in a crate, the development version of 1.4.3.
fn rpmalloc(places: &Places) -> Result<Built, String> {
    let package = package_directory(places, "rpmalloc-sys")?;
    let crate_version = version_in(&package, "rpmalloc-sys");
    let changes = fs::read_to_string(package.join("rpmalloc/CHANGELOG"))
        .map_err(|error| format!("rpmalloc's CHANGELOG: {error}"))?;
    let version = changes.lines().next().unwrap_or("unknown").to_owned();
    let key = key_of(&[&RPMALLOC_FLAGS]);
    let path = places.built(&format!("librpmalloc-{version}-{key}.so"));
    once(&path, |unfinished| {
        let mut compiler = Command::new("gcc");
        compiler.args(RPMALLOC_FLAGS).arg(package.join("rpmalloc/rpmalloc/rpmalloc.c"));
        finish(compiler.arg("-o").arg(unfinished).arg("-ldl")).map(drop)
    })?;
    Ok((Some(path), format!("{version} of rpmalloc-sys {crate_version}")))
}

/// The version in the name of a directory: `.../PACKAGE-1.2.3` is 1.2.3.
fn version_in(directory: &Path, package: &str) -> String {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.strip_prefix(&format!("{package}-")).unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::version_in;
    use std::path::Path;

    #[test]
    fn a_version_is_what_follows_the_name() {
        assert_eq!(version_in(Path::new("/a/snmalloc-sys-0.7.6"), "snmalloc-sys"), "0.7.6");
        assert_eq!(version_in(Path::new("/a/other-0.7.6"), "snmalloc-sys"), "unknown");
    }
}
