//! The text of a branch: JSON, or a line for each value. It is written as it is read, because a
//! tree of all values takes many times the memory of their text.
use super::collected::FIRST;
use crate::format::Format;
use lumalloc_ctl::Error;
use serde_json::Value as Json;

/// The text so far.
pub(super) struct BranchText {
    format: Format,
    text: String,
    /// The names of the objects that are open, with their dots.
    path: String,
}

/// An object that is open: the lengths of the text and of the path before it.
pub(super) struct Open {
    text: usize,
    path: usize,
}

impl BranchText {
    pub(super) fn new(format: Format) -> Result<BranchText, Error> {
        let mut branch = BranchText { format, text: String::new(), path: String::new() };
        branch.text.try_reserve_exact(FIRST).map_err(|_| Error::NoMemory)?;
        branch.begin("")?;
        Ok(branch)
    }

    fn put(&mut self, piece: &str) -> Result<(), Error> {
        self.text.try_reserve(piece.len()).map_err(|_| Error::NoMemory)?;
        self.text.push_str(piece);
        Ok(())
    }

    /// Begins an object that is a member of this name.
    pub(super) fn open(&mut self, name: &str) -> Result<Open, Error> {
        let before = Open { text: self.text.len(), path: self.path.len() };
        self.begin(name)?;
        self.path.push_str(name);
        self.path.push('.');
        Ok(before)
    }

    fn begin(&mut self, name: &str) -> Result<(), Error> {
        if self.format == Format::Text {
            return Ok(());
        }
        self.name(name)?;
        self.put("{")
    }

    /// Writes the name of a member. That of the whole branch is empty.
    fn name(&mut self, name: &str) -> Result<(), Error> {
        if name.is_empty() {
            return Ok(());
        }
        let comma = if self.text.ends_with('{') { "" } else { "," };
        self.put(&format!("{comma}\"{name}\":"))
    }

    /// Ends an object. One without values is left out.
    pub(super) fn close(&mut self, before: &Open) -> Result<(), Error> {
        self.path.truncate(before.path);
        if self.format == Format::Text {
            return Ok(());
        }
        if self.text.ends_with('{') {
            self.text.truncate(before.text);
            return Ok(());
        }
        self.put("}")
    }

    /// Writes a value that is a member of this name.
    pub(super) fn value(&mut self, name: &str, value: &Json) -> Result<(), Error> {
        match self.format {
            Format::Json => {
                self.name(name)?;
                self.put(&value.to_string())
            }
            Format::Text => {
                let line = format!("{}{name}: {}\n", self.path, word(value));
                self.put(&line)
            }
        }
    }

    /// Returns the text with its end.
    pub(super) fn whole(mut self) -> Result<String, Error> {
        if self.format == Format::Json {
            self.put("}\n")?;
        }
        Ok(self.text)
    }
}

/// Returns a value as text: a text without its quotes.
pub(crate) fn word(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_values_is_left_out() {
        let written = |format| {
            let mut branch = BranchText::new(format).unwrap();
            branch.value("one", &1.into()).unwrap();
            let empty = branch.open("empty").unwrap();
            branch.close(&empty).unwrap();
            let outer = branch.open("outer").unwrap();
            let inner = branch.open("0").unwrap();
            branch.value("name", &"a \"b\"".into()).unwrap();
            branch.value("on", &true.into()).unwrap();
            branch.close(&inner).unwrap();
            branch.close(&outer).unwrap();
            branch.whole().unwrap()
        };
        let json = "{\"one\":1,\"outer\":{\"0\":{\"name\":\"a \\\"b\\\"\",\"on\":true}}}\n";
        assert_eq!(written(Format::Json), json);
        assert_eq!(written(Format::Text), "one: 1\nouter.0.name: a \"b\"\nouter.0.on: true\n");
    }
}
