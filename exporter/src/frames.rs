//! Return addresses as a person reads them: the file, the offset in it, and the function where the
//! loader knows its name.
use serde_json::{Value as Json, json};
use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// Returns `{"address":…,"module":…,"offset":…,"symbol":…}`. What is not known is `null`.
///
/// The offset is what `addr2line -e MODULE` takes. The loader knows the functions that a file
/// exports, and no others.
pub(crate) fn described(address: usize) -> Json {
    // A return address may lie behind the end of its function.
    let Some(found) = look_up(address.saturating_sub(1)) else {
        return json!({ "address": hex(address), "module": null, "offset": null, "symbol": null });
    };
    json!({
        "address": hex(address),
        "module": text(found.dli_fname).map(whole_path),
        "offset": hex(address.wrapping_sub(found.dli_fbase.addr())),
        "symbol": text(found.dli_sname),
    })
}

/// Returns an address as it is written in JSON.
pub(crate) fn hex(address: usize) -> String {
    format!("{address:#x}")
}

/// The loader has the name of the program as it was called by.
fn whole_path(name: String) -> String {
    if name.starts_with('/') {
        return name;
    }
    let program = std::env::current_exe().ok();
    program.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or(name)
}

fn look_up(address: usize) -> Option<libc::Dl_info> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    let place: *const c_void = ptr::without_provenance(address);
    // SAFETY: any address may be looked up, and the result is writable.
    if unsafe { libc::dladdr(place, found.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: zeros are valid, and the call has filled it.
    Some(unsafe { found.assume_init() })
}

fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the loader's names are NUL-terminated, and stay as long as their file is loaded.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_the_c_library_has_its_name() {
        let place = libc::getpid as *const () as usize;
        let told = described(place + 1);
        assert_eq!(told["address"], hex(place + 1));
        let module = told["module"].as_str().expect("a file");
        assert!(module.contains("libc"), "{told}");
        assert!(told["symbol"].as_str().is_some_and(|name| name.contains("getpid")), "{told}");
        assert!(told["offset"].as_str().is_some_and(|offset| offset.starts_with("0x")), "{told}");
    }

    #[test]
    fn the_program_has_its_whole_path() {
        let here = the_program_has_its_whole_path as fn() as usize;
        let program = std::env::current_exe().unwrap();
        assert_eq!(described(here + 1)["module"], program.to_str().unwrap());
        assert_eq!(whole_path("/lib/x".to_string()), "/lib/x");
    }

    #[test]
    fn what_is_no_code_is_an_address_only() {
        let expected = json!({ "address": "0x7", "module": null, "offset": null, "symbol": null });
        assert_eq!(described(7), expected);
    }
}
