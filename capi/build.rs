//! Linker arguments of the shared object.

#[path = "build/working_set.rs"]
mod working_set;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/working_set.rs");
    working_set::link();
    // A thread that exits may call back into the library at any time, so dlclose must not unmap it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblumalloc.so");
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if ["x86_64", "aarch64"].contains(&arch.as_str()) {
        name_in_shared_object("dlopen", "lumalloc_dlopen");
        name_in_shared_object("dlmopen", "lumalloc_dlmopen");
        for [name, function] in [
            ["setrlimit", "lumalloc_setrlimit"],
            ["setrlimit64", "lumalloc_setrlimit"],
            ["prlimit", "lumalloc_prlimit"],
            ["prlimit64", "lumalloc_prlimit"],
        ] {
            name_in_shared_object(name, function);
        }
        if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
            name_in_shared_object("__register_atfork", "lumalloc_register_atfork");
        }
    }
}

/// Gives a function a name of the C library's in the shared object alone, because a static program
/// has no other function with that name to call.
fn name_in_shared_object(name: &str, function: &str) {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-u,{function}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--defsym={name}={function}");
}
