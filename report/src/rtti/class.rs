//! From a v-table to the name of its class.

use super::image::{Image, TYPE_INFO, TYPE_NAME, VTABLE, Word};
use crate::block_type;
use crate::symbols::type_name;

/// The classes of the `type_info` of classes, as the C++ ABI names them.
const CLASS_TYPE_INFOS: [&str; 3] = [
    "N10__cxxabiv117__class_type_infoE",
    "N10__cxxabiv120__si_class_type_infoE",
    "N10__cxxabiv121__vmi_class_type_infoE",
];
/// The pointers to functions of a v-table stand behind two other words.
const POINTERS: u64 = 16;

/// The name of the class of the v-table at an address in the file's own numbering.
pub(super) fn of_vtable(image: &Image, address: u64) -> Option<String> {
    let mangled = by_type_info(image, address).or_else(|| by_symbol(image, address))?;
    type_name(&mangled).map(|name| block_type::plain(&name))
}

fn by_type_info(image: &Image, address: u64) -> Option<String> {
    // How far the whole object is from the one with this v-table: it is the whole one.
    let top = image.word(address.checked_sub(POINTERS)?)?;
    if !is_zero(top) || !has_functions(image, address)? {
        return None;
    }
    match image.word(address - 8)? {
        Word::Symbol(name) => name.strip_prefix(TYPE_INFO).map(str::to_owned),
        Word::Address(type_info) => by_type_info_symbol(image, type_info).or_else(|| {
            let is_class = is_class_type_info(image, image.word(type_info)?);
            is_class.then(|| name_of(image, type_info)).flatten()
        }),
        _ => None,
    }
}

fn is_zero(word: Word<'_>) -> bool {
    matches!(word, Word::Constant(0) | Word::Address(0))
}

/// Whether pointers to functions can begin at an address. An abstract class has none for its two
/// destructors.
fn has_functions(image: &Image, address: u64) -> Option<bool> {
    Some(match image.word(address)? {
        Word::Address(function) if function != 0 => image.is_code(function),
        Word::Symbol(_) | Word::Unknown => true,
        word => is_zero(word) && is_zero(image.word(address.checked_add(8)?)?),
    })
}

/// The class of a `type_info` that has a symbol: it may be one that the dynamic linker copied from
/// a library, and then the file does not have its words.
fn by_type_info_symbol(image: &Image, type_info: u64) -> Option<String> {
    let (name, inside) = image.symbol(type_info)?;
    name.strip_prefix(TYPE_INFO).filter(|_| inside == 0).map(str::to_owned)
}

/// The mangled name of the class of a `type_info`, its second word.
fn name_of(image: &Image, type_info: u64) -> Option<String> {
    match image.word(type_info.checked_add(8)?)? {
        Word::Symbol(name) => name.strip_prefix(TYPE_NAME).map(str::to_owned),
        // A star stands before names that are compared by their addresses.
        Word::Address(name) => image.text(name).map(|name| name.trim_start_matches('*').to_owned()),
        _ => None,
    }
}

/// Whether the first word of an object says that it is the `type_info` of a class.
fn is_class_type_info(image: &Image, word: Word<'_>) -> bool {
    let is_one = |name: &str| CLASS_TYPE_INFOS.contains(&name);
    match word {
        Word::Symbol(name) => name.strip_prefix(VTABLE).is_some_and(is_one),
        Word::Address(vtable) => {
            // Without a symbol the library is part of the file, and its symbols were removed.
            let name = by_symbol(image, vtable).or_else(|| own_class(image, vtable));
            name.is_some_and(|name| is_one(&name))
        }
        _ => false,
    }
}

/// The name behind the v-table of a `type_info`.
fn own_class(image: &Image, vtable: u64) -> Option<String> {
    match image.word(vtable.checked_sub(8)?)? {
        Word::Symbol(name) => name.strip_prefix(TYPE_INFO).map(str::to_owned),
        Word::Address(type_info) => name_of(image, type_info),
        _ => None,
    }
}

/// The class whose v-table has a symbol: one without `type_info`, or one that the dynamic linker
/// copied from a library, and then the file does not have its words.
fn by_symbol(image: &Image, address: u64) -> Option<String> {
    let (name, inside) = image.symbol(address)?;
    let begin = address.checked_sub(POINTERS)?;
    let is_nil = |at| {
        matches!(image.word(at), None | Some(Word::Constant(0) | Word::Address(0) | Word::Unknown))
    };
    let is_begin = inside >= POINTERS && is_nil(begin) && is_nil(begin + 8);
    name.strip_prefix(VTABLE).filter(|_| is_begin).map(str::to_owned)
}
