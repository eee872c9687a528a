//! The statistics as JSON: `{"jemalloc":{"version":…,"opt":{…},…,"stats":{…},"stats.arenas":{…}}}`.
//!
//! Objects follow from the names of rows; arrays are the branches with an index. The keys are those
//! of jemalloc 5.3 and lumalloc's own, so that parsers written for jemalloc find what they know.
use super::Choice;
use super::arena::{self, Which};
use super::classes;
use super::keys::{self, branch};
use super::totals;
use crate::key_table::Row;
use crate::tree::{INDEX, MAX_DEPTH};
use crate::value::Value;
use crate::writer::Writer;

/// The branches that never change during execution. [`OWN`] holds those that only lumalloc has.
const GENERAL: [&str; 4] = ["version", "config", "opt", "prof"];
const OWN: [&str; 2] = ["vm", "limit"];

/// Prints all chosen parts.
pub(super) fn print(writer: &mut Writer, choice: Choice) {
    let mut json = Json { writer, first: true };
    json.begin("{");
    json.key(b"jemalloc");
    json.begin("{");
    if !choice.omits(b'g') {
        GENERAL.iter().for_each(|name| json.top_level(name, |_| true));
        json.arenas();
    }
    json.top_level("stats", |row| totals::takes(choice, row));
    if !choice.omits(b'w') {
        OWN.iter().for_each(|name| json.top_level(name, |_| true));
    }
    if !(choice.omits(b'm') && choice.omits(b'd') && choice.omits(b'a')) {
        json.key(b"stats.arenas");
        json.begin("{");
        arena::each(choice, |which| json.arena(choice, which));
        json.end("}");
    }
    json.end("}");
    json.end("}");
    json.writer.text("\n");
}

/// Writes objects and arrays, with commas where they belong.
struct Json<'w> {
    writer: &'w mut Writer,
    /// Whether the next element is the first in its object or array.
    first: bool,
}

impl Json<'_> {
    fn separate(&mut self) {
        if !self.first {
            self.writer.text(",");
        }
        self.first = false;
    }

    fn begin(&mut self, bracket: &str) {
        self.separate();
        self.writer.text(bracket);
        self.first = true;
    }

    fn end(&mut self, bracket: &str) {
        self.writer.text(bracket);
        self.first = false;
    }

    fn key(&mut self, name: &[u8]) {
        self.separate();
        self.text(name);
        self.writer.text(":");
        self.first = true;
    }

    /// Writes a string and escapes what JSON does not allow in it. Text that is not UTF-8 is read
    /// as Latin-1.
    fn text(&mut self, text: &[u8]) {
        let is_utf8 = core::str::from_utf8(text).is_ok();
        self.writer.text("\"");
        for &byte in text {
            match byte {
                b'"' | b'\\' => self.writer.bytes(&[b'\\', byte]),
                0x80.. if is_utf8 => self.writer.bytes(&[byte]),
                0..0x20 | 0x80.. => {
                    self.writer.text("\\u00");
                    let digit = |n: u8| if n < 10 { b'0' + n } else { b'a' + n - 10 };
                    self.writer.bytes(&[digit(byte >> 4), digit(byte & 15)]);
                }
                _ => self.writer.bytes(&[byte]),
            }
        }
        self.writer.text("\"");
    }

    fn value(&mut self, value: Value<'_>) {
        self.separate();
        match value {
            Value::Str(text) => self.text(text.to_bytes()),
            other => super::table::value(self.writer, other),
        }
    }

    /// Writes the rows of a branch without an index as an object, or a single key as a value.
    fn top_level(&mut self, name: &str, takes: impl Fn(&Row) -> bool) {
        let path = [name.as_bytes()];
        let rows = branch(&path);
        if !rows.is_empty() {
            self.key(name.as_bytes());
            self.begin("{");
            self.rows(rows, 1, &[0; MAX_DEPTH], takes);
            self.end("}");
        } else if let Some(value) = keys::Key::named(name.as_bytes()).and_then(|key| key.read()) {
            self.key(name.as_bytes());
            self.value(value);
        }
    }

    /// Writes `arenas`, with the size classes as arrays.
    fn arenas(&mut self) {
        self.key(b"arenas");
        self.begin("{");
        self.rows(branch(&[b"arenas"]), 1, &[0; MAX_DEPTH], |_| true);
        for (name, count) in [("bin", classes::bins()), ("lextent", classes::large())] {
            let rows = branch(&[b"arenas", name.as_bytes(), b"<"]);
            self.array(name, rows, [0; MAX_DEPTH], 2, count, |_| true);
        }
        self.end("}");
    }

    /// Writes one arena, or the sum of several.
    fn arena(&mut self, choice: Choice, which: Which) {
        match which {
            Which::Merged => self.key(b"merged"),
            Which::Destroyed => self.key(b"destroyed"),
            Which::Single(index) => {
                self.separate();
                self.writer.text("\"");
                self.writer.number(index as u64);
                self.writer.text("\":");
                self.first = true;
            }
        }
        self.begin("{");
        let mut mib = [0; MAX_DEPTH];
        if let Some(place) = mib.get_mut(2) {
            *place = which.index();
        }
        if let Some(name) = which.name() {
            self.key(b"name");
            self.separate();
            self.text(arena::until_nul(&name));
        }
        let locks = !choice.omits(b'x');
        let takes = |row: &Row| locks || !arena::is_of_locks(row);
        self.rows(branch(&[b"stats", b"arenas", b"<"]), 3, &mib, takes);
        let arrays = [
            (b'b', "bins", classes::bins()),
            (b'l', "lextents", classes::large()),
            (b'e', "extents", classes::extents()),
        ];
        for (letter, name, count) in arrays {
            if !choice.omits(letter) {
                let rows = branch(&[b"stats", b"arenas", b"<", name.as_bytes(), b"<"]);
                self.array(name, rows, mib, 4, count, takes);
            }
        }
        self.end("}");
    }

    /// Writes an array of objects. The index of each object stands at `place` in the MIB.
    fn array(
        &mut self,
        name: &str,
        rows: &[Row],
        mib: [usize; MAX_DEPTH],
        place: usize,
        count: usize,
        takes: impl Fn(&Row) -> bool,
    ) {
        if rows.is_empty() {
            return;
        }
        self.key(name.as_bytes());
        self.begin("[");
        for index in 0..count {
            let mut mib = mib;
            if let Some(component) = mib.get_mut(place) {
                *component = index;
            }
            self.begin("{");
            self.rows(rows, place + 1, &mib, &takes);
            self.end("}");
        }
        self.end("]");
    }

    /// Writes the rows that have a value for these indices and no further index, from component
    /// `base` on.
    fn rows(
        &mut self,
        rows: &[Row],
        base: usize,
        mib: &[usize; MAX_DEPTH],
        takes: impl Fn(&Row) -> bool,
    ) {
        let mut above: Option<&Row> = None;
        let mut open = 0;
        for row in rows.iter().filter(|row| takes(row) && !has_index(row, base)) {
            let Some(value) = read(row, mib) else { continue };
            let shared = above.map_or(0, |above| shared_branches(above, row));
            while open > shared.saturating_sub(base) {
                self.end("}");
                open -= 1;
            }
            let mut components = row.components().skip(base + open).peekable();
            while let Some(component) = components.next() {
                self.key(if component == b"uptime" { b"uptime_ns" } else { component });
                if components.peek().is_some() {
                    self.begin("{");
                    open += 1;
                }
            }
            self.value(value);
            above = Some(row);
        }
        (0..open).for_each(|_| self.end("}"));
    }
}

fn has_index(row: &Row, base: usize) -> bool {
    row.components().skip(base).any(|component| component.first() == Some(&INDEX))
}

/// The value for the indices in `mib`. Only the places of the indices matter.
fn read(row: &Row, mib: &[usize; MAX_DEPTH]) -> Option<Value<'static>> {
    let read = row.access.reader()?;
    read(mib.get(..row.components().count())?).ok()
}

/// How many enclosing objects two keys share.
fn shared_branches(a: &Row, b: &Row) -> usize {
    let branches = |row: &Row| row.components().count().saturating_sub(1);
    let both = a.components().zip(b.components()).take(branches(a).min(branches(b)));
    both.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::tests::collected;

    #[test]
    fn commas_stand_between_and_nowhere_else() {
        let text = collected(|writer| {
            let mut json = Json { writer, first: true };
            json.begin("{");
            json.key(b"a");
            json.begin("[");
            for _ in 0..2 {
                json.begin("{");
                json.end("}");
            }
            json.end("]");
            json.key(b"b");
            json.value(Value::Size(7));
            json.end("}");
        });
        assert_eq!(text, r#"{"a":[{},{}],"b":7}"#);
    }

    #[test]
    fn what_json_forbids_in_strings_is_escaped() {
        let text = collected(|writer| {
            Json { writer, first: true }.value(Value::Str(c"a\"b\\c\n\x1f"));
        });
        assert_eq!(text, r#""a\"b\\c\u000a\u001f""#);
        let text = collected(|writer| {
            let mut json = Json { writer, first: true };
            json.value(Value::Str(c"Bücher"));
            json.value(Value::Str(c"B\xfccher"));
        });
        assert_eq!(text, r#""Bücher","B\u00fccher""#);
    }
}
