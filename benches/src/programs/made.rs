//! Everything that the programs need before they run: Debian's packages, generated inputs, the two
//! services of this repository, a rustc whose malloc can be replaced.

use super::inputs;
use super::line::Values;
use super::table::Program;
use crate::commands::{cargo_build, finish};
use crate::places::Places;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Installs missing packages, generates inputs for the scale, and builds the services and the
/// rustc.
pub(crate) fn make(places: &Places, programs: &[&Program], percent: u32) -> Result<Values, String> {
    install(programs)?;
    let values = Values {
        percent,
        programs: places.benches("programs"),
        made: places.built(&format!("programs-{percent}")),
        address: String::new(),
    };
    fs::create_dir_all(&values.made).map_err(|error| format!("a place for inputs: {error}"))?;
    let script = fs::read_to_string(values.programs.join("rows.sql"))
        .map_err(|error| format!("rows.sql: {error}"))?;
    for (name, text) in [
        ("factors.smt2", inputs::factors(percent)),
        ("rows.sql", inputs::rows(&script, percent)),
        ("shapes.cc", inputs::shapes(percent)),
        ("functions.c", inputs::functions(percent)),
        ("modules.rs", inputs::modules(percent)),
    ] {
        fs::write(values.made.join(name), text).map_err(|error| format!("{name}: {error}"))?;
    }
    let is_asked = |name: &str| programs.iter().any(|program| program.name == name);
    if is_asked("http") || is_asked("documents") {
        let target = places.built("service");
        cargo_build(&places.benches("service/Cargo.toml"), &target, &[])?;
        for name in ["http", "documents"] {
            linked(&target.join("release").join(name), &values.made.join(name))?;
        }
    }
    if is_asked("rustc") {
        let launcher = places.built("rustc");
        rustc(&launcher)?;
        linked(&launcher, &values.made.join("rustc"))?;
    }
    Ok(values)
}

fn linked(from: &Path, to: &Path) -> Result<(), String> {
    // An error only means that there is no such link, which is what is wanted.
    let _ = fs::remove_file(to);
    symlink(from, to).map_err(|error| format!("{}: {error}", to.display()))
}

/// Installs Debian's packages of missing tools, as root. If that fails, the error names them.
fn install(programs: &[&Program]) -> Result<(), String> {
    let mut packages = missing(programs);
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    eprintln!("installing: {}", packages.join(" "));
    let mut apt = Command::new("apt-get");
    apt.args(["install", "-y", "-qq", "--no-install-recommends"]).args(&packages);
    let done = finish(apt.env("DEBIAN_FRONTEND", "noninteractive"));
    let still = missing(programs);
    match done {
        Ok(_) if still.is_empty() => Ok(()),
        Ok(_) => Err(format!("still missing after the installation: {}", still.join(" "))),
        Err(why) => Err(format!("missing: apt-get install {}\n{why}", packages.join(" "))),
    }
}

fn missing<'a>(programs: &[&'a Program]) -> Vec<&'a str> {
    let directories = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];
    let is_there = |tool: &str| {
        Path::new(tool).is_absolute() && Path::new(tool).exists()
            || directories.iter().any(|directory| Path::new(directory).join(tool).exists())
    };
    let tools = programs.iter().flat_map(|program| program.tools);
    tools.filter(|(tool, _)| !is_there(tool)).map(|(_, package)| *package).collect()
}

/// Builds a rustc whose malloc can be replaced. The toolchain's rustc defines malloc in its
/// executable (its own jemalloc), so preloading has no effect. But the compiler itself is in
/// `librustc_driver`, and a main function that calls its entry leaves malloc to the dynamic linker.
fn rustc(launcher: &Path) -> Result<(), String> {
    let sysroot = finish(Command::new("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(&sysroot).join("lib");
    let driver = fs::read_dir(&library)
        .map_err(|error| format!("the compiler's libraries: {error}"))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("/librustc_driver-"))
        .ok_or("the toolchain has no librustc_driver")?;
    let symbols = finish(Command::new("nm").args(["-D", "--defined-only"]).arg(&driver))?;
    let entry = symbols
        .split_whitespace()
        .find(|word| word.ends_with("17rustc_driver_impl4main"))
        .ok_or("librustc_driver has no entry of the known name")?;
    let source = launcher.with_extension("c");
    let text = format!(
        "int rustc(void) __asm__(\"{entry}\");\nint main(void) {{\n    return rustc();\n}}\n"
    );
    fs::write(&source, text).map_err(|error| format!("the launcher of rustc: {error}"))?;
    let mut gcc = Command::new("gcc");
    gcc.arg("-o").arg(launcher).arg(source).arg(driver);
    finish(gcc.arg(format!("-Wl,-rpath,{}", library.display()))).map(drop)
}
