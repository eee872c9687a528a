//! Return addresses as a person reads them: the file, the address in it, and the function.
use crate::symbols::Symbols;
use lumalloc_report::symbols::demangle;
use serde_json::{Value as Json, json};

/// Returns `{"address":…,"module":…,"offset":…,"symbol":…}`. What is not known is `null`.
///
/// The offset is what `addr2line -e MODULE` takes.
pub(crate) fn described(symbols: &mut Symbols, address: usize) -> Json {
    // A return address may lie behind the end of its function.
    let place = symbols.place((address as u64).saturating_sub(1));
    let place = place.as_ref();
    json!({
        "address": hex(address),
        "module": place.map(|place| place.path),
        "offset": place.and_then(|place| place.address).map(|inside| hex(inside as usize + 1)),
        "symbol": place.and_then(|place| place.name).map(demangle),
    })
}

/// Returns an address as it is written in JSON.
pub(crate) fn hex(address: usize) -> String {
    format!("{address:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_the_c_library_has_its_name() {
        let place = libc::getpid as *const () as usize;
        let told = described(&mut Symbols::of_process().unwrap(), place + 1);
        assert_eq!(told["address"], hex(place + 1));
        let module = told["module"].as_str().expect("a file");
        assert!(module.contains("libc"), "{told}");
        assert!(told["symbol"].as_str().is_some_and(|name| name.contains("getpid")), "{told}");
        assert!(told["offset"].as_str().is_some_and(|offset| offset.starts_with("0x")), "{told}");
    }

    #[test]
    fn a_function_of_the_program_has_its_path_and_its_plain_name() {
        let here = a_function_of_the_program_has_its_path_and_its_plain_name as fn() as usize;
        let program = std::env::current_exe().unwrap();
        let told = described(&mut Symbols::of_process().unwrap(), here + 1);
        assert_eq!(told["module"], program.to_str().unwrap());
        let name = told["symbol"].as_str().expect("a name");
        let end = "::a_function_of_the_program_has_its_path_and_its_plain_name";
        assert!(name.ends_with(end), "{name}");
    }

    #[test]
    fn what_is_no_code_is_an_address_only() {
        let expected = json!({ "address": "0x7", "module": null, "offset": null, "symbol": null });
        assert_eq!(described(&mut Symbols::of_process().unwrap(), 7), expected);
    }
}
