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
    // Only for the shared object, because a static program has no other `dlopen` and `dlmopen`.
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if ["x86_64", "aarch64"].contains(&arch.as_str()) {
        for name in ["dlopen", "dlmopen"] {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-u,lumalloc_{name}");
            println!("cargo:rustc-cdylib-link-arg=-Wl,--defsym={name}=lumalloc_{name}");
        }
    }
}
