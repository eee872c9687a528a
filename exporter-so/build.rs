//! Linker arguments of the shared object.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The library's threads run until the process ends, so dlclose must not unmap it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblumalloc_exporter.so");
}
