//! The message about a word that was overwritten.
#![allow(unsafe_code)]

mod common;

use common::free;
use lumalloc_region::{Best, Region, System};
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn keep(_: *mut c_void, text: *const c_char) {
    // SAFETY: the sink gets a C string.
    let text = unsafe { CStr::from_ptr(text) };
    MESSAGES.lock().unwrap().push(text.to_string_lossy().into_owned());
}

#[test]
fn the_message_names_region_and_word_and_comes_once() {
    // SAFETY: the sink takes any C string, in any thread.
    unsafe { lumalloc::message::set_sink(Some(keep)) };
    let mut region: Region<Best, System> = Region::open(System).unwrap();
    let blocks: Vec<_> = (0..4).map(|_| region.alloc(40).unwrap()).collect();
    // SAFETY: this writes behind the block on purpose, within the segment.
    unsafe { blocks[1].write_bytes(0x41, 48) };
    free(&region, blocks[1]).unwrap();
    assert!(free(&region, blocks[2]).is_err());
    let data = region.segments().last().unwrap().0.as_ptr() as usize;
    let word = blocks[2].as_ptr() as usize - 8;
    let expected = format!(
        "<lumalloc>: region {data:x}: the word at {word:x} between two blocks was overwritten; \
         free memory near it is not used again\n"
    );
    assert_eq!(*MESSAGES.lock().unwrap(), [expected]);
}
