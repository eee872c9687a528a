//! Texts that are parsed and dropped as a whole: a region for each, with the method `Last`.
//! `cargo run -p lumalloc-region --example parse_and_drop`.
#![allow(unsafe_code, reason = "blocks are raw memory")]

use lumalloc_region::{Heap, Last, Region};

/// A node of a tree of words.
struct Word<'a> {
    text: &'a str,
    count: usize,
    before: Option<&'a mut Word<'a>>,
    after: Option<&'a mut Word<'a>>,
}

/// Puts a value in the region, where it stays as long as the region.
#[allow(clippy::mut_from_ref, reason = "each call makes another block")]
fn put<T>(region: &Region<Last, Heap>, value: T) -> &mut T {
    const { assert!(align_of::<T>() <= 16) };
    let mut place = region.alloc(size_of::<T>()).expect("memory").cast::<T>();
    // SAFETY: the block is new and long enough.
    unsafe { place.write(value) };
    // SAFETY: nobody else has the block, and it is not freed while the region is borrowed.
    unsafe { place.as_mut() }
}

fn count<'a>(region: &'a Region<Last, Heap>, tree: &mut Option<&'a mut Word<'a>>, text: &'a str) {
    match tree {
        None => *tree = Some(put(region, Word { text, count: 1, before: None, after: None })),
        Some(word) if word.text == text => word.count += 1,
        Some(word) if text < word.text => count(region, &mut word.before, text),
        Some(word) => count(region, &mut word.after, text),
    }
}

fn print(tree: &Option<&mut Word<'_>>) {
    if let Some(word) = tree {
        print(&word.before);
        println!("{:6} {}", word.count, word.text);
        print(&word.after);
    }
}

fn main() {
    for text in ["one fish two fish", "red fish blue fish", "to be or not to be"] {
        let region: Region<Last, Heap> = Region::open(Heap).expect("memory");
        let mut tree = None;
        text.split(' ').for_each(|word| count(&region, &mut tree, word));
        println!("{text}:");
        print(&tree);
        // The region goes with all that is in it, however many blocks there are.
    }
}
