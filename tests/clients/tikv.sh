#!/usr/bin/env bash
# tikv-jemalloc-sys, tikv-jemalloc-ctl and tikv-jemallocator of crates.io against our library, by
# the variable that their build script reads: their own tests, examples in their documentation
# included. Prints how many there were, or their output if one failed.
. "$(dirname "$0")/common.sh"

[ -n "$LIBRARY" ] || die "there is nothing to test without a library"
here=$(cd "$(dirname "$0")" && pwd)
cp "$here/tikv/Cargo.toml" "$here/tikv/Cargo.lock" .
cargo vendor --quiet --locked --versioned-dirs vendor >/dev/null
# A registry's file list would forbid the new place of these sources.
rm -f vendor/tikv-*/.cargo-checksum.json vendor/tikv-*/Cargo.lock
mkdir workspace
mv vendor/tikv-jemalloc-sys-* workspace/sys
mv vendor/tikv-jemalloc-ctl-* workspace/ctl
mv vendor/tikv-jemallocator-* workspace/global
# Nothing of jemalloc itself is compiled.
rm -rf workspace/sys/jemalloc
mkdir workspace/sys/jemalloc
cat > workspace/Cargo.toml <<'TOML'
[workspace]
resolver = "2"
members = ["sys", "ctl", "global"]

[patch.crates-io]
tikv-jemalloc-sys = { path = "sys" }
tikv-jemalloc-ctl = { path = "ctl" }
tikv-jemallocator = { path = "global" }
TOML
mkdir workspace/.cargo
cat > workspace/.cargo/config.toml <<TOML
[source.crates-io]
replace-with = "vendored"

[source.vendored]
directory = "$PWD/vendor"
TOML

cd workspace
unset LD_PRELOAD CARGO_TARGET_DIR
export JEMALLOC_OVERRIDE=$LIBRARY LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(dirname "$LIBRARY")
# Without the feature the crates ask for names with a prefix. The test that is left out writes 0,
# which jemalloc 5.3.0 accepts. Here `max_background_threads` must be at least 1.
cargo test --offline --no-fail-fast --workspace \
  --features tikv-jemallocator/unprefixed_malloc_on_supported_platforms \
  -- --skip max_background_threads_write_test > tests.log 2>&1 || {
  cat tests.log >&2
  die "tests of the crates failed"
}
grep -q -a -F liblumalloc.so target/debug/deps/smoke-* ||
  die "the tests are not linked with the library"
awk '/^test result: ok/ { sum += $4 } END { print sum " passed" }' tests.log
