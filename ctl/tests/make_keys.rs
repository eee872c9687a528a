//! The typed keys are made from the rows: `tests/run regenerate` writes them anew.

use lumalloc_ctl::{Access, Row, Type};
use lumalloc_namespace::key_table::rows;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// A module of keys.
#[derive(Default)]
struct Module {
    keys: Vec<&'static Row>,
    below: BTreeMap<&'static str, Module>,
}

/// All rows in modules, by the components before the last one, without indices.
fn modules() -> Module {
    let mut root = Module::default();
    let mut sorted: Vec<_> = rows().iter().collect();
    sorted.sort_by_key(|row| row.name());
    for row in sorted {
        let mut components: Vec<_> =
            row.name().split('.').filter(|c| !c.starts_with('<')).collect();
        components.pop();
        let module = components
            .into_iter()
            .fold(&mut root, |module, component| module.below.entry(component).or_default());
        module.keys.push(row);
    }
    root
}

fn rust_type(kind: Type) -> &'static str {
    match kind {
        Type::Void | Type::Layout(_) => "()",
        Type::Bool => "bool",
        Type::Unsigned | Type::U32 => "u32",
        Type::U64 => "u64",
        Type::I64 => "i64",
        Type::Size => "usize",
        Type::Ssize => "isize",
        Type::Str => "Text",
        Type::Pointer(_) => "*mut c_void",
    }
}

/// The first type argument of a key.
fn door(row: &Row) -> String {
    let of = rust_type(row.kind);
    if matches!(row.kind, Type::Layout(_)) {
        return "Bytes".into();
    }
    match row.access {
        Access::Exchange(_) | Access::Raw(..) => "Bytes".into(),
        Access::UnsafeTrigger(_) => "UnsafeAct".into(),
        Access::UnsafeReadWrite(..) => "UnsafeReadWrite".into(),
        Access::UnsafeCreate(..) => format!("UnsafeCreate<{of}>"),
        Access::Ask(input, _) | Access::Create(input, _) => {
            format!("Ask<{}, {of}>", rust_type(input))
        }
        _ => match row.access.notation().to_str().unwrap() {
            "--" => "Act".into(),
            "r-" => format!("Read<{of}>"),
            "-w" => format!("Write<{of}>"),
            _ => format!("ReadWrite<{of}>"),
        },
    }
}

/// One key as a constant, formatted as by rustfmt.
fn constant(row: &Row, indent: &str) -> String {
    let indices = row.name().matches('<').count();
    let count = if indices == 0 { String::new() } else { format!(", {indices}") };
    let name = row.name().rsplit('.').next().unwrap().to_uppercase();
    let kind = format!("Key<{}{count}>", door(row));
    let head = format!("{indent}pub const {name}: {kind} =");
    let value = format!("Key::new(\"{}\");", row.name());
    let one_line = format!("{head} {value}");
    let code =
        if one_line.len() <= 100 { one_line } else { format!("{head}\n{indent}    {value}") };
    let help = row.help().to_str().unwrap();
    let unit = match row.unit.name().to_str().unwrap() {
        "-" => String::new(),
        unit => format!(" ({unit})"),
    };
    let mut doc = String::new();
    let mut line = format!("{indent}///");
    for word in format!("`{}`{unit}: {help}.", row.name()).replace('[', "\\[").split(' ') {
        if line.len() + 1 + word.len() > 100 {
            doc += &(line + "\n");
            line = format!("{indent}///");
        }
        line += &format!(" {word}");
    }
    format!("{doc}{line}\n{code}\n")
}

/// The imports of a module.
fn imports(module: &Module, indent: &str) -> String {
    let all: Vec<String> = module.keys.iter().map(|row| door(row)).collect();
    let plain = |kind: &str| all.iter().any(|door| door.contains(kind));
    let mut used: Vec<&str> = all.iter().filter_map(|door| door.split('<').next()).collect();
    used.push("Key");
    used.sort_unstable();
    used.dedup();
    let doors = match used.as_slice() {
        [one] => (*one).to_owned(),
        more => format!("{{{}}}", more.join(", ")),
    };
    let mut text = format!("{indent}use crate::key::{doors};\n");
    if plain("Text") {
        text += &format!("{indent}use crate::typed::Text;\n");
    }
    if plain("c_void") {
        text += &format!("{indent}use core::ffi::c_void;\n");
    }
    text
}

/// The long branches, whose modules are files of their own.
const FILES: [&str; 4] =
    ["stats.arenas", "stats.arenas.bins", "stats.arenas.mutexes", "stats.mutexes"];

fn file_of(path: &str) -> String {
    format!("{}.rs", path.replace('.', "_"))
}

/// The body of a module.
fn body(module: &Module, path: &str, depth: usize, files: &mut BTreeMap<String, String>) -> String {
    let indent = "    ".repeat(depth);
    let mut text = String::new();
    if !module.keys.is_empty() {
        text += &imports(module, &indent);
    }
    for row in &module.keys {
        text += &format!("\n{}", constant(row, &indent));
    }
    for (name, below) in &module.below {
        let path = if path.is_empty() { (*name).into() } else { format!("{path}.{name}") };
        if !text.is_empty() {
            text.push('\n');
        }
        if depth == 0 && path == *name || FILES.contains(&path.as_str()) {
            let head = format!("//! `{path}.*`. Made from the rows of the namespace.\n");
            let text_below = body(below, &path, 0, files);
            if path != *name {
                writeln!(text, "{indent}#[path = \"{}\"]", file_of(&path)).unwrap();
            }
            files.insert(file_of(&path), format!("{head}\n{text_below}"));
            writeln!(text, "{indent}pub mod {name};").unwrap();
        } else {
            let inner = body(below, &path, depth + 1, files);
            writeln!(text, "{indent}/// `{path}.*`").unwrap();
            writeln!(text, "{indent}pub mod {name} {{\n{inner}{indent}}}").unwrap();
        }
    }
    text
}

#[test]
fn the_typed_keys_are_made_from_the_rows() {
    let mut files = BTreeMap::new();
    let root = body(&modules(), "", 0, &mut files);
    let head = "//! Every key of the namespace as a typed constant, by branch: `arena.<i>.purge` is\n\
                //! `keys::arena::PURGE`, and wants its index by `at`. Made from the rows.\n\n";
    files.insert("mod.rs".into(), format!("{head}{root}"));
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/keys");
    for (name, text) in &files {
        let file = dir.join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, text).expect("the file");
            continue;
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == *text,
            "ctl/src/keys/{name} is not what the rows make: \
             tests/run regenerate",
        );
    }
    let known = |entry: &fs::DirEntry| files.contains_key(entry.file_name().to_str().unwrap());
    let strays = fs::read_dir(&dir).unwrap().flatten().filter(|entry| !known(entry)).count();
    assert_eq!(strays, 0, "files of branches that are gone");
}
