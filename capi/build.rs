//! Linker arguments of the shared object.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A thread's exit calls back into the library at any time, so dlclose must not unmap it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblumalloc.so");
}
