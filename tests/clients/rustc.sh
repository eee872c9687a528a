#!/usr/bin/env bash
# rustc builds a small crate, and the program's output is compared.
#
# The rustc binary brings its own malloc in the executable, which no preloading replaces. All of the
# compiler lives in librustc_driver, so a launcher of four lines calls its entry point; there the
# compiler, LLVM, the linker and cargo all run on the preloaded library.
. "$(dirname "$0")/common.sh"

toolchain=$(rustc --print sysroot)
driver=$(echo "$toolchain"/lib/librustc_driver-*.so)
[ -f "$driver" ] || die "no librustc_driver in $toolchain/lib"
entry=$(nm -D --defined-only "$driver" | grep -o ' T .*17rustc_driver_impl4main$' | cut -c 4-)
[ -n "$entry" ] || die "the driver has no entry point of the known name"
cat > launcher.c <<PROGRAM
int rustc(void) __asm__("$entry");
int main(void) { return rustc(); }
PROGRAM
gcc launcher.c -o launcher "$driver" "-Wl,-rpath,$toolchain/lib"

mkdir -p crate/src
cat > crate/Cargo.toml <<'MANIFEST'
[package]
name = "words"
version = "0.1.0"
edition = "2021"

[workspace]
MANIFEST
# 40 modules of structures with derives and generics: some work for the type checker and for LLVM.
{
  echo '#![allow(dead_code)]'
  for ((i = 0; i < 40; i++)); do
    cat <<MODULE
mod m$i {
    use std::collections::{BTreeMap, HashMap};
    #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
    pub struct Item { name: String, parts: Vec<u64>, next: Option<Box<Item>> }
    pub fn run(seed: u64) -> u64 {
        let mut all = BTreeMap::new();
        let mut seen: HashMap<String, Item> = HashMap::new();
        for i in 0..50u64 {
            let parts: Vec<u64> = (0..i % 9).map(|j| j.wrapping_mul(seed ^ $i)).collect();
            let next = seen.get(&format!("{}", i / 2)).cloned().map(Box::new);
            let item = Item { name: format!("item {i}"), parts, next };
            seen.insert(format!("{i}"), item.clone());
            all.insert(item, i);
        }
        let text = format!("{:?}", all);
        text.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
    }
}
MODULE
  done
  echo 'fn main() {'
  for ((i = 0; i < 40; i++)); do
    echo "    println!(\"{i}: {}\", m$i::run($i), i = $i);"
  done
  echo '}'
} > crate/src/main.rs

echo 'fn main() {}' > empty.rs
bound ./launcher empty.rs
for profile in dev release; do
  RUSTC="$PWD/launcher" CARGO_TARGET_DIR="$PWD/target" RUSTFLAGS='' preloaded "$toolchain/bin/cargo" build \
    --quiet --offline --profile "$profile" --manifest-path crate/Cargo.toml
done
./target/debug/words
./target/debug/words | cmp - <(./target/release/words) && echo "release says the same"
