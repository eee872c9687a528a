//! A pprof file with the names of its functions and the lines of its stacks, for readers that do
//! not look for them in the program.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::read::proto::{Function, Line, Profile};
use crate::read::{decode, places, unpacked};
use crate::symbols::{Frame, Search, Symbols};

/// Returns the file with a function and a line for each place of its stacks, and for each function
/// that was inlined there, gzipped. Places that have them keep them. Values may be negative, as
/// those of a difference are.
///
/// # Errors
///
/// It is no pprof file, or a damaged one. Missing names are no error: such functions have the name
/// of their address.
pub fn with_lines(file: &[u8], search: &Search) -> Result<Vec<u8>, String> {
    let plain = unpacked(file)?;
    let symbols = Symbols::of(&places(&plain)?, search);
    let mut named = decode(&plain)?;
    let mut functions = Functions::new(&mut named);
    let locations: Vec<Vec<Line>> = (0..functions.file.location.len())
        .map(|index| {
            symbols.location(index).iter().map(|frame| functions.line(frame, &symbols)).collect()
        })
        .collect();
    for (location, lines) in named.location.iter_mut().zip(locations) {
        if location.line.is_empty() {
            location.line = lines;
        }
    }
    for mapping in &mut named.mapping {
        mapping.has_functions = true;
        mapping.has_filenames = true;
        mapping.has_line_numbers = true;
        mapping.has_inline_frames = true;
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&named.encode_to_vec()).map_err(|error| error.to_string())?;
    packed.finish().map_err(|error| error.to_string())
}

/// Adds functions to a file, each once.
struct Functions<'a> {
    file: &'a mut Profile,
    ids: HashMap<(String, String), u64>,
    strings: HashMap<String, i64>,
    last: u64,
}

impl Functions<'_> {
    fn new(file: &mut Profile) -> Functions<'_> {
        let strings = file.string_table.iter().cloned().zip(0..).collect();
        let last = file.function.iter().map(|function| function.id).max().unwrap_or(0);
        Functions { file, ids: HashMap::new(), strings, last }
    }

    fn line(&mut self, frame: &Frame, symbols: &Symbols) -> Line {
        let name = symbols.functions()[frame.function].clone();
        Line { function_id: self.id(name, frame.file.to_string()), line: i64::from(frame.line) }
    }

    fn id(&mut self, name: String, source: String) -> u64 {
        if let Some(id) = self.ids.get(&(name.clone(), source.clone())) {
            return *id;
        }
        self.last = self.last.wrapping_add(1);
        let (text, filename) = (self.string(&name), self.string(&source));
        let function = Function { id: self.last, name: text, system_name: text, filename };
        self.file.function.push(function);
        self.ids.insert((name, source), self.last);
        self.last
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = self.file.string_table.len() as i64;
        self.file.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::{File, gzip};

    /// The names and lines of each location.
    fn lines(file: &[u8]) -> Vec<Vec<(String, String, i64)>> {
        let file = decode(&unpacked(file).expect("gzip")).expect("a profile");
        let text = |index: i64| file.string_table[usize::try_from(index).unwrap()].clone();
        let line = |line: &Line| {
            let mut functions = file.function.iter();
            let function = functions.find(|one| one.id == line.function_id).expect("a function");
            (text(function.name), text(function.filename), line.line)
        };
        assert!(file.mapping.iter().all(|mapping| mapping.has_line_numbers));
        file.location.iter().map(|at| at.line.iter().map(line).collect()).collect()
    }

    #[test]
    fn each_place_gets_its_functions() {
        let here = lines as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
        let field = |line: &str, index| line.split_whitespace().nth(index).unwrap_or("").to_owned();
        let range = |line: &str| {
            let (start, end) = field(line, 0).split_once('-').map(|(a, b)| {
                let number = |text| u64::from_str_radix(text, 16).expect("an address");
                (number(a), number(b))
            })?;
            (start..end).contains(&here).then(|| (start, end, field(line, 2), field(line, 5)))
        };
        let (start, end, offset, path) = maps.lines().find_map(range).expect("this program");
        let mut file = File::default().mapping(start, end, &path, "");
        file.profile.mapping[0].file_offset = u64::from_str_radix(&offset, 16).expect("hex");
        // A return address is behind the call.
        let file = file.stack(&[here + 1, 0x33], &[1, -8, 1, -8], &[]).encode();
        let found = lines(&with_lines(&gzip(&file), &Search::default()).expect("a profile"));
        let (name, source, line) = &found[0][found[0].len() - 1];
        assert!(name.ends_with("lines::tests::lines"), "{name}");
        assert!(source.is_empty() || source.ends_with("lines.rs") && *line > 0, "{source}:{line}");
        assert_eq!(found[1], [("0x33".into(), String::new(), 0)]);
    }

    #[test]
    fn places_that_have_names_keep_them() {
        let file = File::default().path("main > f", 8, 1, 1).encode();
        let before = lines(&gzip(&file.clone()));
        assert_eq!(lines(&with_lines(&file, &Search::default()).expect("a profile")), before);
    }

    #[test]
    fn what_is_no_pprof_file_is_refused() {
        let refused = |file| with_lines(file, &Search::default()).unwrap_err();
        assert_eq!(refused(&b"\x1f\x8b"[..]), "the file is cut off");
        assert!(refused(b"heap_v2/1\n").starts_with("it is no pprof file"));
    }
}
