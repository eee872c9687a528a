//! Names of functions as their language writes them.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// The most bytes of a demangled name. A short mangled name may refer back to its own parts, and
/// stand for gigabytes.
const NAME_MAX: usize = 64 << 10;

/// Suffixes that compilers give to parts and copies of a function. A number follows, which the
/// first one may lack.
const COPIES: [&str; 7] =
    [".cold", ".part.", ".constprop.", ".isra.", ".llvm.", ".lto_priv.", ".clone."];

/// Returns the name without the marks of copies, demangled. Names of C are returned as they are,
/// and so are those that would be longer than 64 KiB. Rust's hashes and the parameters of C++
/// functions are left out.
pub fn demangle(raw: &str) -> String {
    let plain = plain(raw);
    let name = match is_rust(plain).then(|| rustc_demangle::try_demangle(plain)) {
        Some(Ok(name)) => limited(|text| write!(text, "{name:#}")),
        _ => cpp(plain),
    };
    name.unwrap_or_else(|| plain.to_owned())
}

/// Returns the name of a class from the mangled one of its `type_info`.
pub(crate) fn type_name(mangled: &str) -> Option<String> {
    const WHAT: &str = "typeinfo for ";
    let symbol = Symbol::new(format!("_ZTI{mangled}")).ok()?;
    let text = limited(|text| symbol.structured_demangle(text, &DemangleOptions::new()))?;
    text.strip_prefix(WHAT).map(without_abi_tags)
}

/// Whether a function may be written in Rust: neither its name, as its symbol has it, nor the name
/// of its source file says that it is not. Both may be empty.
pub(super) fn may_be_rust(raw: &str, file: &str) -> bool {
    let plain = plain(raw);
    // Files of C++ libraries have names without a dot.
    let is_other = |(_, ending): (&str, &str)| !ending.contains('/') && ending != "rs";
    is_rust(plain) || !(plain.starts_with("_Z") || file.rsplit_once('.').is_some_and(is_other))
}

/// Whether it is a name of Rust, in either form.
pub(crate) fn is_rust(name: &str) -> bool {
    name.starts_with("_R") || is_legacy_rust(name)
}

/// Whether it is a name of Rust's older form, which has no type arguments: `_ZN…17h<16 digits>E`.
pub(crate) fn is_legacy_rust(name: &str) -> bool {
    let name_and_hash = name.strip_suffix('E').unwrap_or("");
    let hash = name_and_hash.get(name_and_hash.len().saturating_sub(19)..).unwrap_or("");
    let digits = hash.strip_prefix("17h");
    name.starts_with("_ZN")
        && digits.is_some_and(|hash| hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Whether it is the rest of a function that GCC split, whose head calls it: `f.part.0`.
pub(super) fn is_rest(raw: &str) -> bool {
    raw[plain(raw).len()..].contains(".part.")
}

/// The name without the version of its symbol, and without the marks of copies. Names of other
/// languages may have parts that look like these: `main.coldStart` of Go, `@scope/x.run` of
/// JavaScript.
pub(super) fn plain(raw: &str) -> &str {
    let name = raw.split_once('@').filter(|(name, version)| is_versioned(name, version));
    let name = name.map_or(raw, |(name, _)| name);
    let cut = name.match_indices('.').map(|(at, _)| at).find(|at| *at > 0 && is_copy(&name[*at..]));
    cut.map_or(name, |at| &name[..at])
}

/// Whether these are the name of a symbol and its version, as of `memcpy@@GLIBC_2.14`.
fn is_versioned(name: &str, version: &str) -> bool {
    let is_of_symbol = |letter: char| letter.is_ascii_alphanumeric() || "_.$".contains(letter);
    let mut letters = name.chars().chain(version.trim_start_matches('@').chars());
    !name.is_empty() && !name.ends_with('.') && letters.all(is_of_symbol)
}

/// Whether a text begins with the mark of a copy.
fn is_copy(text: &str) -> bool {
    let behind = COPIES.iter().find_map(|mark| Some((mark, text.strip_prefix(mark)?)));
    behind.is_some_and(|(mark, rest)| match mark.ends_with('.') {
        true => rest.starts_with(|first: char| first.is_ascii_digit()),
        false => rest.is_empty() || rest.starts_with('.'),
    })
}

fn cpp(name: &str) -> Option<String> {
    let symbol = name.starts_with("_Z").then(|| Symbol::new(name).ok()).flatten()?;
    let options = DemangleOptions::new().no_params().no_return_type();
    let text = limited(|text| symbol.structured_demangle(text, &options))?;
    Some(without_abi_tags(&text))
}

/// Returns the name of a C++ function with its parameters. `None`: it is no such name, or its name
/// would be longer than 64 KiB.
pub(super) fn with_parameters(raw: &str) -> Option<String> {
    let symbol = Symbol::new(plain(raw)).ok()?;
    let options = DemangleOptions::new().no_return_type();
    let text = limited(|text| symbol.structured_demangle(text, &options))?;
    Some(without_abi_tags(&text))
}

/// A text that takes no more than [`NAME_MAX`] bytes.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if part.len() > NAME_MAX - self.0.len() {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

/// Returns what a function writes, unless it fails or is longer than [`NAME_MAX`].
fn limited(write: impl FnOnce(&mut Limited) -> fmt::Result) -> Option<String> {
    let mut text = Limited(String::new());
    write(&mut text).ok().map(|()| text.0)
}

/// The name without `[abi:cxx11]`.
fn without_abi_tags(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, tag)) = rest.split_once("[abi:") {
        out.push_str(before);
        rest = tag.split_once(']').map_or("", |(_, behind)| behind);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_their_language() {
        for (raw, name) in [
            ("main", "main"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("f.cold", "f"),
            ("f.cold.3", "f"),
            (".cold", ".cold"),
            ("f.part.0.constprop.1", "f"),
            ("read@plt", "read"),
            // Names of Go, JavaScript and others that profiles bring along.
            ("main.coldStart", "main.coldStart"),
            ("main.(*T).clone.func1", "main.(*T).clone.func1"),
            ("x/y@v1.2/z.f", "x/y@v1.2/z.f"),
            ("@scope/x.run", "@scope/x.run"),
            ("Map.@@iterator", "Map.@@iterator"),
            ("(anonymous) a@b.js:3", "(anonymous) a@b.js:3"),
            ("_ZN3foo3barEv", "foo::bar"),
            ("_ZN4main5boxed17h0123456789abcdefE", "main::boxed"),
            ("_ZN5alloc5boxed12Box$LT$T$GT$3new17h0123456789abcdefE", "alloc::boxed::Box<T>::new"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            (
                "_ZNSt6vectorI6WidgetSaIS0_EE9push_backERKS0_",
                "std::vector<Widget, std::allocator<Widget> >::push_back",
            ),
            ("_ZNSt7__cxx1112basic_stringB5cxx11Ev", "std::__cxx11::basic_string"),
            ("_Znwm", "operator new"),
            ("_Z6brokenI", "_Z6brokenI"),
            ("äöü", "äöü"),
            ("E", "E"),
        ] {
            assert_eq!(demangle(raw), name, "{raw}");
        }
    }

    #[test]
    fn the_rest_of_a_split_function_is_known() {
        for raw in ["f.part.0", "_Z1fv.part.0.isra.0", "f.constprop.0.part.12"] {
            assert!(is_rest(raw), "{raw}");
        }
        for raw in ["f", "", "f.cold", "f.isra.0", "main.part.of"] {
            assert!(!is_rest(raw), "{raw}");
        }
    }

    /// The mangled class `P<T, T, T, T>`, where each `T` is again such a class, and the innermost
    /// is `a`. All but the first `T` refer to the first one.
    fn nested(levels: usize) -> String {
        let open = "S_I".repeat(levels - 1);
        let close: String =
            (0..levels).map(|at| format!("{}E", format!("S{at}_").repeat(3))).collect();
        format!("1PI{open}1a{close}")
    }

    #[test]
    fn a_name_that_grows_without_bound_stays_mangled() {
        let short = "P<P<a, a, a, a>, P<a, a, a, a>, P<a, a, a, a>, P<a, a, a, a> >";
        assert_eq!(type_name(&nested(2)).as_deref(), Some(short));
        assert_eq!(demangle(&format!("_ZN{}1gEv", nested(2))), format!("{short}::g"));
        let long = format!("_ZN{}1gEv", nested(9));
        assert_eq!(demangle(&long), long);
        assert_eq!(type_name(&nested(9)), None);
        // Rust's form that refers back.
        let long = "_RMC0FGZZZ_Eu";
        assert_eq!(demangle(long), long);
    }

    #[test]
    fn a_name_has_at_most_64_kib() {
        for (length, is_whole) in [(NAME_MAX, true), (NAME_MAX + 1, false)] {
            let text = limited(|text| {
                text.write_str("x")?;
                text.write_str(&"x".repeat(length - 1))
            });
            assert_eq!(text.map(|text| text.len()), is_whole.then_some(length));
        }
    }

    #[test]
    fn classes_have_names() {
        for (mangled, name) in [
            ("6Widget", Some("Widget")),
            ("N4shop5ShelfI6WidgetiEE", Some("shop::Shelf<Widget, int>")),
            ("N12_GLOBAL__N_16HiddenE", Some("(anonymous namespace)::Hidden")),
            ("3BoxIFviEE", Some("Box<void (int)>")),
            ("3Bo", None),
            ("", None),
        ] {
            assert_eq!(type_name(mangled).as_deref(), name, "{mangled}");
        }
    }

    #[test]
    fn a_name_or_a_file_of_another_language_is_known() {
        for (raw, file, expected) in [
            ("_ZN4core5Cache4fillEv", "", false),
            ("_ZN4core5Cache4fillEv.cold", "", false),
            ("_ZN4core5cache17h0123456789abcdefE.llvm.12", "", true),
            ("_RNvCs1234_7mycrate3foo", "", true),
            ("core::fill", "", true),
            ("core::fill", "/x/.cache/vector", true),
            ("core::fill", "/rustc/1/library/core/src/mem/mod.rs", true),
            ("core::fill", "/x.rs/cache.cc", false),
            ("map_fold", "map.c", false),
            ("", "", true),
        ] {
            assert_eq!(may_be_rust(raw, file), expected, "{raw} in {file}");
        }
    }

    #[test]
    fn the_older_form_of_rust_is_known_by_its_hash() {
        assert!(is_legacy_rust("_ZN4main5boxed17h0123456789abcdefE"));
        for other in ["_ZN3foo3barE", "_RNvCs_1a1b", "äääääääääääääääääääE", "_ZN17hE"]
        {
            assert!(!is_legacy_rust(other), "{other}");
        }
    }
}
