//! Names of functions as their language writes them.

use cpp_demangle::{DemangleOptions, Symbol};

/// Suffixes that compilers give to parts and copies of a function.
const COPIES: [&str; 7] =
    [".cold", ".part.", ".constprop.", ".isra.", ".llvm.", ".lto_priv.", ".clone."];

/// Returns the name without the marks of copies, demangled. Names of C are returned as they are.
/// Rust's hashes and the parameters of C++ functions are left out.
pub fn demangle(raw: &str) -> String {
    let plain = plain(raw);
    if is_rust(plain)
        && let Ok(name) = rustc_demangle::try_demangle(plain)
    {
        return format!("{name:#}");
    }
    cpp(plain).unwrap_or_else(|| plain.to_owned())
}

/// Returns the name of a class from the mangled one of its `type_info`.
pub(crate) fn type_name(mangled: &str) -> Option<String> {
    const WHAT: &str = "typeinfo for ";
    let symbol = Symbol::new(format!("_ZTI{mangled}")).ok()?;
    let text = symbol.demangle_with_options(&DemangleOptions::new()).ok()?;
    text.strip_prefix(WHAT).map(without_abi_tags)
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

fn plain(raw: &str) -> &str {
    let name = raw.split('@').next().unwrap_or(raw);
    let cut = COPIES.iter().filter_map(|mark| name.find(mark)).filter(|at| *at > 0).min();
    cut.map_or(name, |at| &name[..at])
}

fn cpp(name: &str) -> Option<String> {
    let symbol = name.starts_with("_Z").then(|| Symbol::new(name).ok()).flatten()?;
    let options = DemangleOptions::new().no_params().no_return_type();
    let text = symbol.demangle_with_options(&options).ok()?;
    Some(without_abi_tags(&text))
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
            (".cold", ".cold"),
            ("f.part.0.constprop.1", "f"),
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
    fn the_older_form_of_rust_is_known_by_its_hash() {
        assert!(is_legacy_rust("_ZN4main5boxed17h0123456789abcdefE"));
        for other in ["_ZN3foo3barE", "_RNvCs_1a1b", "äääääääääääääääääääE", "_ZN17hE"]
        {
            assert!(!is_legacy_rust(other), "{other}");
        }
    }
}
