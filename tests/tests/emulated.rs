//! Tests that need an emulator: `tests/aarch64` runs them.

use lumalloc_tests::machine::{is_emulated, system_program};
use lumalloc_tests::memory::number;
use lumalloc_tests::{Run, cc, root};

/// Kernels for AArch64 have pages of 4, 16 or 64 KiB, and the emulator can simulate each of them.
///
/// `mincore` is refused, because the emulator writes a byte for each page of 4 KiB, which is more
/// than the caller has room for.
#[test]
#[ignore = "in an emulator only: tests/aarch64"]
fn storms_on_pages_of_16_and_64_kib() {
    assert!(is_emulated(), "run tests/aarch64");
    let refuse = root().join("tests/c/refuse.c");
    let program = cc("storm.c", &[&refuse.display().to_string(), "-rdynamic"]);
    let python = system_program("python3.11");
    for page in ["16384", "65536"] {
        let says = ["-IS", "-c", "import mmap; print(mmap.PAGESIZE)"];
        let seen = Run::plain(&python).args(says).env("QEMU_PAGESIZE", page).stdout();
        assert_eq!(seen.trim_end(), page);
        let mut refused = 0;
        for conf in [
            "",
            "dirty_decay_ms:0",
            "background_thread:true,dirty_decay_ms:200",
            "hardened:true,guarded_sample:100",
            "retain:false",
            "thp:always",
        ] {
            let name = format!("QEMU_PAGESIZE={page} LUMALLOC_CONF={conf} storm");
            let run = Run::preloaded(&program).called(&name).conf(conf).args(["2000", "4", "200"]);
            let run = run.env("QEMU_PAGESIZE", page);
            let text = run.env("REFUSE", "mincore").env("REFUSE_EVERY", "1").stdout();
            refused += number(&text, "refused");
        }
        // A storm whose threads find no used run to zero does not call `mincore`.
        assert!(refused > 0, "mincore is never called with pages of {page}");
    }
}
